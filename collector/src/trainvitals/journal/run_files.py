"""The files one rank writes of its run; rank 0 writes run.json too."""

import logging
from collections.abc import Mapping
from typing import Any

from trainvitals.journal import layout, runs, slow
from trainvitals.journal.append import MAX_FILE_BYTES, Appender
from trainvitals.journal.record import timestamp

log = logging.getLogger("trainvitals.journal")


class RunFiles:
    def __init__(self, rank: runs.Rank, name: str, *, config: Mapping[str, Any] | None = None, framework: str = "",
                 planned_steps: int | None = None) -> None:  # fmt: skip
        self.rank = rank
        suffix = layout.training_suffix(rank.rank, rank.world_size)
        self.metrics = Appender(rank.folder, "training_metrics", suffix=suffix, max_bytes=MAX_FILE_BYTES)
        self.events = Appender(rank.folder, f"events.rank{rank.rank}.jsonl")
        self._run = {"run": rank.run, "name": name, "framework": framework, "world_size": rank.world_size,
                     "planned_steps": planned_steps, "config": dict(config or {}), "start": timestamp(), "end": None,
                     "status": "running"}  # fmt: skip
        self._write_run()

    def end(self, status: str, **details: Any) -> None:
        """The rank's last words: finished, crashed or preempted, and what is known of why. A forked worker
        that ends, or a second call, ends nothing."""
        if not self.rank.is_mine:
            return
        self.events.append({"event": "end", "status": status, **details})
        self._run |= {"end": timestamp(), "status": status, **details}
        self._write_run()
        deadline = slow.flush_deadline()
        self.metrics.close(deadline)
        self.events.close(deadline)
        self.rank.release()

    def _write_run(self) -> None:
        if self.rank.rank == 0:
            try:
                runs.write_run(self.rank.folder, self._run)
            except (OSError, ValueError) as error:
                log.warning("%s cannot be written: %s", self.rank.folder / layout.RUN_FILE, error)
