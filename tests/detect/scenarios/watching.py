"""What happens to a node, as edits of what its GPUs and host tell.

only(1, after(600, put("remapped_rows_failed", 1.0)))
"""

from collections.abc import Callable
from typing import Any

from tests.detect.scenarios.node import GpuEdit, HostEdit
from tests.detect.scenarios.truth import Expected

Values = dict[str, Any]
# Of the seconds since the start.
Course = Callable[[float], float]
LONG = 10.0**9


def course(name: str, value: Course, gpu: int, first: float = 0.0, last: float = LONG) -> GpuEdit:
    """One field of one GPU (of all where it is below 0) follows a course for a time."""

    def edit(since: float, index: int, values: Values) -> None:
        if (gpu < 0 or index == gpu) and first <= since <= last:
            values[name] = value(since)

    return edit


def put(name: str, value: Any, gpu: int, first: float = 0.0, last: float = LONG) -> GpuEdit:
    def edit(since: float, index: int, values: Values) -> None:
        if (gpu < 0 or index == gpu) and first <= since <= last:
            values[name] = value

    return edit


def counted(name: str, per_minute: Course, gpu: int, first: float) -> GpuEdit:
    """A counter that grows from a time on, in whole counts."""
    state = {"at": first, "count": 0.0}

    def edit(since: float, index: int, values: Values) -> None:
        if index != gpu or name not in values:
            return
        if since > state["at"]:
            state["count"] += per_minute(since - first) * (since - state["at"]) / 60
            state["at"] = since
        values[name] += float(int(state["count"]))

    return edit


def pulsed(reasons: tuple[str, ...], every: float, seconds: float, gpu: int, first: float, last: float) -> GpuEdit:
    """The clocks are held down again and again."""

    def edit(since: float, index: int, values: Values) -> None:
        if index == gpu and first <= since <= last and (since - first) % every < seconds:
            values["throttle_active"] = list(reasons)
            values["clock_hertz_sm"] = 9.0e8
            values["power_draw_watts"] = round(values["power_draw_watts"] * 0.6, 1)

    return edit


def host(name: str, value: Course, first: float = 0.0, last: float = LONG) -> HostEdit:
    def edit(since: float, values: Values) -> None:
        if first <= since <= last:
            values[name] = value(since)

    return edit


def seen(kind: str, severities: tuple[str, ...], start: float, since: float, within: float, gpu: int = -1) -> Expected:
    return Expected(kind, severities, start + since, within, gpu=gpu)
