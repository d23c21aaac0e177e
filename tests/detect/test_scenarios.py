"""The scenarios themselves: the same each time, journals that every reader takes, truths that hold."""

import re
from collections.abc import Iterator
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.detect.scenarios import Recording, Scenario, all_scenarios
from tests.detect.scenarios.truth import ANY
from trainvitals.agent.node_log import carried, read_lines
from trainvitals.journal import layout
from trainvitals.journal.node_events import read_events
from trainvitals.journal.record import seconds
from trainvitals.journal.runs import read_json, read_process
from trainvitals.journal.tail import Tail

RUNBOOKS = Path(__file__).parents[2] / "docs" / "runbooks" / "README.md"
ROW = re.compile(r"\| \[(\w+)\]\(\w+\.md\) \| ([^|]+) \| (agent[^|]*) \|")
SEVERITIES = {
    name: set(re.findall("page|ticket|info", severity)) for name, severity, _ in ROW.findall(RUNBOOKS.read_text())
}
SCENARIOS = list(all_scenarios())
FIRST = [scenario for scenario in SCENARIOS if scenario.seed == 0]
each_kind = pytest.mark.parametrize("kind", sorted(SEVERITIES))
each_first = pytest.mark.parametrize("scenario", FIRST, ids=lambda scenario: scenario.name)


def named(name: str) -> Scenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


def written(scenario: Scenario, folder: Path) -> Recording:
    recording = scenario.record()
    recording.write(folder)
    return recording


def records(path: Path) -> list[dict[str, Any]]:
    tail, found = Tail(), []
    tail.follow(path)
    while more := tail.read(path):
        found += more
    assert tail.garbage_lines == 0, path.name
    assert tail.errors == 0, path.name
    return found


def training_lines(folder: Path, run: str, rank: int = 0) -> list[dict[str, Any]]:
    files = sorted(path for path in (folder / "runs" / run).iterdir() if layout.training_rank(path.name) == rank)
    return [record for path in files for record in records(path)]


def test_names_are_each_ones_own_and_families_are_worth_a_share() -> None:
    names = [scenario.name for scenario in SCENARIOS]
    families = [scenario.family for scenario in SCENARIOS]
    assert len(set(names)) == len(names)
    assert min(families.count(family) for family in families) >= 5


@each_kind
def test_each_alert_that_the_agent_sees_has_a_clear_case_a_faint_one_and_a_near_miss(kind: str) -> None:
    assert {scenario.case for scenario in SCENARIOS if kind in scenario.kinds} >= {"clear", "faint", "near"}


@each_kind
def test_what_is_a_case_of_an_alert_asks_for_it_and_a_near_miss_does_not(kind: str) -> None:
    for scenario in (one for one in FIRST if kind in one.kinds):
        asked = [expected for expected in scenario.record().expected if expected.kind == kind]
        # What a program did wrong is told for information: that is not the ticket.
        loud = [expected for expected in asked if expected.severities != ("info",) or kind != "GpuXidWarning"]
        assert bool(loud) == (scenario.case != "near"), scenario.name


@each_first
def test_a_truth_is_of_this_recording_and_of_these_alerts(scenario: Scenario) -> None:
    recording = scenario.record()
    runs, gpus = {run.run: run for run in recording.runs}, max((node.gpus for node in recording.nodes), default=0)
    for expected in recording.expected:
        # What is told under another has the severity of that.
        assert set(expected.severities) <= SEVERITIES[expected.kind] or scenario.case == "chain"
        assert recording.began <= expected.onset <= recording.ended
        assert expected.within > 0
        assert not expected.run or expected.run in runs
        assert expected.rank in (ANY, None) or expected.rank < runs[expected.run].ranks
        assert expected.gpu in (ANY, None) or expected.gpu < gpus
    assert {allowed.kind for allowed in recording.allowed} <= SEVERITIES.keys()
    assert scenario.case != "healthy" or not recording.expected


@each_first
def test_every_reader_takes_every_line(scenario: Scenario, tmp_path: Path) -> None:
    recording = written(scenario, tmp_path)
    files = list(tmp_path.rglob("*.jsonl"))
    assert files
    for path in files:
        stamps = [seconds(record["timestamp"]) for record in records(path)]
        assert None not in stamps
        assert stamps == sorted(stamps), path.name
    if not recording.bare:
        _check_runs(recording, tmp_path)
    for node in recording.nodes:
        _check_node(layout.gpu_folder(tmp_path, node.host), node.gpus)


def _check_runs(recording: Recording, root: Path) -> None:
    for run in recording.runs:
        folder = layout.run_folder(root, run.run)
        told = read_json(folder / layout.RUN_FILE)
        assert told and told["run"] == run.run and told["world_size"] == run.ranks
        for rank in range(run.ranks):
            process = read_process(folder / f"process.rank{rank}.json")
            assert process and process["rank"] == rank
        assert {layout.training_rank(path.name) for path in folder.glob("training_metrics_*")} == set(range(run.ranks))


def _check_node(folder: Path, gpus: int) -> None:
    lines = list(carried(read_lines(folder, 0.0)))
    assert {line["gpu_index"] for line in lines} == set(range(gpus))
    assert all(line["memory_used_mb"] <= line["memory_total_mb"] for line in lines)
    assert all(event["event"] == "xid" and int(event["gpu"]) < gpus for event in read_events(folder))
    assert list(read_lines(folder, 0.0, "host"))


