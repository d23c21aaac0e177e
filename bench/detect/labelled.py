"""The labelled scenarios, written, replayed and judged, some at a time.

measure(scenarios, jobs=2)  ->  a Tally
"""

import gc
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench.detect.matching import Judgement, judge
from bench.detect.replaying import ReplayFailed, replayed
from bench.detect.scores import Tally
from tests.detect.scenarios import Recording, Scenario, all_scenarios


def chosen(words: Sequence[str]) -> list[Scenario]:
    """Those whose name or family holds one of the words; all without words."""
    return [one for one in all_scenarios() if not words or any(word in f"{one.name} {one.family}" for word in words)]


def measure(scenarios: Iterable[Scenario], jobs: int) -> Tally:
    tally, named = Tally(), {one.name: one for one in scenarios}
    # A process that was started anew has what no scenario before it left behind.
    context = multiprocessing.get_context("spawn")
    began = time.monotonic()
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_alone) as pool:
        for number, (name, judgement) in enumerate(pool.map(_judged, named, chunksize=4), start=1):
            scenario = named[name]
            tally.add(scenario, scenario.record(), judgement)
            if number % 100 == 0:
                print(f"bench: {number} of {len(named)} scenarios, {time.monotonic() - began:.0f} s",
                      file=sys.stderr, flush=True)  # fmt: skip
    return tally


def _alone() -> None:
    """No setting of this machine is to change what is measured."""
    for name in [name for name in os.environ if name.startswith("TRAINVITALS_")]:
        del os.environ[name]


_known: dict[str, Scenario] = {}


def _judged(name: str) -> tuple[str, Judgement]:
    if not _known:
        _known.update((one.name, one) for one in all_scenarios())
    return name, judged(_known[name], _known[name].record())


def judged(scenario: Scenario, recording: Recording) -> Judgement:
    folder = Path(tempfile.mkdtemp(prefix="trainvitals-detect-"))
    try:
        recording.write(folder)
        return judge(recording, replayed(folder))
    except ReplayFailed as error:
        raise RuntimeError(f"{scenario.name}: {error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        gc.collect()
