"""Labelled recordings: journals of runs and nodes that never were, and what is true of each.

A *clear* case is one that anybody would see, a *faint* one lies just beyond the condition in docs/runbooks, a *near*
miss just within or looks like one and is none; *healthy* life is to be met with silence, a *chain* is one fault with
several signs. All are made of seeds by plain Python, the same each time, and know nothing of any detector.
"""

from collections.abc import Iterator

from tests.detect.scenarios import (
    chains,
    diverging,
    gpu_faults,
    gpu_links,
    gradient,
    healthy,
    heat,
    host,
    idle,
    loss,
    memory,
    progress,
    speed,
    straggling,
)
from tests.detect.scenarios.scenario import Recording, Scenario

__all__ = ["Recording", "Scenario", "all_scenarios"]
FAMILIES = (
    loss,
    diverging,
    gradient,
    progress,
    speed,
    straggling,
    memory,
    gpu_faults,
    gpu_links,
    heat,
    idle,
    host,
    healthy,
    chains,
)


def all_scenarios() -> Iterator[Scenario]:
    for table in FAMILIES:
        yield from table.scenarios()
