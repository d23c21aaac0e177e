"""How soon and how often: a storm is one message, and one fault after the other is told as it comes."""

import pytest

from tests.notify.support import Hands, storm
from trainvitals.notify.desk import Messages
from trainvitals.notify.ledger import Ledger
from trainvitals.notify.limits import PACES
from trainvitals.notify.quiet import Quiet

SETTLES = sorted(kind for kind in PACES if kind != "alertmanager")


def desk_of(kind: str, hands: Hands) -> Messages:
    return Messages(Ledger(), hands.clock, PACES[kind], Quiet(None))


def sent(desk: Messages) -> int:
    batch = desk.due()
    if batch:
        desk.done(batch)
    return len(batch.items) if batch else 0


@pytest.mark.parametrize("kind", SETTLES)
def test_a_storm_is_one_message_that_comes_well_within_a_second(kind: str) -> None:
    hands = Hands()
    desk, sizes = desk_of(kind, hands), []
    for change in storm(1000):
        desk.note(change)
        sizes.append(sent(desk))
    assert sum(sizes) == 0
    assert desk.wait() < 0.5
    hands.go(desk.wait())
    assert sent(desk) == 1000


def test_one_fault_after_the_other_is_told_to_a_program_as_it_comes() -> None:
    hands = Hands()
    desk = desk_of("webhook", hands)
    for change in storm(PACES["webhook"].burst):
        desk.note(change)
        hands.go(0.3)
        assert sent(desk) == 1
        hands.go(0.2)


def test_what_never_ends_to_come_is_told_seldom() -> None:
    hands = Hands()
    desk, messages = desk_of("webhook", hands), 0
    for change in storm(2000):
        desk.note(change)
        hands.go(0.5)
        messages += bool(sent(desk))
    assert messages < 1000 / PACES["webhook"].apart_seconds + 2 * PACES["webhook"].burst
