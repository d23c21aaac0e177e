"""Which runs a target gets while the agent runs, and each of them to its end.

Those that live, those that ended within the last hour, and those it began with before: so that a run which ended
while agent or target were down arrives too, and a journal of old runs does not.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trainvitals.journal import layout, near
from trainvitals.sinks import Target, run_info
from trainvitals.sinks.run_info import RunInfo
from trainvitals.sinks.state import SinkBusy, peek, state_path
from trainvitals.sinks.stream import Stream, words

RECENT_SECONDS = 3600.0
SCAN_SECONDS = 2.0
# After a run's end its node's last lines are still to come.
LAST_LINES_SECONDS = 10.0
RETRY_SECONDS, MAX_RETRY_SECONDS = 1.0, 30.0

log = logging.getLogger("trainvitals.sinks")


@dataclass(slots=True)
class _Followed:
    stream: Stream | None = None
    retry_at: float = 0.0
    pause: float = RETRY_SECONDS
    looked_at: float = 0.0


class Follower:
    def __init__(self, root: Path, target: Target, open_run: Callable[[Path], Stream],
                 only: Collection[str] = ()) -> None:  # fmt: skip
        """`only` these runs, by their ids; all where there are none."""
        self._only = only
        self._folder, self._target, self._open_run = root / "runs", target, open_run
        self._followed: dict[Path, _Followed] = {}
        self._over: dict[Path, int] = {}
        self._next_scan = 0.0

    def advance(self) -> None:
        """A portion or two of each run. One that fails is tried again, later and later."""
        if time.monotonic() >= self._next_scan:
            self._next_scan = time.monotonic() + SCAN_SECONDS
            self._scan()
        for folder, followed in list(self._followed.items()):
            if time.monotonic() >= followed.retry_at:
                self._guarded(folder, followed)

    def close(self) -> None:
        """What was written last still goes, and the end of a run that is over; the rest next time."""
        for followed in self._followed.values():
            if followed.stream is not None:
                with suppress(Exception):
                    _drain(followed.stream)
                followed.stream.close()

    def _guarded(self, folder: Path, followed: _Followed) -> None:
        try:
            self._advance(folder, followed)
            followed.pause = RETRY_SECONDS
        except SinkBusy:
            followed.retry_at = time.monotonic() + MAX_RETRY_SECONDS
        except Exception as error:
            log.warning("%s: run %s waits: %s", self._target.shown, folder.name, words(error))
            if followed.stream is not None:
                followed.stream.close()
                followed.stream = None
            followed.retry_at = time.monotonic() + followed.pause
            followed.pause = min(2 * followed.pause, MAX_RETRY_SECONDS)

    def _advance(self, folder: Path, followed: _Followed) -> None:
        if followed.stream is None:
            followed.stream = self._open_run(folder)
        stream, deadline = followed.stream, time.monotonic() + SCAN_SECONDS
        moved = True
        while moved and time.monotonic() < deadline:
            moved = stream.advance()
        if time.monotonic() - followed.looked_at >= SCAN_SECONDS:
            followed.looked_at = time.monotonic()
            modified = folder.stat().st_mtime_ns
            info = stream.info()
            if not moved:
                self._end_if_over(folder, stream, info, modified)

    def _end_if_over(self, folder: Path, stream: Stream, info: RunInfo, modified: int) -> None:
        if info.ended is None or not (stream.is_past_end() or time.time() - info.ended > LAST_LINES_SECONDS):
            return
        _drain(stream)
        stream.close()
        del self._followed[folder]
        self._over[folder] = modified

    def _scan(self) -> None:
        for folder in self._run_folders():
            with suppress(OSError):
                modified = folder.stat().st_mtime_ns
                if folder in self._followed or self._over.get(folder) == modified:
                    continue
                if self._is_wanted(folder):
                    self._followed[folder] = _Followed()
                elif near.is_settled() and not run_info.is_alive(folder):
                    self._over[folder] = modified
        for gone in [folder for folder in self._followed if not folder.is_dir()]:
            self._forget(gone)

    def _run_folders(self) -> Iterator[Path]:
        with suppress(OSError):
            for folder in self._folder.iterdir():
                if layout.is_folder(folder) and not folder.name.startswith("."):
                    yield folder

    def _is_wanted(self, folder: Path) -> bool:
        if (self._only and folder.name not in self._only) or not run_info.is_ours(folder):
            return False
        state = peek(state_path(folder, layout.host_name(), self._target))
        if state is not None and state.over:
            info = run_info.read(folder)
            return state.over != [info.status, info.ended]
        is_recent = time.time() - run_info.last_written(folder) < RECENT_SECONDS
        return state is not None or is_recent or run_info.is_alive(folder)

    def _forget(self, folder: Path) -> None:
        followed = self._followed.pop(folder)
        if followed.stream is not None:
            followed.stream.close()


def _drain(stream: Stream) -> None:
    """All that is there, and the run's end where it has one."""
    info = stream.info()
    while stream.advance(last=info.is_over):
        pass
    stream.finish(info, [info.status, info.ended] if info.is_over else [])
