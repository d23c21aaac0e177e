"""Desks by a clock that is set by hand, and what they would have told."""

from tests.notify.support import Hands, finding
from trainvitals.alerting.channels import QuietHours
from trainvitals.detect.finding import Change
from trainvitals.notify.desk import Alerts, Desk, Messages
from trainvitals.notify.ledger import Ledger
from trainvitals.notify.limits import Pace
from trainvitals.notify.quiet import Quiet

PACE = Pace(5, 60)
NIGHT = QuietHours("22:00", "07:00", "Europe/Berlin")
XID = finding("GpuXidFatal", what="Xid 79", gpu="3", uuid="GPU-3")
STALLED = finding("TrainingStalled", what="no step for 300 s", run="gemma")


def people(hands: Hands, hours: QuietHours | None = None, *, only_pages: bool = False) -> Messages:
    return Messages(Ledger(), hands.clock, PACE, Quiet(hours), only_pages=only_pages)


def told(desk: Desk) -> list[tuple[str, str, str]]:
    """What is due, which is then told."""
    batch = desk.due()
    if batch is None:
        return []
    desk.done(batch)
    return [(item.finding.kind, item.state, item.severity) for item in batch.items]


def note(desk: Desk, *changes: Change) -> None:
    for change in changes:
        desk.note(change)


def alerts(hands: Hands) -> Alerts:
    return Alerts(Ledger(), hands.clock, Pace(0.1, 0.5))
