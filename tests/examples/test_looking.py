"""The example that shows three ways to look: terminal, page, and a training with its own agent."""

import re

from tests.collector.support import wait_for
from tests.examples.support import ended, is_answered, needed, press_ctrl_c, wait_for_text
from tests.ports import free_port

NAME = "monitor_training_example.py"


def test_the_terminal_shows_gpus_until_ctrl_c_and_then_a_summary(example):
    with example.running(NAME, "--interval", "0.2", "--seconds", "0") as process:
        shown = [process.stdout.readline() for _ in range(5)]
        press_ctrl_c(process)
        out, _ = ended(process)
    assert any(line.startswith("$ trainvitals monitor --interval 0.2") for line in shown)
    assert re.search(r"^GPU0: \d+\.\d%/\d+\.\d%", "".join(shown), re.MULTILINE)
    assert "summary: GPU0 utilisation" in out and f"journal  {example.root}/gpu" in out
    assert list(example.root.glob("gpu/*/gpu_metrics_*.jsonl"))


def test_the_terminal_shows_gpus_for_as_long_as_it_was_told(example):
    out, _ = example.run(NAME, "--interval", "0.2", "--seconds", "3")
    assert "summary: GPU0 utilisation" in out


def test_the_page_answers_until_ctrl_c(example):
    port = free_port()
    with example.running(NAME, "--mode", "dashboard", "--port", str(port)) as process:
        wait_for_text(process, port, "gpu_utilization_percent{")
        wait_for(lambda: f"http://127.0.0.1:{port}/" in process.stdout.readline())
        press_ctrl_c(process)
        out, errors = ended(process)
    assert out.splitlines()[-1] == "Ended." and "Traceback" not in errors
    assert not is_answered(port)


def test_a_training_brings_its_agent_which_ends_with_it(example):
    needed("torch")
    with example.running(NAME, "--mode", "train", "--steps", "150") as process:
        port = wait_for(lambda: re.search(r"page +http://127.0.0.1:(\d+)/", process.stderr.readline()))[1]
        wait_for_text(process, int(port), 'training_loss{rank="0",run="monitor-training-example"}')
        out, _ = ended(process)
        wait_for(lambda: not is_answered(int(port)))
    journal = example.journal("monitor-training-example")
    assert "run monitor-training-example: 150 steps, finished" in out and f"journal  {journal.folder}" in out
    assert journal.run()["status"] == "finished" and len(journal.values("loss")) == 150
