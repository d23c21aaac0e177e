"""The files one rank writes of its run; rank 0 writes run.json too."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from trainvitals.journal import layout, runs, slow
from trainvitals.journal.append import MAX_FILE_BYTES, Appender, WarnOnce
from trainvitals.journal.record import decode, timestamp

# Keys that name a secret; not what is counted in tokens.
_SECRET = re.compile(
    r"(^|[_.-])(password|passwd|passphrase|secret|api_?key|access_?key|private_?key|credentials?"
    r"|(hf|hub|auth|access|api|bearer|wandb|secret|push_to_hub)_token)($|[_.-])", re.IGNORECASE)  # fmt: skip
HIDDEN = "(hidden)"
_LAST_LINES_BYTES = 65_536
_MAX_DEPTH = 20


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
                     "planned_steps": planned_steps, "tags": list(tags), "config": without_secrets(config or {}),
                     "start": timestamp(), "end": None, "status": "running"}  # fmt: skip
        self._go_on()
        self._write_run()
        self.last_step = _last_step(rank)

    @property
    def is_queued(self) -> bool:
        """Whether a file's storage was found to be slow."""
        return self.metrics.is_queued or self.events.is_queued

    def describe(self, *, config: Mapping[str, Any] | None = None, **facts: Any) -> None:
        """What is known only later; a configuration is added to what is there."""
        self._run["config"] |= without_secrets(config or {})
        self._run |= facts
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


def without_secrets(config: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """Whoever may read the journal reads the configuration too."""
    return {str(key): HIDDEN if _SECRET.search(str(key)) and value else _inside(value, depth)
            for key, value in config.items()}  # fmt: skip


def _inside(value: Any, depth: int) -> Any:
    return without_secrets(value, depth + 1) if isinstance(value, Mapping) and depth < _MAX_DEPTH else value


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _last_step(rank: runs.Rank) -> int:
    """Of a run that is resumed, 0 of one that begins."""
    files = [path for path in rank.folder.iterdir() if layout.training_rank(path.name) == rank.rank]
    for path in sorted(files, reverse=True):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _LAST_LINES_BYTES))
            for line in reversed(file.read().split(b"\n")):
                with suppress(ValueError):
                    if type(step := decode(line).get("step")) is int:
                        return step
    return 0
