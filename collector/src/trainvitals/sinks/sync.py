"""`trainvitals sync RUN --to …`: everything of one run to one or more targets, at once, with a bar on a terminal."""

import difflib
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainvitals.errors import SettingError
from trainvitals.journal import layout, runs
from trainvitals.sinks import SinkError, Target, run_info, targets
from trainvitals.sinks.job import Job
from trainvitals.sinks.supervisor import end_all

BAR_SECONDS = 0.2
BAR_WIDTH = 24
NAMED_RUNS = 3


@dataclass(slots=True)
class _Sending:
    """One target's process and how far it is."""

    target: Target
    process: "subprocess.Popen[str]"
    done: int = 0
    total: int = 0
    points: int = 0
    problem: str = ""

    def listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            told: dict[str, Any] = json.loads(line)
            self.done, self.total, self.points = told["done"], told["total"], told["points"]

    def listen_to_problems(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.problem = line.strip() or self.problem

    def line(self) -> str:
        share = self.done / self.total if self.total else 0.0
        filled = round(share * BAR_WIDTH)
        return f"{self.target.kind} [{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {share:4.0%} {self.points:,} points"


def run(name: str, to: Iterable[str], root: Path) -> int:
    wanted = targets(to)
    if not wanted:
        raise SettingError("--to", "", "name a target: tensorboard=DIR, wandb=PROJECT or mlflow=URI")
    folder = find_run(name, root)
    info = run_info.read(folder)
    sendings = [_start(target, folder) for target in wanted]
    try:
        _watch(sendings)
    finally:
        end_all([sending.process for sending in sendings])
    if not info.is_over:
        print(f"run {info.run} lives: this is what it wrote so far; `trainvitals serve --sink` goes on with it")
    return max(_tell(sending, info.run) for sending in sendings)


def find_run(name: str, root: Path) -> Path:
    """A run's id, or the path of its folder wherever it lies."""
    for folder in (layout.run_folder(root, name), Path(name).expanduser().absolute()):
        if name not in ("", ".", "..") and _is_run(folder):
            return folder
    raise SinkError(f"there is no run {name!r} in {root}: {_others(name, root)}, or name another journal with --dir")


def _others(name: str, root: Path) -> str:
    """What it may have been meant to be: one that is called alike, else one of the last."""
    found = sorted((path for path in (root / "runs").glob("*") if _is_run(path)), key=run_info.last_written)
    if not found:
        return "it holds none; give the path of a run's folder"
    names = [path.name for path in reversed(found)]
    if near := difflib.get_close_matches(name, names, n=NAMED_RUNS):
        return f"the nearest are {', '.join(near)}"
    return f"the last ones are {', '.join(names[:NAMED_RUNS])}"


def _is_run(folder: Path) -> bool:
    has_files = (folder / layout.RUN_FILE).is_file() or bool(runs.process_files(folder))
    return has_files and not folder.name.startswith(".")


def _start(target: Target, folder: Path) -> _Sending:
    # Beside the run's folder lie the other runs; above them the nodes' lines.
    job = Job(str(target), root=str(folder.parent.parent), mode="once", folder=str(folder))
    sending = _Sending(target, job.start(stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    for listen in (sending.listen, sending.listen_to_problems):
        threading.Thread(target=listen, daemon=True).start()
    return sending


def _watch(sendings: Sequence[_Sending]) -> None:
    shows = sys.stderr.isatty()
    while any(sending.process.poll() is None for sending in sendings):
        if shows:
            _show("  ".join(sending.line() for sending in sendings))
        time.sleep(BAR_SECONDS)
    if shows:
        _show("")


def _show(text: str) -> None:
    width = shutil.get_terminal_size().columns - 1
    print(f"\r\033[K{text[:width]}", end="", file=sys.stderr, flush=True)


def _tell(sending: _Sending, run: str) -> int:
    status = sending.process.wait()
    if status:
        print(
            f"trainvitals: {sending.problem or f'{sending.target.shown}: ended with status {status}'}", file=sys.stderr
        )
        return 1
    print(f"{sending.target.shown}: run {run}, {sending.points:,} points")
    return 0
