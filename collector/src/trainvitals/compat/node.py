"""What this node's agent last said of its GPUs, from the journal; where no agent listens, one is started as a child.

node = Node(interval=1.0)
node.start()
node.gpus()  ->  {0: {"gpu_index": 0, "utilization_percent": 97.0, "temperature_celsius": 61.0, …}}
"""

import logging
import os
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainvitals import starting
from trainvitals.journal import layout
from trainvitals.journal.record import Record, seconds
from trainvitals.journal.tail import Tail
from trainvitals.run import child_agent, ranks
from trainvitals.run.harmless import harmless
from trainvitals.run.off import is_switched_off

Line = dict[str, Any]
STALE_SECONDS = 10.0
# After so long without a reading it is said that there is none.
SILENT_SECONDS = 15.0

log = logging.getLogger("trainvitals")
# One child a journal, whoever asks for it.
_children: dict[Path, child_agent.ChildAgent] = {}
_lock = threading.Lock()


class Node:
    def __init__(self, interval: float = 1.0, root: Path | None = None) -> None:
        self._interval = max(0.1, float(interval))
        self._root = root
        self._tail = Tail()
        self._file: Path | None = None
        self._known: dict[int, Line] = {}
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._child: child_agent.ChildAgent | None = None

    @harmless
    def start(self) -> None:
        if self._thread is None:
            self._child = ensure_agent(self._root or layout.find_root(), "--interval", str(self._interval))
            self.follow()

    @harmless
    def follow(self) -> None:
        """Who writes is somebody else's concern."""
        if is_switched_off():
            return
        self._ended.clear()
        root = self._root or layout.find_root()
        self._thread = threading.Thread(target=self._watch, args=(root,), name="trainvitals-node", daemon=True)
        self._thread.start()

    def gpus(self) -> dict[int, Line]:
        """Of each GPU the last line, made whole; none that is too old to be called now."""
        oldest = time.time() - max(STALE_SECONDS, 5 * self._interval)
        return {gpu: line for gpu, line in sorted(self._known.items())
                if (seconds(line.get("timestamp")) or 0.0) >= oldest}  # fmt: skip

    def stop(self) -> None:
        """The agent ends that was started here."""
        self._ended.set()
        child, self._thread, self._child = self._child, None, None
        if child is not None:
            child.remove()

    def failed(self, error: BaseException) -> None:
        log.warning("no GPU readings, and training goes on: %r", error)

    def _watch(self, root: Path) -> None:
        began, has_warned = time.monotonic(), False
        while not self._ended.is_set():
            with suppress(OSError):
                self._read(root)
            if not self._known and not has_warned and time.monotonic() - began > SILENT_SECONDS:
                has_warned = True
                log.warning("no GPU readings here, so their values are absent: `trainvitals doctor` says why")
            self._ended.wait(min(0.5, self._interval / 2))

    def _read(self, root: Path) -> None:
        newest = next(iter(_files(root)), None)
        if newest is None:
            return
        if newest != self._file:
            self._file, self._tail, self._known = newest, Tail(), {}
            self._tail.follow(newest)
        while records := self._tail.read(newest):
            self._known = carried(self._known, records)


def carried(known: Mapping[int, Line], records: Iterable[Record]) -> dict[int, Line]:
    """What a line does not say is as it was, until it says that it is unknown or speaks of another GPU."""
    found = dict(known)
    for record in records:
        gpu = record.get("gpu_index")
        if not isinstance(gpu, int):
            continue
        before = found.get(gpu, {})
        if record.get("uuid", before.get("uuid")) != before.get("uuid"):
            before = {}
        found[gpu] = {name: value for name, value in {**before, **record}.items() if value is not None}
    return found


def hosts() -> tuple[str, str]:
    """Simulated GPUs have a folder of their own."""
    return layout.host_name(), layout.host_name(is_simulated=True)


def ensure_agent(root: Path, *flags: str) -> child_agent.ChildAgent | None:
    """This process's own, which each who asks for it is to remove; the first one's flags hold. None where another
    agent listens, and for ranks of which another is on this node."""
    if not may_start():
        return None
    with _lock:
        child = _children.get(root)
        if child is not None and child.join():
            return child
        if any(child_agent.is_listened_to(root, host) for host in hosts()):
            return None
        started = child_agent.start(root, *flags)
        if started is not None:
            _children[root] = started
        return started


def may_start() -> bool:
    """One process a node; none where monitoring is switched off."""
    return not is_switched_off() and ranks.find().local_rank == 0


def start_monitor(*flags: str) -> "subprocess.Popen[bytes] | None":
    """`trainvitals monitor` hands GPUs on; it reads them itself only where no agent does. It ends with this process."""
    if not may_start():
        return None
    words = starting.words("trainvitals.cli", "monitor", "--no-console", "--summary-interval", "0",
                           "--with-parent", str(os.getpid()), "--dir", str(layout.find_root()), *flags)  # fmt: skip
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)


def _files(root: Path) -> list[Path]:
    """The newest first, of the agent that listens now."""
    listening = [host for host in hosts() if child_agent.is_listened_to(root, host)]
    folders = [layout.gpu_folder(root, host) for host in listening]
    found = [path for folder in folders for path in folder.glob("gpu_metrics_*.jsonl")
             if layout.NODE_FILE.match(path.name)]  # fmt: skip
    return sorted(found, key=lambda path: path.name, reverse=True)
