"""What disks and networks carry together, in a second, from the counters of each.

rates = HostRates(); rates.update(readings)  ->  {"disk_read_bytes_per_second": 5.2e8, "disk_busy_ratio": 0.97, …}
"""

from collections.abc import Callable, Iterable

from trainvitals.model import Labels, Reading

Rates = dict[str, float]
Sums = Callable[[Iterable[float]], float]
# Of the scope's counters: the rate's name, and how those of several devices become one.
_RATES: dict[str, dict[str, tuple[str, Sums]]] = {
    "disk": {"read_bytes_total": ("disk_read_bytes_per_second", sum),
             "written_bytes_total": ("disk_written_bytes_per_second", sum),
             "busy_seconds_total": ("disk_busy_ratio", max)},
    "network": {"receive_bytes_total": ("network_receive_bytes_per_second", sum),
                "transmit_bytes_total": ("network_transmit_bytes_per_second", sum)},
}  # fmt: skip


class HostRates:
    """A device that came, or whose counters began anew, counts from its second reading on."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, Labels], Reading] = {}
        self._known: dict[tuple[str, Labels], Rates] = {}

    def update(self, readings: Iterable[Reading]) -> Rates:
        now = {(one.scope, one.labels): one for one in readings if one.scope in _RATES}
        for key, reading in now.items():
            before = self._before.get(key)
            if before is not None and reading.timestamp > before.timestamp:
                self._known[key] = _grown(before, reading)
        self._before = now
        self._known = {key: rates for key, rates in self._known.items() if key in now}
        return dict(self._together())

    def _together(self) -> Iterable[tuple[str, float]]:
        for scope, counters in _RATES.items():
            for name, together in counters.values():
                values = [rates[name] for key, rates in self._known.items() if key[0] == scope and name in rates]
                if values:
                    yield name, together(values)


def _grown(before: Reading, now: Reading) -> Rates:
    grown: Rates = {}
    for counter, (name, _) in _RATES[now.scope].items():
        first, last = before.number(counter), now.number(counter)
        if first is not None and last is not None and last >= first:
            grown[name] = (last - first) / (now.timestamp - before.timestamp)
    return grown
