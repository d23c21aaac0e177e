"""A run that records nothing, for TRAINVITALS=off, for ranks that are not to speak, and for what a run becomes in
another process.
"""

import os
from collections.abc import AsyncIterable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

_OFF = ("off", "0", "false", "no")
Loader = TypeVar("Loader", bound=Iterable[Any] | AsyncIterable[Any])


def is_switched_off() -> bool:
    """By TRAINVITALS=off, which nothing of ours is to run beside."""
    return os.environ.get("TRAINVITALS", "").lower() in _OFF


class Untimed:
    """A step or a phase that nobody times; may be entered again, as the others."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class OffRun:
    id = name = ""
    rank = local_rank = number = dropped = troubles = 0
    world_size = 1
    folder: Path | None = None
    status = "off"

    def __bool__(self) -> bool:
        return False

    def __enter__(self) -> "OffRun":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def data(self, loader: Loader) -> Loader:
        return loader

    def step(self, number: int | None = None) -> Untimed:
        return Untimed()

    def phase(self, name: object) -> Untimed:
        return Untimed()

    def log(self, values: Mapping[str, Any] | None = None, /, *, step: int | None = None, **more: Any) -> None:
        pass

    def watch(self, *_: Any, **__: Any) -> "OffRun":
        return self

    def remove(self) -> None:
        pass

    def profile_inference(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {}

    def begin_step(self, number: int | None = None) -> None:
        pass

    end_step = begin_step

    def _nothing(self, *_: Any, **__: Any) -> None:
        pass

    add_seconds = checkpoint = event = write_event = alert_when = describe = finish = failed = _nothing
    # What a run has for the rest of the package.
    warn = keep = keep_agent = record_to = opened = refused = wait = forget = _nothing
    crash = note_signal = end_at_exit = _nothing
