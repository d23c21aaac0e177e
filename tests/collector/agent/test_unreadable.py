"""A run whose trainer keeps others out (umask 077) is seen to be there, and that it cannot be read is told of."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.collector.agent.test_runs import Trainer
from tests.collector.support import wait_for
from trainvitals.agent.run_folder import unreadable

NOBODY = 65534
# What is imported later may lie where only root may read.
AGENT = """
import encodings.ascii, json, logging, os, sys
from pathlib import Path
from trainvitals.agent.service import Agent
from trainvitals.exporter import render
from trainvitals.sources.simulated import SimulatedSource
from trainvitals.web.views import runs_view
logging.basicConfig(format="%(message)s")
os.setuid(int(sys.argv[2]))
agent = Agent([SimulatedSource(1)], Path(sys.argv[1]), interval=0.1, keep_log=False)
agent.start()
for line in sys.stdin:
    metrics = render(agent.snapshot)[0].decode()
    errors = [line.split()[1] for line in metrics.splitlines() if line.startswith("trainvitals_journal_read_errors_")]
    known = "training_run_status{" in metrics
    statuses = {run["run"]: run["status"] for run in runs_view(agent.snapshot)}
    print(json.dumps([statuses, errors, known]), flush=True)
"""


@pytest.fixture
def root() -> Iterator[Path]:
    """pytest's own folders are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o1777)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="acting as another user needs root")
@pytest.mark.parametrize("hidden", [".", "process.rank0.json"])
def test_a_run_that_another_user_may_not_read_is_told_of_once(root: Path, hidden: str) -> None:
    trainer = Trainer(root)
    trainer.say("step")
    private = root / "runs" / "gemma" / hidden
    mode = private.stat().st_mode
    private.chmod(0o700 if hidden == "." else 0o600)
    words = [sys.executable, "-c", AGENT, str(root), str(NOBODY)]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **pipes) as agent:
        try:
            assert wait_for(lambda: _ask(agent)[0]) == {"gemma": "unreadable"}
            wait_for(lambda: _ask(agent)[1] == ["1.0"])
            assert not _ask(agent)[2]
            private.chmod(mode)
            wait_for(lambda: _ask(agent) == [{"gemma": "running"}, ["1.0"], True])
        finally:
            trainer.kill()
            agent.kill()
        assert agent.stderr
        told = [line for line in agent.stderr if "cannot be read" in line]
    assert len(told) == 1
    assert told[0].startswith(f"run gemma: {private} cannot be read by user {NOBODY}")
    assert told[0].endswith(f"chmod -R a+rX {root / 'runs' / 'gemma'}\n")


def _ask(agent: "subprocess.Popen[str]") -> Any:
    assert agent.stdin and agent.stdout
    agent.stdin.write("\n")
    agent.stdin.flush()
    return json.loads(agent.stdout.readline())


def test_what_is_gone_is_not_unreadable(tmp_path: Path) -> None:
    (tmp_path / "process.rank0.json").symlink_to("nowhere")
    assert unreadable(tmp_path) is None
    assert unreadable(tmp_path / "gone") is None
