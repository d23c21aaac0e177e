"""Where a target stands with a run, on disk: runs/<run>/agent/sinks/<host>.<target>.json, one writer by a lock.

    {"sink":"wandb=p","id":"3f…","began":1753…,"rows":120,"position":{…},"marks":[[180,{…}]],"kept":{…},"over":[]}
`rows` and `position` belong together: what is before them is with the target for certain. A mark is a portion
that was begun: how many rows there are behind it, and up to where it was read.
"""

import errno
import fcntl
import os
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from trainvitals.journal import layout
from trainvitals.sinks import SinkError, Target

_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class SinkBusy(SinkError):
    """Another process hands the run on to this target."""


@dataclass(slots=True)
class State:
    sink: str
    id: str
    began: float
    rows: int = 0
    points: int = 0
    position: dict[str, Any] = field(default_factory=dict)
    marks: list[tuple[int, dict[str, int]]] = field(default_factory=list)
    kept: dict[str, Any] = field(default_factory=dict)
    over: list[Any] = field(default_factory=list)

    def reset(self) -> None:
        """What the target had is gone: it gets everything again."""
        self.rows, self.points, self.position, self.marks, self.over = 0, 0, {}, [], []


def state_path(run_folder: Path, host: str, target: Target) -> Path:
    return run_folder / "agent" / "sinks" / f"{host}.{target.key}.json"


def peek(path: Path) -> State | None:
    """What the file says; None where there is none, or one of another make."""
    with suppress(OSError, orjson.JSONDecodeError, TypeError):
        return State(**orjson.loads(path.read_bytes()))
    return None


class StateFile:
    """The state of one target and run, held by this process until `close`."""

    def __init__(self, path: Path, target: Target, began: float) -> None:
        self._path, self._lock = path, _take(path, target)
        self.state = peek(path) or State(target.shown, secrets.token_hex(6), began)

    def save(self) -> None:
        """All of it or what was there before; a kill in between costs nothing."""
        draft = self._path.with_name(f".{self._path.name}.new")
        draft.write_bytes(orjson.dumps(asdict(self.state)))
        draft.replace(self._path)

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _take(path: Path, target: Target) -> int:
    try:
        agents = path.parent.parent
        if not agents.parent.is_dir():  # a run that was tidied up does not come back as a folder of ours
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        layout.make_shared(agents, like=agents.parent.parent)
        layout.make_shared(path.parent)
        lock = os.open(path.with_name(f".{path.name}.lock"), _LOCK_FLAGS, 0o644)
    except OSError as error:
        raise SinkError(f"{path.parent} cannot be written ({error.strerror}): {target.shown} keeps its place there; "
                        "run this as the user of the agent or of the run") from error  # fmt: skip
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise SinkBusy(f"{target.shown}: another process hands this run on to it already") from error
    return lock
