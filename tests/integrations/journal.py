"""What a training left in the journal, read back: `told(folder).values("loss") -> {1: 2.3, 2: 2.1}`."""

import json
import os
import subprocess
import sys
from statistics import median


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


class Told:
    def __init__(self, folder, rank=None):
        suffix = "" if rank is None else f".rank{rank}"
        self.folder = folder
        self.lines = [line for path in sorted(folder.glob(f"training_metrics_*[0-9]{suffix}.jsonl"))
                      for line in read_lines(path)]  # fmt: skip
        events = folder / f"events.rank{rank or 0}.jsonl"
        self.events = read_lines(events) if events.exists() else []

    @property
    def run(self):
        return json.loads((self.folder / "run.json").read_text())

    @property
    def status(self):
        return self.run["status"]

    def values(self, name):
        """By step; the last where a step has several."""
        return {line["step"]: line[name] for line in self.lines if name in line}

    def steps(self):
        """The numbers of the steps that were timed."""
        return list(self.values("step_duration_seconds"))

    def total(self, name):
        return sum(line.get(name, 0.0) for line in self.lines)

    def data_share(self):
        """Of a usual step: the first warms up, and a busy machine makes one or the other wait."""
        waited, took = (median(seconds for step, seconds in self.values(name).items() if step > 1)
                        for name in ("data_wait_seconds", "step_duration_seconds"))  # fmt: skip
        return waited / (waited + took)

    def events_of(self, kind):
        return [event for event in self.events if event["event"] == kind]

    def phases(self):
        return [(event["phase"], event["open"]) for event in self.events_of("phase")]


def run_names(root):
    return sorted(path.name for path in (root / "runs").iterdir() if path.is_dir())


def told(root, name=None, rank=None):
    """The only run of a journal, or one of them."""
    if name is None:
        (name,) = run_names(root)
    return Told(root / "runs" / name, rank)


def python(script, *words, journal, timeout=240, **more_env):
    """A script in a process of its own; it must end well unless the caller looks at how it ended."""
    env = {**os.environ, "TRAINVITALS_DIR": str(journal), "PYTHONPATH": os.pathsep.join(sys.path),
           "HF_HUB_OFFLINE": "1", "TF_CPP_MIN_LOG_LEVEL": "2", **more_env}  # fmt: skip
    return subprocess.run([sys.executable, str(script), *words], capture_output=True, text=True, timeout=timeout,
                          env=env, check=False)  # fmt: skip


def on_two_ranks(script, *words, journal):
    """As torchrun starts them."""
    launch = ("--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0")
    return python("-mtorch.distributed.run", *launch, str(script), *words, journal=journal)
