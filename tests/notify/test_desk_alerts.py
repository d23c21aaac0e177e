"""Alertmanager is told what fires, again and again, and of the end once the rule of the name has ended too."""

import pytest

from tests.notify.desks import STALLED, XID, alerts, note, told
from tests.notify.support import Hands, closed, finding, opened, ticket, updated
from tests.prometheus import support as rules
from trainvitals.detect.advice import ADVICE, has_rule
from trainvitals.notify.limits import FIRES_SECONDS, LINGERS_SECONDS, REFRESH_SECONDS


def test_an_alert_fires_at_once_is_refreshed_and_ends(hands: Hands) -> None:
    desk = alerts(hands)
    note(desk, opened())
    assert told(desk) == [("TrainingNonFinite", "open", "page")]
    hands.go(REFRESH_SECONDS - 1)
    assert not told(desk)
    hands.go(1)
    assert told(desk) == [("TrainingNonFinite", "open", "page")]
    note(desk, closed(when=hands.clock.now()))
    assert not told(desk)
    hands.go(REFRESH_SECONDS)
    assert told(desk) == [("TrainingNonFinite", "open", "page")]
    hands.go(LINGERS_SECONDS["page"] - REFRESH_SECONDS)
    assert told(desk) == [("TrainingNonFinite", "resolved", "page")]
    hands.go(600)
    assert not told(desk)


@pytest.mark.parametrize("kind", ["TrainingGradientExplosion", "my own rule"])
def test_what_no_rule_tells_of_ends_at_once(hands: Hands, kind: str) -> None:
    desk = alerts(hands)
    note(desk, opened(finding(kind)))
    assert told(desk) == [(kind, "open", "page")]
    hands.go(FIRES_SECONDS)
    note(desk, closed(finding(kind), when=hands.clock.now()))
    assert told(desk) == [(kind, "resolved", "page")]


def test_a_clock_that_is_set_back_holds_no_end_up(hands: Hands) -> None:
    desk = alerts(hands)
    note(desk, opened())
    assert told(desk)
    hands.go(FIRES_SECONDS)
    note(desk, closed(when=hands.clock.now() + 7200))
    assert told(desk) == [("TrainingNonFinite", "resolved", "page")]


def test_those_without_a_rule_are_those_that_no_rule_is_called_by() -> None:
    assert {kind for kind in ADVICE if not has_rule(kind)} == ADVICE.keys() - {rule.name for rule in rules.alerts()}


def test_what_ends_soon_fires_long_enough_for_a_message(hands: Hands) -> None:
    desk = alerts(hands)
    note(desk, opened(), closed())
    assert told(desk) == [("TrainingNonFinite", "open", "page")]
    hands.go(FIRES_SECONDS - 1)
    assert not told(desk)
    hands.go(1)
    assert told(desk) == [("TrainingNonFinite", "resolved", "page")]


def test_infos_and_what_is_folded_are_alerts_too(hands: Hands) -> None:
    desk, info = alerts(hands), finding("TrainingStepTimeOutlier", "info")
    note(desk, opened(XID), opened(STALLED, cause=XID), opened(info))
    assert [kind for kind, _, _ in told(desk)] == ["GpuXidFatal", "TrainingStalled", "TrainingStepTimeOutlier"]


def test_an_escalation_is_another_alert_and_the_end_of_the_first(hands: Hands) -> None:
    desk = alerts(hands)
    note(desk, opened(ticket()))
    assert told(desk)
    hands.go(1)
    note(desk, updated(ticket()._replace(severity="page")))
    assert told(desk) == [("GpuTemperatureHigh", "open", "page"), ("GpuTemperatureHigh", "over", "ticket")]
    hands.go(REFRESH_SECONDS)
    assert told(desk) == [("GpuTemperatureHigh", "open", "page")]


def test_what_became_a_page_and_ended_at_once_fires_as_a_page(hands: Hands) -> None:
    desk = alerts(hands)
    note(desk, opened(ticket()))
    assert told(desk)
    hands.go(100)
    note(desk, closed(ticket()._replace(severity="page"), when=hands.clock.now()))
    assert ("GpuTemperatureHigh", "open", "page") in told(desk)
    hands.go(LINGERS_SECONDS["page"])
    assert told(desk) == [("GpuTemperatureHigh", "resolved", "page")]


def test_news_of_an_open_one_is_told_with_it(hands: Hands) -> None:
    desk = alerts(hands)
    note(desk, opened(XID))
    assert told(desk)
    note(desk, updated(XID, evidence=(STALLED,)))
    hands.go(1)
    assert told(desk) == [("GpuXidFatal", "open", "page")]
