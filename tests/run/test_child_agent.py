"""An agent as a child of the training: which flags it gets, and whether one is there already."""

from tests.collector.support import serving, wait_for
from trainvitals.run import child_agent


def test_flags_go_to_the_agent_and_override_its_own(tmp_path, capfd):
    child = child_agent.start(tmp_path, "--port", "0", "--interval", "0.1", "--simulate", "1")
    try:
        wait_for(lambda: list(tmp_path.glob("gpu/*-simulated/gpu_metrics_*.jsonl")), 20)
        wait_for(lambda: "127.0.0.1:" in capfd.readouterr().err, 20)
    finally:
        child.remove()
        child._process.wait(10)


def test_an_agent_of_simulated_gpus_is_seen_under_its_own_host_name(tmp_path):
    with serving(tmp_path, "--simulate", "1"):
        assert not child_agent.is_listened_to(tmp_path)
        host = next((tmp_path / "gpu").iterdir()).name
        assert child_agent.is_listened_to(tmp_path, host)
    wait_for(lambda: not child_agent.is_listened_to(tmp_path, host))
