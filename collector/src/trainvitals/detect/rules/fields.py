"""Whose a name is: what a GPU's or a host's line has is theirs, all else is the run's.

key("loss") -> "run.loss"      key("temperature_celsius") -> "gpu.temperature_celsius"
"""

from trainvitals import errors
from trainvitals.catalog import SERIES

SCOPES = ("run", "gpu", "host")
_NOT_NUMBERS = ("throttle_active",)
_FIELDS = {
    "gpu": frozenset((*SERIES["gpu"], "memory_percent")).difference(_NOT_NUMBERS),
    "host": frozenset(SERIES["host"]),
}


def key(name: str) -> str:
    scope = next((scope for scope, fields in _FIELDS.items() if name in fields), "run")
    return f"{scope}.{name}"


def scope_of(key: str) -> str:
    return key.partition(".")[0]


def field_of(key: str) -> str:
    return key.partition(".")[2]


def nearest(scope: str, name: str) -> str | None:
    """None where the name is one of the scope's; a run may tell any."""
    if scope == "run" or name in _FIELDS[scope]:
        return None
    return errors.nearest(name, _FIELDS[scope])
