"""What an agent remembers of the last minutes, so that the graphs do not begin empty.

frames(address, picture, at=12.0, interval=1.0)  ->  [Frame(at=-588.0, values={("gpu", "0", "power_draw_watts"): …}), …]

An agent that knows no such questions, or needs long for them, is none to wait for.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from trainvitals.tui.address import Address, Unheard
from trainvitals.tui.history import GPU_FIELDS, MOST_FRAMES, Frame, Key
from trainvitals.tui.picture import Picture

MOST_RUNS = 3
# Agents remember a value a second.
_SECOND = 1.5
Course = tuple[Sequence[float], Sequence[float | None]]


def frames(address: Address, picture: Picture, at: float, interval: float) -> tuple[Frame, ...]:
    """`at` is when the picture came, by the clock here."""
    now, step = picture.at or 0.0, max(interval, picture.interval)
    since = now - step * MOST_FRAMES
    courses = _gpus(address, since, now)
    for run in [run.run for run in picture.runs if run.is_live][:MOST_RUNS]:
        courses |= _loss(address, run, since, now)
    moments = [now - step * back for back in range(MOST_FRAMES, 0, -1)]
    found = (Frame(at - (now - moment), moment, step, _values(courses, moment, step)) for moment in moments)
    return tuple(frame for frame in found if frame.values)


def _gpus(address: Address, since: float, now: float) -> dict[Key, Course]:
    told = _asked(address, f"/api/v1/node?from={since:.3f}&to={now:.3f}&points={MOST_FRAMES}")
    gpus = told.get("gpus")
    return {("gpu", number, field): course
            for number, fields in (gpus.items() if isinstance(gpus, dict) else ()) if isinstance(fields, dict)
            for field in GPU_FIELDS if (course := _course(fields.get(field), "x", "mean"))}  # fmt: skip


def _loss(address: Address, run: str, since: float, now: float) -> dict[Key, Course]:
    query = f"fields=loss&x=time&from={since:.3f}&to={now:.3f}&points={MOST_FRAMES}"
    told = _asked(address, f"/api/v1/runs/{quote(run, safe='')}/series?{query}")
    fields = told.get("fields")
    loss = fields.get("loss") if isinstance(fields, dict) else None
    course = _course({**loss, "x": told.get("x_values")}, "x", "mean") if isinstance(loss, dict) else None
    return {("run", run, "loss"): course} if course else {}


def _asked(address: Address, path: str) -> dict[str, Any]:
    try:
        told = address.get(path)
    except Unheard:
        return {}
    return told if isinstance(told, dict) else {}


def _course(told: Any, x: str, y: str) -> Course | None:
    """None where it is not two columns of numbers, of one length and in order."""
    places, values = (told.get(x), told.get(y)) if isinstance(told, dict) else (None, None)
    if not isinstance(places, list) or not isinstance(values, list) or len(places) != len(values):
        return None
    numbers = [float(place) for place in places if isinstance(place, (int, float)) and math.isfinite(place)]
    if len(numbers) != len(places) or numbers != sorted(numbers):
        return None
    return numbers, [float(value) if isinstance(value, (int, float)) else None for value in values]


def _values(courses: dict[Key, Course], moment: float, step: float) -> dict[Key, float]:
    """What was told last, if that was not long before."""
    found: dict[Key, float] = {}
    for key, (places, values) in courses.items():
        at = bisect_right(places, moment) - 1
        value = values[at] if at >= 0 and places[at] > moment - max(step, _SECOND) else None
        if value is not None:
            found[key] = value
    return found
