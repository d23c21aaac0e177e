"""One reading of everything as JSON, from start to end of the process."""

import sys

from bench.rows import Row, Section, median
from bench.stage import TOOLS, Stage

GOAL = 0.25


def measure(stage: Stage) -> Section:
    ours = [sys.executable, "-m", "trainvitals.cli", "once", "--json"]
    commands = {"ours": ours, "gpustat": [str(TOOLS / "gpustat"), "--json"]}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(1 + stage.few_or(2, 12)):
        for name, command in commands.items():
            taken = stage.wall(*command)
            # The first turn fills the disk cache.
            times[name] += [taken] if turn else []
    mine, theirs = median(times["ours"]), median(times["gpustat"])
    row = Row(
        "`trainvitals once --json`, wall",
        mine,
        theirs,
        "gpustat --json",
        "ms",
        "≤ 1/4",
        mine <= GOAL * theirs,
        f"median of {len(times['ours'])} each",
    )
    return Section("One reading", [row])
