"""A run that is followed: its folder, what is known of it, and when it ended."""

import logging
import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from trainvitals.agent import run_folder
from trainvitals.agent.run_state import RunState
from trainvitals.agent.verdict import Ends
from trainvitals.journal import layout
from trainvitals.journal.append import Appender
from trainvitals.journal.record import Record, seconds

KEEP_ENDED_SECONDS = 600.0

log = logging.getLogger("trainvitals.runs")


@dataclass(slots=True)
class Followed:
    """A run's folder and what is needed to go on reading it."""

    folder: Path
    state: RunState
    # None: nobody is told by a file.
    reports: Appender | None
    files: dict[Path, int] = field(default_factory=dict)
    ends: Ends = field(default_factory=Ends)
    settled: set[tuple[int, str]] = field(default_factory=set)
    reported: dict[tuple[int, str], float] = field(default_factory=dict)
    failed: bool = False
    lived: bool = False

    def report(self, line: Record) -> bool:
        return self.reports is not None and self.reports.append(line)

    def gone(self, dead: set[tuple[int, str]]) -> dict[int, float]:
        """When each of these ranks was seen to be gone without an end."""
        return {rank: self.reported[rank, started] for rank, started in dead & self.reported.keys()}

    def close(self) -> None:
        if self.reports is not None:
            self.reports.close()

    def is_recent(self, now: float) -> bool:
        return self.state.ended is None or now - self.state.ended < KEEP_ENDED_SECONDS

    def set_end(self, status: str, now: float) -> None:
        if self.state.ended is None:
            stamp = seconds(self.state.info.get("end")) if status in layout.ENDINGS else None
            # It may have hung for long, and written nothing, before it was killed; or the machine have been off since.
            seen = max(run_folder.last_change(self.folder), *self.reported.values(), 0.0)
            self.state.ended = stamp or (now if self.lived else seen)

    def is_newly_unreadable(self) -> bool:
        """Told of once: by itself such a run is no different from one that has written nothing."""
        path, before = run_folder.unreadable(self.folder), self.state.is_unreadable
        self.state.is_unreadable = path is not None
        if before or not path:
            return False
        log.warning("run %s: %s cannot be read by user %d, as whom this agent runs: start the trainer under "
                    "`umask 022`, or the agent as the trainer's user; for this run: chmod -R a+rX %s", self.state.run,
                    path, os.geteuid(), shlex.quote(str(self.folder)), extra={"run": self.state.run})  # fmt: skip
        return True
