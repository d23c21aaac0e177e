"""What the agent finds and a rule tells too, beside each other: by Alertmanager it is one message, and one end.

The rule is to fire when the agent has spoken, or within the moment that Alertmanager waits, and to be over before the
agent's alert is. What the agent found it is to find once: what comes and goes is told anew each time.
"""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.detect.scenarios import all_scenarios
from tests.prometheus.mirror import STEP_SECONDS, Watched, watched
from tests.prometheus.support import Rule, promtool_told, rules, tool
from trainvitals.detect.advice import ADVICE, has_rule
from trainvitals.notify.limits import LINGERS_SECONDS

EVALUATED_SECONDS = 15
WAITS_SECONDS = {"page": 3.0, "ticket": 5.0, "info": 5.0}
SCENARIOS = {scenario.name: scenario for scenario in all_scenarios()}
CASES = (
    "TrainingNonFinite/faint-one-step-0", "TrainingLossSpike/clear-early-0", "TrainingLossDiverging/clear-jumps-0",
    "TrainingGradientNormHigh/clear-rises-0", "TrainingGradientVanishing/clear-in-all-0",
    "TrainingLearningRateTooLow/clear-midway-0", "TrainingStalled/clear-ends-so-0", "TrainingStalled/clear-goes-on-0",
    "TrainingHangSuspected/faint-ninety-seconds-0", "TrainingCrashed/clear-first-rank-0",
    "TrainingKilled/clear-only-rank-0", "TrainingCheckpointOverdue/clear-never-again-0",
    "TrainingThroughputRegression/clear-two-thirds-0", "TrainingDataStarved/clear-page-0",
    "TrainingStraggler/clear-page-0", "TrainingStraggler/clear-ticket-0", "GpuOutOfMemorySoon/faint-stops-in-time-0",
    "GpuMemoryHigh/clear-full-0", "GpuMissing/clear-for-good-0", "GpuXidFatal/clear-xid-79-0",
    "GpuXidWarning/clear-xid-63-0", "GpuEccUncorrectable/clear-first-0", "GpuRowRemapFailed/clear-fails-0",
    "GpuRowRemapPending/clear-waits-0", "GpuRecoveryActionNeeded/clear-reset-or-reboot-0", "GpuNvlinkDown/faint-one-0",
    "GpuNvlinkErrors/clear-replays-0", "GpuPcieDegraded/clear-four-lanes-0", "GpuPcieReplays/clear-many-0",
    "GpuThermalMargin/clear-slows-down-0", "GpuThermalMargin/faint-four-degrees-0",
    "GpuTemperatureHigh/clear-86-degrees-0", "GpuTemperatureHigh/faint-82-degrees-0",
    "GpuMemoryTemperatureHigh/faint-97-degrees-0", "GpuHardwareSlowdown/clear-all-the-time-0",
    "GpuPowerBrake/faint-just-over-0", "GpuIdleAllocated/faint-forty-minutes-0", "HostCpuHigh/clear-all-0",
    "HostCpuHigh/faint-just-over-0", "HostIowaitHigh/faint-just-over-0", "HostMemoryHigh/faint-just-over-0",
    "HostSwapThrash/clear-hard-0", "HostOomKill/clear-several-0", "HostDiskFull/clear-in-two-hours-0",
    "HostDiskFull/clear-full-0", "HostDiskFillingUp/clear-in-ten-hours-0", "SourceDown/faint-ten-minutes-0",
    "JournalErrors/clear-dropped-0",
)  # fmt: skip
# Which take hours of a recording to show.
UNSEEN = {"GpuMemoryLeak", "HostMemoryLeak", "GpuEccCorrectedRate", "TrainingLossNotDecreasing"}
PLACE = ("run", "rank", "gpu", "mountpoint")


class Span(NamedTuple):
    severity: str
    first: float
    last: float


Spans = dict[tuple[tuple[str, str], ...], list[Span]]


def test_each_kind_that_both_see_has_a_case() -> None:
    assert {name.partition("/")[0] for name in CASES} | UNSEEN == {kind for kind in ADVICE if has_rule(kind)}


