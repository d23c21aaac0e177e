"""The alerts of a journal as lines for the terminal, or as JSON.

FIRING
page    GpuMissing         gpu1                       12 min   7 of 8 GPUs answer
LATELY ENDED
ticket  GpuTemperatureHigh GPU 3, gpu1                2 h ago
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainvitals.alerting.received import Alert, Known
from trainvitals.journal.node_events import read_events
from trainvitals.journal.record import seconds

View = dict[str, list[Alert]]
# A longer text pushes what follows in its own row alone.
WIDEST = 48
_UNITS = ((86400, "days"), (3600, "h"), (60, "min"))


def known(root: Path, now: float) -> View:
    """Of all hosts whose agents write to this journal."""
    views = [Known(read_events(folder)).view(now) for folder in sorted((root / "gpu").glob("*")) if folder.is_dir()]
    return {state: [alert for view in views for alert in view[state]] for state in ("firing", "resolved")}


def lines(view: View, now: float) -> Iterator[str]:
    if not view["firing"]:
        yield "no alert is firing, as far as Alertmanager told"
    else:
        yield "FIRING"
        yield from table([_row(alert, _span(now - _when(alert["starts"]))) for alert in view["firing"]])
    if view["resolved"]:
        yield "LATELY ENDED"
        yield from table([_row(each, f"{_span(now - _when(each['timestamp']))} ago") for each in view["resolved"]])


def _row(alert: Alert, age: str) -> tuple[str, ...]:
    labels, annotations = alert["labels"], alert["annotations"]
    what = annotations.get("summary") or annotations.get("description") or ""
    return tuple(map(_printable, (labels.get("severity", "-"), alert["name"], _place(labels), age, what)))


def _place(labels: Mapping[str, Any]) -> str:
    parts = [f"{word} {labels[name]}" for name, word in (("run", "run"), ("rank", "rank"), ("gpu", "GPU"))
             if labels.get(name)]  # fmt: skip
    if not labels.get("gpu") and labels.get("uuid"):
        parts.append(str(labels["uuid"]))
    return ", ".join([*parts, *filter(None, [labels.get("instance")])]) or "-"


def table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [min(WIDEST, max(map(len, column))) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _printable(text: object) -> str:
    """What came by the network must not move the cursor."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text))


def _when(stamp: str) -> float:
    return seconds(stamp) or 0.0


def _span(length: float) -> str:
    for size, unit in _UNITS:
        if length >= size:
            return f"{length / size:.0f} {unit}"
    return f"{max(0.0, length):.0f} s"
