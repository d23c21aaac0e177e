"""What was seen over time: utilisation, memory, temperature, power of one GPU, loss of one run.

band((Course("GPU 0 utilisation", values, 0.0, 100.0, "97%", GOOD), …), cells=80, height=3)  ->  a title and two rows
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from trainvitals.tui import levels, lines, text
from trainvitals.tui.braille import graph
from trainvitals.tui.figures import UNKNOWN, gib, known, odd, short, whole
from trainvitals.tui.history import History, told_of
from trainvitals.tui.levels import BAD, DIM, GOOD, Level
from trainvitals.tui.lines import Line
from trainvitals.tui.picture import Gpu, Run

GAP = 2
COLD_CELSIUS, HOT_CELSIUS = 20.0, 90.0


class Course(NamedTuple):
    title: str
    values: Sequence[float | None]
    low: float
    high: float
    now: str
    level: Level


def band(courses: Sequence[Course], cells: int, height: int) -> list[Line]:
    """Side by side; each as wide as its values are many."""
    if height < 1:
        return []
    columns = [_column(course, height) for course in courses]
    blank = (" " * GAP, "")
    rows = [tuple(piece for column in columns for piece in (*column[row], blank)) for row in range(height)]
    return [lines.fit(one, cells) for one in rows]


def _column(course: Course, height: int) -> list[Line]:
    cells = len(course.values) // 2
    sign = course.level.sign.strip()
    head = lines.between(
        lines.line((course.title, "dim")),
        lines.line((f" {course.now} {sign}".rstrip(), course.level.style if sign else "")),
        cells,
    )
    drawn = graph(course.values, height - 1, course.low, course.high)
    return [head, *(lines.line((row, course.level.style)) for row in drawn)]


def widths(cells: int, shares: Sequence[int]) -> list[int]:
    """The cells that each graph gets; what does not divide goes to the last."""
    room, whole_share = max(0, cells - GAP * (len(shares) - 1)), sum(shares)
    found = [room * share // whole_share for share in shares]
    return [*found[:-1], room - sum(found[:-1])]


def gpu_courses(gpu: Gpu, history: History, now: float, cells: Sequence[int]) -> list[Course]:
    """Utilisation, memory, temperature and power, each as wide as `cells` says."""
    values = gpu.values
    busy, held, heat, watts = (history.course(("gpu", str(gpu.number), name), 2 * wide, now)
                               for name, wide in zip(_FIELDS, cells, strict=True))  # fmt: skip
    hottest = values.get("temperature_slowdown_celsius", HOT_CELSIUS)
    return [
        Course(f"GPU {gpu.number} busy", busy, 0.0, 100.0, _now(gpu, _FIELDS[0], "%"), levels.utilization(gpu)),
        Course("memory", held, 0.0, 100.0, _memory(gpu), levels.memory(gpu)),
        Course("heat", heat, COLD_CELSIUS, hottest, _now(gpu, _FIELDS[2], "°C"), levels.temperature(gpu)),
        Course("power", watts, 0.0, values.get("power_limit_watts") or _highest(watts), _now(gpu, _FIELDS[3], " W"),
               levels.power(gpu)),
    ]  # fmt: skip


_FIELDS = ("utilization_percent", "memory_percent", "temperature_celsius", "power_draw_watts")


def _now(gpu: Gpu, field: str, unit: str) -> str:
    return known(gpu.values.get(field), lambda value: whole(value, unit))


def _memory(gpu: Gpu) -> str:
    used, total = (gpu.values.get(f"memory_{name}_mb") for name in ("used", "total"))
    return known(used, gib) + ("" if total is None else f"/{gib(total)} GiB")


def _highest(values: Sequence[float | None]) -> float:
    return max((value for value in values if value is not None), default=1.0) or 1.0


def loss_course(run: Run | None, history: History, now: float, cells: int) -> Course:
    if run is None:
        return Course("loss", [None] * (2 * cells), 0.0, 1.0, UNKNOWN, DIM)
    values = history.course(("run", run.run, "loss"), 2 * cells, now)
    seen = [value for value in values if value is not None and math.isfinite(value)]
    low, high = min(seen, default=0.0), max(seen, default=1.0)
    last = told_of(run).get("loss")
    reach = f"  {short(low)} to {short(high)}" if len(seen) > 1 else ""
    level = BAD if last is not None and odd(last) else GOOD
    return Course(f"loss of {text.fit(run.run, 24).rstrip()}{reach}", values, low, high, known(last, short), level)
