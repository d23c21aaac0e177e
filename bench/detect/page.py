"""What stands between the marks of docs/detection.md; what is around it is written by hand.

put(page, measured(results))
"""

import platform
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from bench.detect import tables
from bench.detect.results import Results
from bench.detect.scores import Score, Tally
from bench.report import machine

BEGIN, END = "<!-- measured: by make bench-detect, do not edit -->", "<!-- measured so far -->"
MOST_LISTED = 60


def put(page: Path, measured: str) -> None:
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{measured.strip()}\n\n{END}{after}", encoding="utf-8")


def measured(results: Results) -> str:
    parts = [_head(results), tables.goals(results)]
    if results.labelled:
        parts += list(_labelled(results.labelled))
    parts += ["### Real traces", tables.traces(results)]
    if results.labelled and results.labelled.wrong:
        parts += ["### What went wrong", _wrong(results.labelled.wrong)]
    return "\n\n".join(parts)


def _head(results: Results) -> str:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    lines = [f"Measured on {time.strftime('%Y-%m-%d')}, in {tables.lasting(results.seconds)}: TrainVitals "
             f"{version('trainvitals')}, {python}; {machine(results.load)}."]  # fmt: skip
    if tally := results.labelled:
        whole = tally.whole
        lines.append(f"{whole.scenarios} labelled scenarios of {tables.lasting(whole.watched)} of recorded time, with "
                     f"{whole.expected} findings to be made.")  # fmt: skip
    return "\n".join(lines)


def _labelled(tally: Tally) -> Iterable[str]:
    cases = [(tables.CASES[case], tally.cases[case]) for case in tables.CASES if case in tally.cases]
    yield "### By how hard it is"
    yield tables.scores([*cases, ("in all", tally.whole)], "cases")
    yield "### By detector"
    yield tables.scores(sorted(tally.kinds.items()), "alert")
    yield "### By family"
    yield tables.scores([(name, one) for name, one in tally.families.items() if one.expected], "family")
    if calm := [(name, one) for name, one in tally.families.items() if not one.expected]:
        yield tables.silence(calm)
    yield _repeats(tally.whole)


def _repeats(whole: Score) -> str:
    return (
        f"{whole.repeats} findings of other ranks or GPUs of a fault that one of them was told for are neither found "
        "nor false: they go into one message."
    )


def _wrong(wrong: list[str]) -> str:
    more = len(wrong) - MOST_LISTED
    return "\n".join([f"- {line}" for line in wrong[:MOST_LISTED]] + [f"- and {more} more"] * (more > 0))
