"""Starting a run: where it lies, which rank this is, and who listens to its end."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainvitals.journal import layout, runs
from trainvitals.journal.run_files import RunFiles
from trainvitals.run import child_agent, cuda, endings, ranks
from trainvitals.run.facts import config_of
from trainvitals.run.files import Files
from trainvitals.run.harmless import harmless, warn
from trainvitals.run.off import OffRun
from trainvitals.run.run import Run

_OFF = ("off", "0", "false", "no")


def start(name: str = "run", config: object = None, *, dir: str | os.PathLike[str] | None = None,  # noqa: A002
          rank: int | None = None, world_size: int | None = None, local_rank: int | None = None,
          tags: Sequence[str] = (), resume: bool = False, run_id: str = "", framework: str = "",
          planned_steps: int | None = None, rank_zero_only: bool = False, agent: bool = False) -> Run:  # fmt: skip
    """Never raises and never waits for storage: a run that cannot be kept is one warning, and training goes on."""
    try:
        found = ranks.find()
        place = ranks.Place(_or(rank, found.rank), _or(local_rank, found.local_rank), _or(world_size, found.world_size))
        if os.environ.get("TRAINVITALS", "").lower() in _OFF or (rank_zero_only and place.rank != 0):
            return _off()
        told = {"config": config_of(config), "framework": framework, "planned_steps": planned_steps,
                "tags": [str(tag) for tag in tags]}  # fmt: skip
        return _start(str(name), dir, place, {"run_id": str(run_id or ""), "resume": resume}, told, agent)
    except Exception as error:
        warn(error)
        return _off()


def current() -> Run:
    """The run that was started last and has not ended; else one that is false and whose calls do nothing."""
    run: Run | None = endings.latest()
    return _off() if run is None else run


def _start(name: str, folder: Any, place: ranks.Place, claim: dict[str, Any], told: dict[str, Any],
           agent: bool) -> Run:  # fmt: skip
    run = Run(name, *place)
    launch = ranks.launch()
    gpus = cuda.gpus()
    facts = {"local_rank": place.local_rank} | ({"gpus": gpus} if gpus else {})

    def find_root() -> Path:
        return layout.find_root() if folder is None else Path(os.path.expanduser(folder)).absolute()

    def open_files(root: Path) -> RunFiles:
        rank = runs.claim(root, name, rank=place.rank, world_size=place.world_size, facts=facts,
                           environ=launch, **claim)  # fmt: skip
        try:
            return RunFiles(rank, name, **told, warn=run.warn)
        except BaseException:
            rank.release()
            raise

    def opened(files: RunFiles) -> None:
        run.opened(files)
        if agent and place.local_rank == 0:
            run.keep(harmless(child_agent.start)(files.rank.root))

    run.record_to(Files(find_root, open_files, run.warn, opened))
    endings.watch_over(run)
    return run


def _or(given: int | None, found: int) -> int:
    return found if given is None else int(given)


def _off() -> Run:
    off: Any = OffRun()
    return off  # type: ignore[no-any-return]
