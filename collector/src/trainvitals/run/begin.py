"""Starting a run: where it lies, which rank this is, and who listens to its end."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainvitals.errors import JournalError, SettingError
from trainvitals.journal import layout, runs
from trainvitals.journal.run_files import RunFiles
from trainvitals.run import child_agent, cuda, endings, facts, ranks
from trainvitals.run.files import Files
from trainvitals.run.harmless import harmless, log, warn
from trainvitals.run.off import OffRun, is_switched_off
from trainvitals.run.run import Run


def start(name: str = "run", config: object = None, *, dir: str | os.PathLike[str] | None = None,  # noqa: A002
          rank: int | None = None, world_size: int | None = None, local_rank: int | None = None,
          tags: Sequence[str] = (), resume: bool = False, run_id: str = "", framework: str = "",
          planned_steps: int | None = None, rank_zero_only: bool = False, agent: bool = False) -> Run:  # fmt: skip
    """Never raises and never waits for storage: a run that cannot be kept is one warning, and training goes on."""
    try:
        found = ranks.find()
        place = ranks.Place(_or(facts.given(facts.whole, "rank", rank), found.rank),
                            _or(facts.given(facts.whole, "local_rank", local_rank), found.local_rank),
                            _or(facts.given(facts.whole, "world_size", world_size, 1), found.world_size))  # fmt: skip
        place = place._replace(world_size=max(place.world_size, place.rank + 1))
        if _is_to_be_silent() or (rank_zero_only and place.rank != 0):
            return _off()
        told = {"config": facts.given(facts.config_of, config) or {}, "framework": framework,
                "planned_steps": facts.given(facts.planned, planned_steps),
                "tags": facts.given(facts.tags_of, tags) or []}  # fmt: skip
        return _start(str(name), facts.folder(dir), place, {"run_id": str(run_id or ""), "resume": resume}, told, agent)
    except SettingError as error:
        log.warning("tv.start: %s; nothing is recorded", error)
    except Exception as error:
        warn(error)
    return _off()


def current() -> Run:
    """The run that was started last and has not ended; else one that is false and whose calls do nothing."""
    run: Run | None = endings.latest()
    return _off() if run is None else run


class _Place:
    """Where a run's files lie and how they are opened; the run is told of it."""

    def __init__(self, run: Run, folder: Path | None, claim: dict[str, Any], told: dict[str, Any], agent: bool) -> None:
        self._run, self._folder, self._claim, self._told = run, folder, claim, told
        self._wants_agent = agent and run.local_rank == 0
        self.warn, self.opened, self.refused = run.warn, run.opened, run.refused

    def root(self) -> Path:
        return self._folder or layout.find_root()

    def open(self, root: Path) -> RunFiles:
        run = self._run
        try:
            rank = runs.claim(root, run.name, rank=run.rank, world_size=run.world_size, **self._claim)
        except JournalError as error:
            raise self._naming_dir(error) from error.__cause__
        try:
            return RunFiles(rank, run.name, **self._told, warn=run.warn)
        except BaseException:
            rank.release()
            raise

    def _naming_dir(self, error: JournalError) -> JournalError:
        """Who gave a folder is told of that, and not of a variable that is not looked at then."""
        cause = error.__cause__
        if self._folder is None or type(error) is not JournalError or not isinstance(cause, OSError):
            return error
        return JournalError(f"dir: '{self._folder}' cannot be written ({cause.strerror}): give another folder")

    def settled(self, files: RunFiles) -> None:
        if self._wants_agent:
            self._run.keep_agent(harmless(child_agent.start)(files.rank.root))


def _start(name: str, folder: Path | None, place: ranks.Place, claim: dict[str, Any], told: dict[str, Any],
           agent: bool) -> Run:  # fmt: skip
    run = Run(name, *place)
    gpus = harmless(cuda.gpus)()
    known = {"local_rank": place.local_rank} | ({"gpus": gpus} if gpus else {})
    claim |= {"facts": known, "environ": ranks.launch()}
    endings.end_what_is_replaced(name)
    files = Files(_Place(run, folder, claim, told, agent))
    if files.is_refused:
        return _off()
    run.record_to(files)
    endings.watch_over(run)
    return run


def _is_to_be_silent() -> bool:
    """By the environment; in a spawned worker that imports the trainer's script to find its own function there; and in
    an interpreter that ends."""
    processes: Any = sys.modules.get("multiprocessing.process")
    is_imported = processes is not None and getattr(processes.current_process(), "_inheriting", False)
    # Then no thread can be started any more, and who tries waits for ever.
    return is_imported or sys.is_finalizing() or is_switched_off()


def _or(given: int | None, found: int) -> int:
    return found if given is None else given


def _off() -> Run:
    off: Any = OffRun()
    return off  # type: ignore[no-any-return]
