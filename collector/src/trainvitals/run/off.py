"""A run that records nothing, for TRAINVITALS=off and for ranks that are not to speak."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

Loader = TypeVar("Loader", bound=Iterable[Any])


class OffRun:
    id = name = ""
    rank = local_rank = number = dropped = 0
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

    @contextmanager
    def step(self, number: int | None = None) -> Iterator[None]:
        yield

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        yield

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
