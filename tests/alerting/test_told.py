"""How the stack's tests judge what was told, tried with messages that nobody sent."""

from typing import Any

import pytest

from tests.stack.told import alerts, amiss, astray

CYCLE = 275.0
MISSING = {"GpuMissing": (1000.0, 1000.0 + CYCLE)}
Told = dict[str, Any]


def told(status: str = "firing", at: int = 1010, name: str = "GpuMissing", **labels: str) -> Told:
    labels = {"alertname": name, "instance": "demo-2", "severity": "page", **labels}
    # As Alertmanager writes it: a second with nine digits behind it.
    starts = f"1970-01-01T00:{at // 60:02}:{at % 60:02}.123456789Z"
    return {"labels": labels, "status": status, "startsAt": starts, "fingerprint": str(sorted(labels.items()))}


def judged(*messages: list[Told]) -> list[str]:
    return amiss(alerts({"alerts": message} for message in messages), MISSING)


def test_once_and_its_end_once_is_well() -> None:
    assert judged([told()], [told("resolved")]) == []


def test_a_group_that_is_named_again_because_another_joined_counts_once() -> None:
    other = {"instance": "demo-1"}
    assert judged([told()], [told(), told(**other)], [told("resolved"), told("resolved", **other)]) == []


def test_what_the_next_cycle_brings_is_not_of_this_one() -> None:
    later = 1010 + int(CYCLE)
    assert judged([told()], [told("resolved")], [told(at=later)]) == []
    assert judged([told(at=900)], [told()], [told("resolved")]) == []


def test_one_that_fires_three_times_with_ends_between_is_named() -> None:
    three = [[told(status, at)] for at in (1010, 1040, 1070) for status in ("firing", "resolved")]
    assert judged(*three) == ["GpuMissing of demo-2: firing 3 times, resolved 3 times"]


@pytest.mark.parametrize(("messages", "said"), [
    ([], "GpuMissing: never told"),
    ([[told()]], "GpuMissing of demo-2: firing 1 times, resolved 0 times"),
    ([[told("resolved")]], "GpuMissing of demo-2: firing 0 times, resolved 1 times"),
    ([[told(name="GpuXidFatal")]], "GpuMissing: never told")])  # fmt: skip
def test_so_is_what_is_missing(messages: list[list[Told]], said: str) -> None:
    assert judged(*messages) == [said]


def test_a_ticket_may_end_unseen_where_a_page_of_its_name_outdoes_it() -> None:
    ticket = told(severity="ticket")
    assert judged([ticket], [told()], [told("resolved")]) == []
    assert judged([ticket]) == ["GpuMissing of demo-2: firing 1 times, resolved 0 times"]
    again = [[told(severity="ticket", at=at)] for at in (1010, 1040)]
    assert judged(*again, [told()], [told("resolved")]) == ["GpuMissing of demo-2: firing 2 times, resolved 0 times"]


def test_what_befell_nobody_is_named_wherever_it_is_said_to_be() -> None:
    found = alerts([{"alerts": [
        told(), told(name="HostCpuHigh"), told(name="AgentsDownMany", instance=""),
        told(name="AlertmanagerDeliveryFailing", instance="alertmanager"), told(name="AlertmanagerDown", at=990),
    ]}])  # fmt: skip
    assert astray(found, MISSING, 1000.0) == [
        "AgentsDownMany of nowhere",
        "AlertmanagerDeliveryFailing of alertmanager",
    ]
