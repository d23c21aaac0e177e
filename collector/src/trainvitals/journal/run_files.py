"""The files one rank writes of its run; rank 0 writes run.json too."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainvitals.journal import layout, runs, slow
from trainvitals.journal.append import MAX_FILE_BYTES, Appender, WarnOnce
from trainvitals.journal.configuration import taken, taken_list
from trainvitals.journal.descriptors import open_regular
from trainvitals.journal.record import decode, timestamp

_LAST_LINES_BYTES = 65_536


class RunFiles:
    def __init__(self, rank: runs.Rank, name: str, *, config: Mapping[str, Any] | None = None, framework: str = "",
                 planned_steps: int | None = None, tags: Sequence[str] = (),
                 warn: WarnOnce | None = None) -> None:  # fmt: skip
        self.rank = rank
        self._warn = warn or WarnOnce()
        suffix = layout.training_suffix(rank.rank, rank.world_size)
        self.metrics = Appender(rank.folder, "training_metrics", suffix=suffix, max_bytes=MAX_FILE_BYTES,
                                warn=self._warn)  # fmt: skip
        self.events = Appender(rank.folder, f"events.rank{rank.rank}.jsonl", warn=self._warn)
        self._run: dict[str, Any]
        self._run = {"run": rank.run, "name": name, "framework": framework, "world_size": rank.world_size,
                     "planned_steps": planned_steps, "tags": taken_list(tags), "config": taken(config or {}),
                     "start": timestamp(), "end": None, "status": "running"}  # fmt: skip
        self._go_on()
        self._write_run()
        self.last_step = _last_step(rank)

    @property
    def is_queued(self) -> bool:
        """Whether a file's storage was found to be slow."""
        return self.metrics.is_queued or self.events.is_queued

    def describe(self, *, config: Mapping[str, Any] | None = None, tags: Sequence[str] | None = None,
                 **facts: Any) -> None:  # fmt: skip
        """What is known only later; a configuration is added to what is there."""
        self._run["config"] |= taken(config or {})
        self._run |= facts if tags is None else {**facts, "tags": taken_list(tags)}
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

    def _go_on(self) -> None:
        """A run that is resumed keeps its start and what was known of it."""
        before = runs.read_json(self.rank.folder / layout.RUN_FILE) if self.rank.rank == 0 else None
        if before and before.get("start"):
            self._run["start"] = before["start"]
            self._run["resumed"] = [*_listed(before.get("resumed")), timestamp()]
            known = before.get("config")
            self._run["config"] = {**(known if isinstance(known, dict) else {}), **self._run["config"]}

    def _write_run(self) -> None:
        if self.rank.rank == 0 and self.rank.is_mine:
            try:
                runs.write_run(self.rank.folder, self._run)
            except (OSError, ValueError) as error:
                self._warn("dropping", f"{self.rank.folder / layout.RUN_FILE} cannot be written: {error}")


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _last_step(rank: runs.Rank) -> int:
    """Of a run that is resumed, 0 of one that begins."""
    files = [path for path in rank.folder.iterdir() if layout.training_rank(path.name) == rank.rank]
    # Not of the newest alone: a clock that was set back gives the one that was written last an older name.
    return max(map(_last_step_in, files), default=0)


def _last_step_in(path: Path) -> int:
    with suppress(OSError):
        for line in reversed(_last_lines(path)):
            with suppress(ValueError):
                if type(step := decode(line).get("step")) is int:
                    return step
    return 0


def _last_lines(path: Path) -> list[bytes]:
    with open(open_regular(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _LAST_LINES_BYTES))
        return file.read(_LAST_LINES_BYTES).split(b"\n")