def _prints(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield str(path.relative_to(folder)), sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("scenario", FIRST[::12], ids=lambda scenario: scenario.name)
def test_a_seed_makes_the_same_bytes_each_time(scenario: Scenario, tmp_path: Path) -> None:
    written(scenario, tmp_path / "one")
    written(scenario, tmp_path / "two")
    assert list(_prints(tmp_path / "one")) == list(_prints(tmp_path / "two"))


def _least_sigmas(losses: list[float], first: int) -> float:
    """Of three steps in a row, above the thousand before them."""
    before = losses[first - 1000 : first]
    middle = median(before)
    sigma = 1.4826 * median(abs(loss - middle) for loss in before)
    return min(loss - middle for loss in losses[first : first + 3]) / sigma


@pytest.mark.parametrize(
    ("name", "most"),
    [("clear-tall-0", 100), ("clear-tall-3", 100), ("faint-just-over-0", 12), ("faint-just-over-2", 14)],
)
def test_a_spike_is_seven_robust_sigma_over_its_last_thousand_steps(name: str, most: float, tmp_path: Path) -> None:
    recording = written(named(f"TrainingLossSpike/{name}"), tmp_path)
    losses = [line["loss"] for line in training_lines(tmp_path, "gemma")]
    assert 7 <= _least_sigmas(losses, (recording.expected[0].step or 0) - 1) <= most


@pytest.mark.parametrize("name", ["near-within-noise-0", "near-one-step-2", "near-two-steps-0"])
def test_a_near_miss_of_a_spike_is_no_three_steps_that_high(name: str, tmp_path: Path) -> None:
    written(named(f"TrainingLossSpike/{name}"), tmp_path)
    losses = [line["loss"] for line in training_lines(tmp_path, "gemma")]
    assert max(_least_sigmas(losses, first) for first in range(1000, len(losses) - 3)) < 7


@pytest.mark.parametrize("name", ["TrainingStalled/faint-just-over-0", "TrainingStalled/faint-just-over-2"])
def test_a_faint_stall_is_longer_than_five_minutes_and_than_ten_steps(name: str, tmp_path: Path) -> None:
    written(named(name), tmp_path)
    stamps = [seconds(line["timestamp"]) or 0.0 for line in training_lines(tmp_path, "gemma")]
    gaps = sorted(after - before for before, after in pairwise(stamps))
    assert max(300.0, 10 * median(gaps)) < gaps[-1] < 1.5 * max(300.0, 10 * median(gaps))


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("TrainingStraggler/clear-page-0", 1.33, 2.0),
        ("TrainingStraggler/clear-ticket-1", 1.15, 1.33),
        ("TrainingStraggler/faint-just-over-2", 1.10, 1.2),
    ],
)
def test_a_straggler_is_as_slow_before_the_collective_as_its_label_says(
    name: str, low: float, high: float, tmp_path: Path
) -> None:
    recording = written(named(name), tmp_path)
    expected, ranks = recording.expected[0], recording.runs[0].ranks
    spent = [
        median(
            line["data_wait_seconds"] + line["forward_seconds"]
            for line in training_lines(tmp_path, "gemma", rank)
            if line["step"] > (expected.step or 0)
        )
        for rank in range(ranks)
    ]
    slowest = spent.pop(expected.rank or 0)
    assert low < slowest / median(spent) < high


def test_in_synchronous_training_all_ranks_end_a_step_together(tmp_path: Path) -> None:
    written(named("TrainingStraggler/clear-page-0"), tmp_path)
    ends = [[line["timestamp"] for line in training_lines(tmp_path, "gemma", rank)] for rank in (0, 7)]
    assert ends[0] == ends[1]


@pytest.mark.parametrize(("name", "least"), [("faint-just-over-0", 0.6), ("near-for-a-reason-1", 0.0)])
def test_clocks_are_held_down_as_often_as_the_label_says(name: str, least: float, tmp_path: Path) -> None:
    recording = written(named(f"GpuHardwareSlowdown/{name}"), tmp_path)
    gpu = recording.expected[0].gpu if recording.expected else 1
    lines = [
        line for line in carried(read_lines(layout.gpu_folder(tmp_path, "node-a"), 0.0)) if line["gpu_index"] == gpu
    ]
    held = ["hw_slowdown" in line["throttle_active"] for line in lines]
    first, last = held.index(True), len(held) - held[::-1].index(True)
    begins = sum(now and not before for before, now in zip([False, *held], held, strict=False))
    minutes = (seconds(lines[last - 1]["timestamp"]) or 0) / 60 - (seconds(lines[first]["timestamp"]) or 0) / 60
    assert (begins / minutes >= 0.6) == (least > 0)


def test_a_run_that_was_resumed_does_steps_again_in_a_new_file(tmp_path: Path) -> None:
    written(named("healthy: resumed/healthy-resumed-0"), tmp_path)
    steps = [line["step"] for line in training_lines(tmp_path, "gemma")]
    files = list((tmp_path / "runs" / "gemma").glob("training_metrics_*.rank0.jsonl"))
    assert len(files) == 2
    assert len(steps) > len(set(steps)) == max(steps)
