"""Alerts as rows for people: what befalls several ranks of a run is one row, which says where.

grouped([{"name": "TrainingNonFinite", "labels": {"run": "gemma", "rank": "0", …}, …}, …])
->  [{"name": "TrainingNonFinite", "where": "run gemma, ranks 0, 1, gpu1", …}]
"""

from collections.abc import Iterable, Sequence
from typing import Any

from trainvitals.alerting.received import Alert

NAMED = 8
_HIDDEN = frozenset(("alertname", "severity", "source", "run", "rank", "gpu", "uuid", "instance"))


def grouped(alerts: Iterable[Alert]) -> list[Alert]:
    """Each as the first of its group, with the labels that all of it have, since when the group fires."""
    groups: dict[object, list[Alert]] = {}
    for alert in alerts:
        labels = alert["labels"]
        quiet = (bool(alert.get("acknowledged")), bool(alert.get("silenced")))
        of_run = (alert["name"], labels.get("severity"), labels["run"], *quiet) if labels.get("run") else None
        groups.setdefault(of_run or (alert["fingerprint"], alert["starts"]), []).append(alert)
    return [{**group[0], "labels": _common(group), "starts": min(str(alert["starts"]) for alert in group),
             "where": _where(group)} for group in groups.values()]  # fmt: skip


def _common(group: Sequence[Alert]) -> dict[str, str]:
    """A row of eight ranks is not the first one's."""
    return {name: value for name, value in group[0]["labels"].items()
            if all(alert["labels"].get(name) == value for alert in group)}  # fmt: skip


def _where(group: Sequence[Alert]) -> str:
    """All that tells it from others of its name."""
    more = sorted({name for alert in group for name in alert["labels"]} - _HIDDEN)
    gpus = _values(group, "gpu")
    parts = [_named("run", _values(group, "run")), _named("rank", _values(group, "rank")),
             _named("GPU", gpus) if gpus else _listed(_values(group, "uuid")),
             *(_named(name, _values(group, name)) for name in more), _listed(_values(group, "instance"))]  # fmt: skip
    return ", ".join(filter(None, parts))


def _values(group: Sequence[Alert], name: str) -> list[str]:
    found = {str(value) for alert in group if (value := alert["labels"].get(name))}
    return sorted(found, key=lambda value: (len(value), value) if value.isdigit() else (0, value))


def _named(name: str, values: Sequence[str]) -> str:
    return f"{name}{'s' * (len(values) > 1)} {_listed(values)}" if values else ""


def _listed(values: Sequence[Any]) -> str:
    rest = len(values) - NAMED
    return ", ".join(values[:NAMED]) + (f" and {rest} more" if rest > 0 else "")
