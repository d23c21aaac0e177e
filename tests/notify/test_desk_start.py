"""What was told before a start is not told again, and what is gone has ended."""

from tests.notify.desks import STALLED, XID, alerts, note, people, told
from tests.notify.support import BEGAN, Hands, closed, finding, opened
from trainvitals.notify.case import case_of
from trainvitals.notify.limits import KEPT_SECONDS, LINGERS_SECONDS


def test_after_a_start_what_was_told_is_not_told_again_and_what_is_gone_ended(hands: Hands) -> None:
    before = people(hands)
    note(before, opened(), opened(XID))
    assert told(before)
    after = people(hands)
    after.ledger.restore(before.ledger.cases)
    after.adopt([opened(), opened(STALLED), opened(finding("GpuMissing"), cause=XID)])
    assert sorted(told(after)) == [("GpuXidFatal", "resolved", "page"), ("TrainingStalled", "open", "page")]
    hands.go(600)
    note(after, closed(STALLED), closed())
    assert {state for _, state, _ in told(after)} == {"resolved"}


def test_after_a_start_alerts_are_refreshed_or_ended(hands: Hands) -> None:
    before = alerts(hands)
    note(before, opened(), opened(XID))
    assert told(before)
    after = alerts(hands)
    after.ledger.restore([case_of(case.line)[1] or case for case in before.ledger.cases])
    after.adopt([opened()])
    assert sorted(told(after)) == [("GpuXidFatal", "open", "page"), ("TrainingNonFinite", "open", "page")]
    hands.go(LINGERS_SECONDS["page"])
    assert sorted(told(after)) == [("GpuXidFatal", "resolved", "page"), ("TrainingNonFinite", "open", "page")]


def test_an_alert_of_before_ends_even_where_it_was_refreshed_meanwhile(hands: Hands) -> None:
    """The owner may come with what is open a moment after the start."""
    before = alerts(hands)
    note(before, opened())
    assert told(before)
    [case] = before.ledger.cases
    after = alerts(hands)
    after.ledger.restore([case_of(case.line)[1] or case])
    assert told(after) == [("TrainingNonFinite", "open", "page")]
    hands.go(1)
    after.adopt([])
    hands.go(LINGERS_SECONDS["page"])
    assert told(after) == [("TrainingNonFinite", "resolved", "page")]


def test_what_opens_anew_under_another_time_is_the_same(hands: Hands) -> None:
    """An owner that lost its memory finds what it found before."""
    before = people(hands)
    note(before, opened())
    assert told(before)
    after = people(hands)
    after.ledger.restore(before.ledger.cases)
    note(after, opened(when=BEGAN + 30))
    assert not told(after)


def test_what_ended_days_ago_is_forgotten(hands: Hands) -> None:
    desk = people(hands)
    note(desk, opened(), closed(), opened(XID))
    hands.go(KEPT_SECONDS + 61)
    assert told(desk) == [("GpuXidFatal", "open", "page")]
    assert desk.ledger.dropped == 1


def test_what_is_given_up_is_out_of_the_way_of_people_and_goes_on_for_alertmanager(hands: Hands) -> None:
    for desk, left in ((people(hands), 0), (alerts(hands), 1)):
        note(desk, opened())
        batch = desk.due()
        assert batch is not None and desk.drop(batch) == 1 - left
        assert len(desk.ledger.cases) == left
