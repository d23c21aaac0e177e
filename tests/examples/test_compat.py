"""The example written for another tool's `TrainingMonitor`."""

from tests.collector.support import wait_for
from tests.examples.support import ended, is_answered, needed, wait_for_text
from tests.ports import free_port

needed("yaml")
NAME = "monitor_training.py"


def test_a_training_journals_what_its_monitor_is_told(example):
    needed("torch")
    out, _ = example.run(NAME)
    journal = example.journal("training")
    assert "run training: finished" in out and f"journal  {journal.folder}" in out
    assert journal.run()["status"] == "finished" and journal.events("alert") == []
    for name in ("loss", "accuracy", "learning_rate", "margin", "step_duration_seconds"):
        assert len(journal.values(name)) == 60, name
    assert journal.values("loss")[-1] < journal.values("loss")[0] / 2
    assert journal.values("gradient_norm"), "gradients are tracked"


def test_a_simulation_shows_its_page_and_its_spike_is_an_alert(example):
    port = free_port()
    words = ("--simulate", "--simulate_steps", "300", "--enable_dashboard", "--dashboard_port", str(port))
    with example.running(NAME, *words) as process:
        wait_for_text(process, port, 'training_loss{rank="0",run="training"}')
        ended(process)
        wait_for(lambda: not is_answered(port))
    journal = example.journal("training")
    assert list(journal.steps()) == list(range(1, 301)) and len(journal.values("tokens_per_second")) == 300
    (alert,) = journal.events("alert")
    assert (alert["name"], alert["severity"], alert["step"]) == ("loss spike", "ticket", 151)
    assert alert["message"] == f"loss is {journal.steps()[151]['loss']:.2f}"


def test_the_configuration_file_holds_and_flags_go_over_it(example):
    port, unused = free_port(), free_port()
    (example.folder / "monitoring.yaml").write_text(
        f"dashboard_port: {unused}\nsave_dir: saved\ndashboard: {{enabled: true, port: {unused}}}\n"
        "alert_system: {enabled: true, thresholds: {accuracy: 0.5}}\n"
    )
    words = ("--config", "monitoring.yaml", "--simulate", "--simulate_steps", "200", "--dashboard_port", str(port))
    with example.running(NAME, *words) as process:
        wait_for_text(process, port, 'training_loss{rank="0",run="training"}')
        assert not is_answered(unused)
        ended(process)
    journal = example.journal("training", example.folder / "saved")
    assert {alert["name"] for alert in journal.events("alert")} == {"accuracy over 0.5", "loss spike"}
    assert not example.root.exists()
