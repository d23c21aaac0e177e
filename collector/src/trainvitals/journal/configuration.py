"""A configuration as run.json has it: taken at once, bounded, without secrets, and no part of it kept alive.

taken({"lr": 0.1, "db": {"password": "x"}, "mask": np.zeros(5000)})
-> {"lr": 0.1, "db": {"password": "(hidden)"}, "mask": "<ndarray of 5000 elements>"}
"""

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from types import SimpleNamespace
from typing import Any

from trainvitals.journal.record import plain_scalar
from trainvitals.journal.secrecy import HIDDEN, names_secret, without_secrets

MAX_ELEMENTS, MAX_ITEMS, MAX_CHARACTERS, MAX_DEPTH = 1000, 10_000, 10_000, 20
# A reader takes 1 MiB of run.json.
MAX_WHOLE_BYTES = 500_000
_VALUE_BYTES, _ESCAPED_BYTES = 8, 6
_LEFT_OUT = "<left out: too much>"
_UNREAD = "<not read>"


def taken(config: Mapping[str, Any]) -> dict[str, Any]:
    """Whatever is in it costs its own key at most."""
    plain = _Taker().take(config)
    return plain if isinstance(plain, dict) else {"config": plain}


def taken_list(values: Iterable[Any]) -> list[Any]:
    plain = _Taker().take(list(values))
    return plain if isinstance(plain, list) else [plain]


class _Taker:
    def __init__(self) -> None:
        self._left = MAX_WHOLE_BYTES
        self._within: set[int] = set()

    def take(self, value: Any) -> Any:
        self._left -= _VALUE_BYTES
        try:
            return self._taken(value)
        except Exception as error:  # a value of the user's own may raise anything
            return f"<{type(value).__name__}: {type(error).__name__}>"

    def _taken(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(str.__str__(value))
        if value is None or isinstance(value, (bool, int, float)):
            return plain_scalar(value)
        if id(value) in self._within:
            return f"<{type(value).__name__} within itself>"
        if len(self._within) >= MAX_DEPTH:
            return f"<{type(value).__name__} nested too deep>"
        self._within.add(id(value))
        try:
            return self._inside(value)
        finally:
            self._within.discard(id(value))

    def _inside(self, value: Any) -> Any:
        if (members := members_of(value)) is not None:
            return self._mapping(value, members)
        if isinstance(value, (list, tuple, set, frozenset)):
            return _too_many(value, len(value), MAX_ITEMS) or self._listed(value)
        return self._foreign(value)

    def _mapping(self, value: Any, members: Mapping[Any, Any]) -> Any:
        if text := _too_many(value, len(members), MAX_ITEMS):
            return text
        plain: dict[str, Any] = {}
        for key, item in members.items():
            if self._left < 0:
                return plain | {"...": _LEFT_OUT}
            name = self._key(key)
            plain[name] = HIDDEN if names_secret(name, item) else self.take(item)
        return plain

    def _key(self, key: Any) -> str:
        try:
            return self._text(str.__str__(key) if isinstance(key, str) else str(key))
        except Exception as error:
            return f"<{type(key).__name__}: {type(error).__name__}>"

    def _listed(self, values: Iterable[Any]) -> list[Any]:
        """Of a command line that was split, what follows `--password` is one."""
        plain: list[Any] = []
        option = ""
        for value in values:
            if self._left < 0:
                return [*plain, _LEFT_OUT]
            is_value = isinstance(value, str) and not value.startswith("-")
            plain.append(HIDDEN if option and is_value and names_secret(option, value) else self.take(value))
            option = value if isinstance(value, str) and value.startswith("--") and "=" not in value else ""
        return plain

    def _foreign(self, value: Any) -> Any:
        if isinstance(value, Enum):
            return self.take(value.value)
        if isinstance(value, date):
            return value.isoformat()
        if (text := _unread(value)) is not None:
            return text
        for method in ("tolist", "item", "__float__"):
            if hasattr(value, method):
                return self.take(getattr(value, method)())
        return self._text(str(value))

    def _text(self, text: str) -> str:
        if len(text) > MAX_CHARACTERS:
            return f"<text of {len(text)} characters>"
        self._left -= len(text) * (1 if text.isascii() else _ESCAPED_BYTES)
        return without_secrets(text)


def members_of(value: Any) -> Mapping[Any, Any] | None:
    """Of what has names for what it holds."""
    if isinstance(value, Mapping):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, _UNREAD) for field in fields(value) if field.name[0] != "_"}
    # Where nobody has imported it, nothing is of its kind.
    argparse = sys.modules.get("argparse")
    if isinstance(value, SimpleNamespace) or (argparse and isinstance(value, argparse.Namespace)):
        return {name: member for name, member in vars(value).items() if name[:1] != "_"}
    return None


def _too_many(value: Any, count: int, most: int) -> str:
    return f"<{type(value).__name__} of {count} elements>" if count > most else ""


def _unread(value: Any) -> str | None:
    """What is said of an array or a tensor in place of its elements: where they are many, or lie on another device,
    where to read them is to wait for it."""
    count = _count(value)
    device = _device(value)
    if "cpu" not in device.lower() and count is not None:
        return f"<{type(value).__name__} of {count} elements on {device}>"
    return _too_many(value, count or 0, MAX_ELEMENTS) or None


def _count(value: Any) -> int | None:
    """None for what has no elements."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return len(value)
    for name in ("numel", "size"):
        count = getattr(value, name, None)
        count = count() if name == "numel" and callable(count) else count
        if type(count) is int:
            return count
    return math.prod(map(int, value.shape)) if hasattr(value, "shape") else None


def _device(value: Any) -> str:
    """As "cpu", "cuda:0"; "cpu" for what knows of none."""
    device = getattr(value, "device", None)
    name = getattr(device, "platform", device)
    return str(name) if isinstance(name, str) or hasattr(device, "type") else "cpu"