@pytest.mark.parametrize("name", CASES)
def test_a_finding_and_its_rule_are_one_message_and_one_end(name: str, tmp_path: Path) -> None:
    tool("promtool")
    kind = name.partition("/")[0]
    seen = watched(SCENARIOS[name].record(), tmp_path / "journal")
    mine, told = _found(seen, kind), _told(seen, kind, tmp_path)
    assert mine, "the agent does not find it"
    assert {place: len(spans) for place, spans in mine.items() if len(spans) > 1} == {}
    for place, spans in told.items():
        assert place in mine or kind == "GpuMissing", f"the rule tells of {place}, the agent of {[*mine]}"
        (one,) = mine.get(place) or next(iter(mine.values()))
        for span in spans:
            assert span.first > one.first - WAITS_SECONDS[span.severity], (place, span, one)
            assert span.last + EVALUATED_SECONDS <= one.last + LINGERS_SECONDS[one.severity], (place, span, one)


def _found(seen: Watched, kind: str) -> Spans:
    """Of what is still found at the end nothing is known of the end."""
    found: Spans = {}
    for when, change in seen.changes:
        place = change.finding.place
        labels = {**place.labels(), "mountpoint": place.part if kind.startswith("HostDisk") else ""}
        spans = found.setdefault(_place(labels), []) if change.finding.kind == kind else []
        if change.finding.kind == kind and change.state == "open":
            spans.append(Span(change.finding.severity, when, math.inf))
        elif spans:
            last = when if change.state == "close" else math.inf
            spans[-1] = Span(change.finding.severity, spans[-1].first, last)
    return found


def _place(labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, labels[name]) for name in PLACE if labels.get(name))


def _told(seen: Watched, kind: str, folder: Path) -> Spans:
    """When the rules of the name fired, first and last."""
    wanted = [*_needed(kind)]
    group = {"name": kind, "rules": [rule.body for rule in wanted]}
    (folder / "rules.yml").write_text(yaml.safe_dump({"groups": [group]}))
    names = {name for rule in wanted for name in re.findall(r"\w[\w:]+", rule.expr)}
    series = [{"series": name, "values": _values(told, seen.seconds // STEP_SECONDS)}
              for name, told in seen.series.items() if name.partition("{")[0] in names]  # fmt: skip
    firing = f'timestamp(ALERTS{{alertname="{kind}",alertstate="firing"}})[{seen.seconds}s:{EVALUATED_SECONDS}s]'
    asked = [{"expr": f"{ask}_over_time({firing})", "eval_time": f"{seen.seconds}s", "exp_samples": []}
             for ask in ("min", "max")]  # fmt: skip
    test = {"rule_files": ["rules.yml"], "evaluation_interval": f"{EVALUATED_SECONDS}s", "tests": [
        {"interval": f"{STEP_SECONDS}s", "input_series": series, "promql_expr_test": asked}]}  # fmt: skip
    (folder / "twins.test.yml").write_text(json.dumps(test))
    return dict(_read(promtool_told("test", "rules", folder / "twins.test.yml")))


def _needed(kind: str) -> Iterator[Rule]:
    """The alert's rules, after what they are made of."""
    every = [*rules()]
    names = {kind}
    while True:
        more = {found for rule in every if rule.name in names for found in re.findall(r"\w[\w:]+", rule.expr)}
        if more <= names:
            return (rule for rule in every if rule.name in names)
        names |= more


def _values(told: dict[int, float], count: int) -> str:
    """As promtool wants them; what is no longer told is gone at once."""
    found, was = [], False
    for number in range(count + 1):
        value = told.get(number)
        found.append(
            ("stale" if was else "_") if value is None else repr(value).replace("inf", "Inf").replace("nan", "NaN")
        )
        was = value is not None
    return " ".join(found)


def _read(words: str) -> Iterator[tuple[tuple[tuple[str, str], ...], list[Span]]]:
    """promtool says what it got in the place of nothing."""
    assert "got:" in words or "SUCCESS" in words, words[:2000]
    firsts, lasts = ([*_samples(part)] for part in [*words.split("expr:"), "", ""][1:3])
    found: dict[Any, list[Span]] = {}
    for (labels, first), (_, last) in zip(firsts, lasts, strict=True):
        found.setdefault(_place(labels), []).append(Span(labels["severity"], first, last))
    yield from found.items()


def _samples(part: str) -> Iterator[tuple[dict[str, str], float]]:
    for labels, value in re.findall(r"\{([^{}]*)\} (\S+?)(?:,|$)", part.partition("got:")[2], re.MULTILINE):
        yield dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)
