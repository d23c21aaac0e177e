"""A training step's calls into the SDK, beside the loggers that one would take instead."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Timer

from bench.loggers import LOGGERS
from bench.rows import Row, Section, quantile
from bench.stage import Stage
from trainvitals.journal.record import decode

PAUSE_SECONDS = 0.002
TIGHT_GOAL, PACED_GOAL = 2.2, 0.5
KILLS = 20
# Tells of each call that returned, and logs on until it is killed.
LOGS_ON = """
import os, sys, trainvitals
run = trainvitals.start("killed", dir=sys.argv[1], run_id=sys.argv[2])
step = 0
while True:
    step += 1
    run.log(loss=1.0 / step, step=step)
    os.write(1, b"%d\\n" % step)
"""


def measure(stage: Stage) -> Section:
    paced = {name: _times(stage, name, "paced", stage.few_or(50, 1500), PAUSE_SECONDS) for name in LOGGERS}
    tight = _tight(stage)
    best = min((name for name in LOGGERS if name not in ("ours", "floor")), key=lambda name: quantile(paced[name], 0.5))
    lost, told = _lost_to_kills(stage)
    rows = [_against(paced, best, "paced", PACED_GOAL, f"≤ 1/2 of the best peer ({best})")]
    rows += [_against(paced, name, "paced") for name in LOGGERS if name not in ("ours", best)]
    rows += [_against(tight, "floor", "tight", TIGHT_GOAL, f"≤ {TIGHT_GOAL}")]
    rows += [_p99(paced, name, "paced") for name in LOGGERS if name != "ours"] + [_p99(tight, "floor", "tight")]
    rows.append(Row("values lost to a SIGKILL whose call had returned", lost, goal="none", met=lost == 0,
                    samples=f"{told:,} values, {_kills(stage)} kills"))  # fmt: skip
    return Section("run.log", rows, NOTES)


NOTES = [
    f"Ten fields a call, each call timed by itself, each logger in a process of its own. `Paced` waits "
    f"{PAUSE_SECONDS * 1e3:g} ms before each call, as a step would; `tight` does not. The floor is orjson and one "
    "write(2) of the same fields.",
    "What a logger does after its call returned, in threads or other processes, is not in these times.",
]


def _times(stage: Stage, name: str, how: str, calls: int, pause: float) -> list[float]:
    folder = stage.folder / "loggers" / f"{name.replace(' ', '-')}-{how}-{time.monotonic_ns()}"
    folder.mkdir(parents=True)
    words = [sys.executable, "-m", "bench.loggers", name, str(folder), str(calls), str(pause)]
    said = subprocess.run(words, check=False, env=stage.env | QUIET, cwd=folder, capture_output=True, text=True,
                          timeout=300)  # fmt: skip
    if said.returncode:
        raise RuntimeError(f"{name} ended with {said.returncode}: {said.stderr[-2000:]}")
    return [nanoseconds / 1e9 for nanoseconds in json.loads(said.stdout)]


# No logger may look for a network, ask anything, or report that it is used.
QUIET = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_ERROR_REPORTING": "false",
         "MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "HF_HUB_OFFLINE": "1",
         "GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_DISABLE_TELEMETRY": "1",
         "AIM_UI_TELEMETRY_ENABLED": "0"}  # fmt: skip


def _tight(stage: Stage) -> dict[str, list[float]]:
    """In turns, so that whatever else the machine does meets both."""
    found: dict[str, list[float]] = {"ours": [], "floor": []}
    for _ in range(stage.few_or(1, 8)):
        for name in found:
            found[name] += _times(stage, name, "tight", stage.few_or(500, 5000), 0.0)
    return found


def _against(times: dict[str, list[float]], peer: str, how: str, most: float | None = None, goal: str = "") -> Row:
    ours, theirs = quantile(times["ours"], 0.5), quantile(times[peer], 0.5)
    met = None if most is None else ours / theirs <= most
    return Row(f"run.log, {how}, p50", ours, theirs, peer, "µs", goal, met, f"{len(times['ours']):,} each")


def _p99(times: dict[str, list[float]], peer: str, how: str) -> Row:
    return Row(f"run.log, {how}, p99", quantile(times["ours"], 0.99), quantile(times[peer], 0.99), peer, "µs")


def _kills(stage: Stage) -> int:
    return stage.few_or(2, KILLS)


def _lost_to_kills(stage: Stage) -> tuple[int, int]:
    root = stage.folder / "killed"
    lost = told = 0
    for number in range(_kills(stage)):
        steps = _steps_until_killed(stage, root, f"run-{number}", 0.2 + 0.01 * number)
        kept = {decode(line)["step"] for path in (root / "runs" / f"run-{number}").glob("training_metrics_*.jsonl")
                for line in path.read_bytes().splitlines()}  # fmt: skip
        lost += len(steps - kept)
        told += len(steps)
    return lost, told


def _steps_until_killed(stage: Stage, root: Path, run: str, seconds: float) -> set[int]:
    words = [sys.executable, "-c", LOGS_ON, str(root), run]
    with subprocess.Popen(words, env=stage.env, stdout=subprocess.PIPE) as process:
        timer = Timer(seconds, os.kill, (process.pid, signal.SIGKILL))
        timer.start()
        assert process.stdout is not None
        return {int(line) for line in process.stdout.read().splitlines(keepends=True) if line.endswith(b"\n")}
