"""An agent as a child of the training: which flags it gets, and whether one is there already."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.collector.support import command_line, serving, wait_for
from trainvitals.run import child_agent


def test_flags_go_to_the_agent_and_override_its_own(tmp_path, capfd):
    child = child_agent.start(tmp_path, "--port", "0", "--interval", "0.1", "--simulate", "1")
    try:
        wait_for(lambda: list(tmp_path.glob("gpu/*-simulated/gpu_metrics_*.jsonl")), 20)
        wait_for(lambda: "127.0.0.1:" in capfd.readouterr().err, 20)
    finally:
        child.remove()
        child._process.wait(10)


def test_whoever_has_it_serve_others_is_told_what_opens_its_page(tmp_path, capfd):
    child, told = child_agent.start(tmp_path, "--port", "0", "--host", "0.0.0.0", "--simulate", "1"), ""

    def link():
        nonlocal told
        told += capfd.readouterr().err
        return re.search(r"^trainvitals: link +http://[0-9.]+:\d+/\?token=[\w-]{43}$", told, re.MULTILINE)

    try:
        assert wait_for(link, 20)
    finally:
        child.remove()
        child._process.wait(10)


def test_an_agent_of_simulated_gpus_is_seen_under_its_own_host_name(tmp_path):
    with serving(tmp_path, "--simulate", "1"):
        assert not child_agent.is_listened_to(tmp_path)
        host = next((tmp_path / "gpu").iterdir()).name
        assert child_agent.is_listened_to(tmp_path, host)
    wait_for(lambda: not child_agent.is_listened_to(tmp_path, host))


@pytest.mark.parametrize("words", [("serve", "--port", "0"), ("monitor", "--no-console")], ids=lambda words: words[0])
def test_what_a_trainer_started_ends_with_it_however_it_ends(tmp_path, words):
    script = f"""
import os, signal, subprocess, time
child = subprocess.Popen({command_line(*words, "--simulate", "1", "--dir", str(tmp_path))!r}
                         + ["--with-parent", str(os.getpid())], stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
time.sleep(60)
"""
    trainer = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    child = int(trainer.stdout.readline())
    wait_for(lambda: list(tmp_path.glob("gpu/*/gpu_metrics_*.jsonl")), 20)
    trainer.kill()
    trainer.communicate()
    wait_for(lambda: not is_running(child), 20)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
