"""The agent in a container sees whether a process outside lives: numbers of processes mean nothing there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.collector.agent.test_runs import Trainer
from tests.collector.support import wait_for

FOLLOW = """
import sys, time
from pathlib import Path
from trainvitals.agent.runs import Runs
runs = Runs(Path(sys.argv[1]), "inside")
runs.start()
said = ""
while said != "killed":
    now = [state.status for state in runs.states()]
    if now and now[0] != said:
        said = now[0]
        print(said, flush=True)
    time.sleep(0.05)
"""


def test_a_kill_is_seen_from_another_process_namespace(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a process namespace of one's own needs root and unshare")
    words = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c", FOLLOW, str(tmp_path)]
    trainer = Trainer(tmp_path)
    inside = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert inside.stdout
        assert inside.stdout.readline().strip() == "running"
        trainer.kill()
        assert wait_for(inside.stdout.readline, 10).strip() == "killed"
    finally:
        trainer.kill()
        inside.kill()
        inside.wait()
