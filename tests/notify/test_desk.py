"""What is told when: no network, no disk, a clock that is set by hand."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from tests.notify.desks import NIGHT, STALLED, XID, note, people, told
from tests.notify.support import BEGAN, Hands, closed, finding, opened, storm, ticket, updated
from trainvitals.alerting.channels import QuietHours
from trainvitals.notify.quiet import Quiet


def test_the_first_goes_at_once_the_next_gather_and_then_it_is_seldom(hands: Hands) -> None:
    desk, sizes = people(hands), []
    for change in storm(1000):
        note(desk, change)
        sizes += [len(told(desk))]
    assert sum(sizes) == sizes[0] == 1
    hands.go(4.9)
    assert not told(desk)
    hands.go(0.2)
    assert len(told(desk)) == 999
    note(desk, opened(ticket()))
    hands.go(59)
    assert not told(desk)
    hands.go(2)
    assert len(told(desk)) == 1


def test_after_quiet_the_next_goes_at_once_again(hands: Hands) -> None:
    desk = people(hands)
    for change in (opened(), closed(), opened(when=BEGAN + 100)):
        note(desk, change)
        assert told(desk)
        hands.go(70)


def test_a_storm_that_goes_on_is_a_message_a_window(hands: Hands) -> None:
    desk, messages = people(hands), 0
    for change in storm(600):
        note(desk, change)
        messages += bool(told(desk))
        hands.go(1)
    assert messages <= 2 + 600 / 60


def test_no_page_waits_for_a_ticket_that_was_sent(hands: Hands) -> None:
    desk = people(hands)
    note(desk, opened(ticket()))
    assert told(desk)
    note(desk, opened(ticket("GpuMemoryHigh")))
    assert not told(desk)
    note(desk, opened())
    assert {kind for kind, _, _ in told(desk)} == {"TrainingNonFinite", "GpuMemoryHigh"}
    note(desk, opened(XID))
    assert not told(desk)


def test_what_is_folded_makes_no_message_and_goes_with_its_cause(hands: Hands) -> None:
    desk = people(hands)
    note(desk, opened(XID), opened(STALLED, cause=XID), updated(XID, evidence=(STALLED,)))
    batch = desk.due()
    assert batch is not None
    [item] = batch.items
    assert (item.finding.kind, item.change.evidence) == ("GpuXidFatal", (STALLED,))
    desk.done(batch)
    hands.go(600)
    note(desk, opened(finding("GpuMissing"), cause=XID), updated(XID, evidence=(STALLED, finding("GpuMissing"))))
    assert not told(desk)


def test_a_page_that_is_folded_under_a_ticket_is_a_page(hands: Hands) -> None:
    killed, oom = finding("TrainingKilled", run="gemma"), finding("HostOomKill", "ticket")
    desk = people(hands)
    note(desk, opened(oom))
    assert told(desk) == [("HostOomKill", "open", "ticket")]
    note(desk, opened(killed, cause=oom), updated(oom, evidence=(killed,)))
    assert told(desk) == [("HostOomKill", "worse", "page")]


def test_so_it_is_where_it_is_the_last_of_many(hands: Hands) -> None:
    desk, oom = people(hands, NIGHT), finding("HostOomKill", "ticket")
    many = tuple(finding("Small", "ticket", run=f"r{number}") for number in range(100))
    note(desk, updated(oom, evidence=(*many, STALLED)))
    batch = desk.due(at_once=True)
    assert batch is not None
    [item] = batch.items
    assert item.severity == "page" and STALLED in item.change.evidence
    assert len(item.change.evidence) + item.more == 101


def test_an_escalation_is_told_and_an_update_is_not(hands: Hands) -> None:
    desk, starved = people(hands), finding("TrainingDataStarved", "ticket")
    note(desk, opened(starved))
    assert told(desk)
    hands.go(600)
    note(desk, updated(starved))
    assert not told(desk)
    note(desk, updated(starved._replace(severity="page")))
    assert told(desk) == [("TrainingDataStarved", "worse", "page")]


def test_an_end_is_told_where_the_beginning_was(hands: Hands) -> None:
    desk = people(hands)
    note(desk, opened(), closed(finding("Unknown")))
    assert told(desk)
    hands.go(600)
    note(desk, closed())
    assert told(desk) == [("TrainingNonFinite", "resolved", "page")]
    hands.go(600)
    assert not told(desk) and not desk.ledger.cases


def test_what_began_and_ended_before_it_could_be_told_is_told_as_such(hands: Hands) -> None:
    desk = people(hands)
    note(desk, opened(), closed(), opened(when=BEGAN + 90))
    assert told(desk) == [("TrainingNonFinite", "over", "page"), ("TrainingNonFinite", "open", "page")]


def test_so_is_what_became_a_page_and_ended_at_once(hands: Hands) -> None:
    desk = people(hands)
    note(desk, opened(ticket()))
    assert told(desk)
    note(desk, updated(ticket()._replace(severity="page")), closed(ticket()._replace(severity="page")))
    assert told(desk) == [("GpuTemperatureHigh", "over", "page")]


def test_infos_are_told_to_nobody(hands: Hands) -> None:
    desk, info = people(hands), finding("TrainingStepTimeOutlier", "info")
    note(desk, opened(info))
    assert not told(desk)
    note(desk, closed(info))
    assert not told(desk) and not desk.ledger.cases


def test_what_goes_on_again_before_its_end_was_told_is_two(hands: Hands) -> None:
    desk = people(hands)
    note(desk, opened())
    assert told(desk)
    note(desk, closed(), opened(when=BEGAN + 90))
    hands.go(600)
    assert told(desk) == [("TrainingNonFinite", "resolved", "page"), ("TrainingNonFinite", "open", "page")]


# --- Quiet hours ---


def at(hands: Hands, day: int, hour: int, minute: int = 0, zone: str = "Europe/Berlin") -> None:
    moment = datetime(2025, 7, day, hour, minute, tzinfo=ZoneInfo(zone)).timestamp()
    hands.go(moment - hands.wall)


def test_tickets_wait_out_the_quiet_hours_and_pages_do_not(hands: Hands) -> None:
    desk = people(hands, NIGHT)
    at(hands, 30, 22)
    note(desk, opened(ticket()))
    assert not told(desk)
    note(desk, opened())
    assert told(desk) == [("TrainingNonFinite", "open", "page")]
    at(hands, 31, 6, 59)
    assert not told(desk)
    at(hands, 31, 7)
    assert told(desk) == [("GpuTemperatureHigh", "open", "ticket")]


def test_what_ends_in_quiet_hours_is_dropped_where_it_was_not_told(hands: Hands) -> None:
    desk = people(hands, NIGHT)
    at(hands, 30, 21, 59)
    note(desk, opened(ticket()))
    assert told(desk)
    at(hands, 30, 23)
    note(desk, closed(ticket()), opened(ticket("GpuMemoryHigh")), closed(ticket("GpuMemoryHigh")))
    assert not told(desk)
    at(hands, 31, 8)
    assert told(desk) == [("GpuTemperatureHigh", "resolved", "ticket")]


def test_in_quiet_hours_the_end_of_a_page_and_an_escalation_are_told(hands: Hands) -> None:
    desk = people(hands, NIGHT)
    at(hands, 30, 23)
    note(desk, opened(), opened(ticket()))
    assert told(desk)
    hands.go(600)
    note(desk, closed(), updated(ticket()._replace(severity="page")))
    assert sorted(told(desk)) == [("GpuTemperatureHigh", "open", "page"), ("TrainingNonFinite", "resolved", "page")]


@pytest.mark.parametrize(("hours", "moment", "is_quiet"), [
    (NIGHT, (21, 59), False), (NIGHT, (22, 0), True), (NIGHT, (0, 0), True), (NIGHT, (6, 59), True),
    (NIGHT, (7, 0), False), (QuietHours("12:00", "13:30", "Asia/Tokyo"), (5, 0), True),
    (QuietHours("12:00", "13:30", "Asia/Tokyo"), (6, 30), False), (QuietHours("12:00", "13:30", "UTC"), (14, 30), True),
    (None, (23, 0), False),
])  # fmt: skip
def test_hours_are_those_of_their_zone(hands: Hands, hours: QuietHours | None, moment: tuple[int, int],
                                       is_quiet: bool) -> None:  # fmt: skip
    at(hands, 30, *moment)
    assert Quiet(hours).is_now(hands.wall) is is_quiet


def test_a_zone_that_this_machine_does_not_know_is_said(caplog: pytest.LogCaptureFixture) -> None:
    assert not Quiet(QuietHours("22:00", "07:00", "Mars/Olympus")).is_now(BEGAN)
    assert "QUIET_HOURS: this machine knows no time zones" in caplog.text


def test_a_pager_gets_pages_alone_and_no_end(hands: Hands) -> None:
    desk = people(hands, only_pages=True)
    note(desk, opened(ticket()), opened())
    assert told(desk) == [("TrainingNonFinite", "open", "page")]
    hands.go(600)
    note(desk, closed(), closed(ticket()), opened(XID), closed(XID))
    assert told(desk) == [("GpuXidFatal", "over", "page")]
    assert not desk.ledger.cases
