"""The alerts of a journal as lines for the terminal, or as JSON.

FIRING
page    GpuMissing         gpu1                       12 min   7 of 8 GPUs answer
LATELY ENDED
ticket  GpuTemperatureHigh GPU 3, gpu1                2 h ago
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from trainvitals.alerting.received import Alert, Known, how_soft
from trainvitals.alerting.rows import grouped
from trainvitals.errors import plain
from trainvitals.journal import layout
from trainvitals.journal.node_events import read_events
from trainvitals.journal.record import seconds

View = dict[str, list[Alert]]
# A longer text pushes what follows in its own row alone.
WIDEST = 48
_UNITS = ((86400, "days"), (3600, "h"), (60, "min"))


def known(root: Path, now: float) -> View:
    """Of all hosts whose agents write to this journal."""
    folders = [folder for folder in sorted((root / "gpu").glob("*")) if layout.is_folder(folder)]
    views = [Known(read_events(folder)).view(now) for folder in folders]
    return {state: [alert for view in views for alert in view[state]] for state in ("firing", "resolved")}


def beside(own: Sequence[Alert], others: Sequence[Alert], ended: Collection[str] = ()) -> list[Alert]:
    """The worst first; of what is equally bad that of runs that have ended last, and the newest first. What an agent
    found itself need not be told by Alertmanager too."""
    # A rule about a run may know of no machine.
    there = {where for alert in own for where in (_where(alert), _where(alert, instance=""))}
    found = [*own, *(alert for alert in others if _where(alert) not in there)]
    return sorted(found, key=lambda one: (how_soft(one), one["labels"].get("run") in ended, -_when(one["starts"])))


def _where(alert: Alert, **other: str) -> tuple[str, ...]:
    labels = {**alert["labels"], **other}
    return (alert["name"], *(labels.get(name, "") for name in ("instance", "run", "rank", "uuid")))


def lines(view: View, now: float) -> Iterator[str]:
    if not view["firing"]:
        yield "no alert is firing, as far as the agent and Alertmanager told"
    else:
        yield "FIRING"
        yield from table([_row(alert, _span(now - _when(alert["starts"]))) for alert in grouped(view["firing"])])
    if view["resolved"]:
        yield "LATELY ENDED"
        ended = grouped(view["resolved"])
        yield from table([_row(each, f"{_span(now - _when(each['timestamp']))} ago") for each in ended])


def _row(alert: Alert, age: str) -> tuple[str, ...]:
    labels, annotations = alert["labels"], alert["annotations"]
    what = annotations.get("summary") or annotations.get("description") or ""
    told = (labels.get("severity", "-"), alert["name"], alert["where"] or "-", age, f"{_quiet(alert)}{what}")
    return tuple(plain(str(each)) for each in told)


def _quiet(alert: Alert) -> str:
    """Why nobody is told of it."""
    if known := alert.get("acknowledged"):
        return f"[acknowledged{' by ' if known['by'] else ''}{known['by']}] "
    known = alert.get("silenced")
    return f"[silenced until {known['until'][:16].replace('T', ' ')} UTC] " if known else ""


def table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [min(WIDEST, max(map(len, column))) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _when(stamp: str) -> float:
    return seconds(stamp) or 0.0


def _span(length: float) -> str:
    for size, unit in _UNITS:
        if length >= size:
            return f"{length / size:.0f} {unit}"
    return f"{max(0.0, length):.0f} s"
