"""Trainings as processes of their own, what they leave in the journal, and the measure of harm."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainvitals.journal import layout
from trainvitals.journal.record import decode

ROOT = Path(__file__).parents[2]
TRAINER = Path(__file__).parent / "harm" / "trainer.py"
MOST_SECONDS = 0.05
# The SDK's patience is 2 s; on a busy machine an interpreter's end takes longer by itself.
MOST_EXIT_SECONDS = 4.0
ATTEMPTS = 3
Record = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """How a training ended, what it said, and what the SDK took of it in calls and at the interpreter's end."""

    code: int
    weights: str
    slowest: Mapping[str, float]
    said: tuple[str, ...]
    seconds: float
    exit_seconds: float
    journal: Path

    @property
    def slow(self) -> dict[str, float]:
        return {name: seconds for name, seconds in self.slowest.items() if seconds > MOST_SECONDS}


def environment(journal: Path | None = None, **more: str) -> dict[str, str]:
    """This one, less what it may say of monitoring and of launchers."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TRAINVITALS", "PYTHON"))}
    paths = f"{ROOT / 'collector' / 'src'}:{ROOT}"
    return kept | ({} if journal is None else {"TRAINVITALS_DIR": str(journal)}) | {"PYTHONPATH": paths} | more


class Training:
    """A training under way."""

    def __init__(self, folder: Path, *flags: str, journal: Path | None = None, python: tuple[str, ...] = (),
                 command: tuple[str, ...] = (), env: Mapping[str, str] | None = None) -> None:  # fmt: skip
        self.folder, self.journal = folder, journal or folder / "journal"
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o777)
        self._result = folder / "result.json"
        words = [*command, sys.executable, *python, str(TRAINER), str(self._result), *flags]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
            env=environment(self.journal) if env is None else dict(env))  # fmt: skip

    def pass_gate(self, deed: Callable[[], object]) -> None:
        """Does something to the training while it waits in the middle of its way."""
        assert self.process.stdin is not None and self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line == "at the gate\n", line + self.process.communicate(timeout=30)[1]
        deed()
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def outcome(self, seconds: float = 60.0) -> Outcome:
        try:
            _, said = self.process.communicate(timeout=seconds)
        finally:
            self.process.kill()
        assert self._result.exists(), said
        result = json.loads(self._result.read_text(encoding="utf-8"))
        # A busy machine makes any write slow, and is told so: that is no fault of the one under test.
        words = tuple(line for line in said.splitlines() if "took over 20 ms for a write" not in line)
        return Outcome(self.process.returncode, result["weights"], result["slowest"], words, result["seconds"],
                       result["exit_seconds"], self.journal)  # fmt: skip


def assert_harmless(attempt: Callable[[int], Outcome], alone: Outcome, warnings: int = -1,
                    most_seconds: float = 1.0) -> Outcome:  # fmt: skip
    """The same weights and exit code each time, and one warning at most (or as many as are told); the time, which a
    busy machine adds to, is what the best of some attempts took."""
    for number in range(ATTEMPTS):
        outcome = attempt(number)
        assert (outcome.code, outcome.weights) == (0, alone.weights), "\n".join(outcome.said)
        assert len(outcome.said) in ((0, 1) if warnings < 0 else (warnings,)), "\n".join(outcome.said)
        more_seconds = outcome.seconds - alone.seconds
        if not outcome.slow and more_seconds < most_seconds and outcome.exit_seconds < MOST_EXIT_SECONDS:
            return outcome
    raise AssertionError(f"too slow: {outcome.slow}, {more_seconds:.2f} s more, {outcome.exit_seconds:.2f} s to exit")


def run_folders(journal: Path) -> list[Path]:
    return sorted(path for path in (journal / "runs").iterdir() if path.is_dir())


def run_json(folder: Path) -> Record:
    return decode((folder / layout.RUN_FILE).read_bytes())


def written(run: Any) -> list[Record]:
    """The lines of a run that is ended for it, without their times."""
    run.finish()
    return [{key: value for key, value in line.items() if key != "timestamp"} for line in lines(run.folder)]


def lines(folder: Path, pattern: str = "training_metrics_*.jsonl", torn: bool = False) -> list[Record]:
    """All records of a run's files of a kind, none of which may be torn (but the last, where that is said)."""
    found = []
    for path in sorted(folder.glob(pattern)):
        content = path.read_bytes()
        assert torn or content == b"" or content.endswith(b"\n"), path
        found += [decode(line) for line in content.split(b"\n")[:-1]]
    return found


def events(folder: Path, kind: str = "") -> list[Record]:
    return [line for line in lines(folder, "events.rank*.jsonl") if kind in ("", line.get("event"))]


def losses(folder: Path) -> dict[int, float]:
    return {line["step"]: line["loss"] for line in lines(folder) if "loss" in line}


def python(script: str, *arguments: object, journal: Path, flags: tuple[str, ...] = (),
           **more: str) -> "subprocess.CompletedProcess[str]":  # fmt: skip
    """A program that runs to its end."""
    return subprocess.run([sys.executable, *flags, "-c", script, *map(str, arguments)], capture_output=True, text=True,
                          timeout=60, check=False, env=environment(journal, **more))  # fmt: skip


def started(script: str, *arguments: object, journal: Path, **more: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], stdout=subprocess.PIPE,
                            stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment(journal, **more))  # fmt: skip


def stop(process: "subprocess.Popen[Any]", number: int = signal.SIGKILL) -> None:
    process.send_signal(number)
    process.communicate(timeout=20)
