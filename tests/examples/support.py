"""An example as somebody runs it who opened the folder, and what the journal then holds."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.collector.support import wait_for

COLLECTOR = Path(__file__).parents[2] / "collector"
END_SECONDS = 90
NOT_OURS = ("TRAINVITALS", "TRAINVITALS_DIR", "TRAINVITALS_RUN_ID", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID", "RANK")


def needed(*modules):
    """Looked for and not imported: it is the example that uses them."""
    for module in modules:
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: make trainers", allow_module_level=True)


class Example:
    """Runs in a folder of its own, with the journal in it."""

    def __init__(self, folder):
        self.folder, self.root = folder, folder / "journal"
        self.environ = {name: value for name, value in os.environ.items() if name not in NOT_OURS}
        # Threads that wait for each other on a busy machine take longer than these steps.
        self.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(COLLECTOR / "src"),
                         "TRAINVITALS_DIR": str(self.root)}  # fmt: skip

    def start(self, name, *words, launcher=(), **environ):
        words = [sys.executable, *launcher, str(COLLECTOR / "examples" / name), *words]
        # A process group of its own: Ctrl-C reaches all of it, as in a terminal.
        return subprocess.Popen(words, cwd=self.folder, env=self.environ | environ, text=True, start_new_session=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip

    def run(self, name, *words, launcher=(), status=0):
        """What it printed; its exit status is looked at."""
        return ended(self.start(name, *words, launcher=launcher), status)

    @contextmanager
    def running(self, name, *words, **environ):
        """Nothing of it is left after the block, whatever happened in it."""
        process = self.start(name, *words, **environ)
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=END_SECONDS)

    def journal(self, run, root=None):
        return Journal((root or self.root) / "runs" / run)


def ended(process, status=0):
    try:
        out, errors = process.communicate(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, errors = process.communicate()
        raise AssertionError(f"it does not end: {out}\n{errors}") from None
    assert process.returncode == status, f"ended with {process.returncode}:\n{out}\n{errors}"
    return out, errors


def press_ctrl_c(process):
    os.killpg(process.pid, signal.SIGINT)


class Journal:
    def __init__(self, folder):
        self.folder = folder

    def run(self):
        return json.loads((self.folder / "run.json").read_text())

    def steps(self, rank=None):
        """Each step of a rank with all that its lines hold."""
        pattern = "training_metrics_*.jsonl" if rank is None else f"training_metrics_*.rank{rank}.jsonl"
        steps = {}
        for line in _lines(sorted(self.folder.glob(pattern))):
            steps.setdefault(line["step"], {}).update(line)
        return steps

    def values(self, name, rank=None):
        return [step[name] for step in self.steps(rank).values() if name in step]

    def events(self, kind, rank=0):
        return [line for line in _lines([self.folder / f"events.rank{rank}.jsonl"]) if line["event"] == kind]


def _lines(files):
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def get(port, path="/metrics"):
    """Nothing while nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.read().decode()
    except OSError:
        return ""


def wait_for_text(process, port, text):
    """/metrics with this in it; an end of the example is not waited out."""

    def ask():
        assert process.poll() is None, process.communicate()
        return text in (answer := get(port)) and answer

    return wait_for(ask, seconds=END_SECONDS, pause=0.1)


def is_answered(port):
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False
