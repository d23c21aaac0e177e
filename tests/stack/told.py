"""What was told, judged: each fault once and its end once, and nothing that befell nobody.

amiss(alerts(messages), {"GpuMissing": (phase, phase + cycle)})
->  ["GpuMissing of demo-2: firing 3 times, resolved 3 times"]
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

# From when to when an alert of that name may begin and be of one cycle.
Windows = Mapping[str, tuple[float, float]]


class Alert(NamedTuple):
    """One status of one alert, whichever messages name it again because another has joined its group."""

    fingerprint: str
    starts: str
    status: str
    labels: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.labels["alertname"]

    @property
    def began(self) -> float:
        return datetime.fromisoformat(self.starts).timestamp()

    @property
    def place(self) -> str:
        return self.labels.get("instance") or self.labels.get("run") or "nowhere"


def alerts(messages: Iterable[Mapping[str, Any]]) -> list[Alert]:
    told = (
        Alert(each["fingerprint"], each["startsAt"], each["status"], each["labels"])
        for message in messages
        for each in message["alerts"]
    )
    return list({(one.fingerprint, one.starts, one.status): one for one in told}.values())


def astray(told: Iterable[Alert], known: Collection[str], since: float) -> list[str]:
    """Alerts that nothing was to raise; how busy the machine is that this runs on is no matter of the stack's."""
    return sorted({
        f"{one.name} of {one.place}"
        for one in told
        if one.name not in known and not one.name.startswith("Host") and one.began >= since
    })  # fmt: skip


def amiss(told: Iterable[Alert], windows: Windows) -> list[str]:
    """Of each fault what was not told once as firing and once as ended, for each of its places."""
    return [line for name, window in windows.items() for line in _amiss(name, _of_cycle(told, name, window))]


def _of_cycle(told: Iterable[Alert], name: str, window: tuple[float, float]) -> list[Alert]:
    begin, end = window
    return [one for one in told if one.name == name and begin <= one.began < end]


def _amiss(name: str, told: list[Alert]) -> Iterator[str]:
    if not told:
        yield f"{name}: never told"
    counts = Counter((one.fingerprint, one.status) for one in told)
    for one in {each.fingerprint: each for each in told}.values():
        firing, resolved = counts[one.fingerprint, "firing"], counts[one.fingerprint, "resolved"]
        if (firing, resolved) != (1, 1) and not (firing + resolved == 1 and _is_outdone(one, told)):
            yield f"{name} of {one.place}: firing {firing} times, resolved {resolved} times"


def _is_outdone(one: Alert, told: Iterable[Alert]) -> bool:
    """By a page of the same name: what begins or ends while that inhibits it has a beginning or an end that
    Alertmanager does not tell."""
    return one.labels.get("severity") != "page" and any(other.labels.get("severity") == "page" for other in told)
