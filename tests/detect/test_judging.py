"""The judge of what was said: hits, what is late, false or the same word again; and the scores made of it."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.detect import labelled, nab, nanogpt, page, stragglers, tables
from bench.detect.__main__ import main as bench_main
from bench.detect.matching import Judgement, judge
from bench.detect.replaying import Found, read
from bench.detect.results import Results
from bench.detect.scores import Score, Tally
from tests.detect.scenarios import Recording, all_scenarios
from tests.detect.scenarios.training import T0, Training
from tests.detect.scenarios.truth import PAGE, TICKET, Allowed, Expected

NAN = Expected("TrainingNonFinite", PAGE, T0 + 100, 10.0, "gemma", step=80)


def recording(*expected: Expected, allowed: tuple[Allowed, ...] = ()) -> Recording:
    return Recording((Training(steps=120, ranks=2),), expected=expected, allowed=allowed)


def found(kind: str = "TrainingNonFinite", severity: str = "page", at: float = 101.0, rank: int | None = 0,
          cause: str = "", last: float = 200.0, gpu: int | None = None) -> Found:  # fmt: skip
    return Found(kind, severity, "gemma", rank, gpu, None, T0 + at, T0 + last, cause=cause)


def counts(judged: Judgement) -> tuple[int, int, int, int, int]:
    return len(judged.hits), len(judged.missed), len(judged.late), len(judged.false), len(judged.repeats)


@pytest.mark.parametrize(
    ("said", "hits", "missed", "late", "false", "repeats"),
    [
        ([found()], 1, 0, 0, 0, 0),
        ([], 0, 1, 0, 0, 0),
        ([found(at=99)], 1, 0, 0, 0, 0),
        ([found(at=60)], 0, 1, 0, 1, 0),
        ([found(at=111)], 0, 1, 1, 0, 0),
        ([found(severity="ticket")], 0, 1, 0, 1, 0),
        ([found(kind="TrainingLossSpike")], 0, 1, 0, 1, 0),
        ([found(), found(rank=1, at=102)], 1, 0, 0, 0, 1),
        ([found(), found(at=105)], 1, 0, 0, 1, 0),
        ([found(), found(rank=1, at=180)], 1, 0, 0, 1, 0),
    ],
)
def test_a_finding_is_a_hit_once_in_time_and_of_its_severity(
    said: list[Found], hits: int, missed: int, late: int, false: int, repeats: int
) -> None:
    assert counts(judge(recording(NAN), said)) == (hits, missed, late, false, repeats)


@pytest.mark.parametrize(("at", "hits"), [(105.0, 1), (111.0, 0)])
def test_what_has_to_be_a_page_is_judged_by_when_it_became_one(at: float, hits: int) -> None:
    escalated = replace(found(), escalated=T0 + at)
    judged = judge(recording(NAN), [escalated])
    assert (len(judged.hits), len(judged.late)) == (hits, 1 - hits)
    either = replace(NAN, severities=(*PAGE, *TICKET))
    assert len(judge(recording(either), [escalated]).hits) == 1


def test_what_names_another_rank_than_the_one_asked_for_is_false() -> None:
    slow = Expected("TrainingStraggler", TICKET, T0 + 50, 200.0, "gemma", rank=1)
    judged = judge(recording(slow), [found("TrainingStraggler", "ticket", rank=0)])
    assert counts(judged) == (0, 1, 0, 1, 0)


def test_what_is_allowed_is_neither_asked_for_nor_false_and_evidence_only_as_such() -> None:
    also = (Allowed("TrainingLossSpike"), Allowed("TrainingStalled", folded=True))
    said = [found(), found("TrainingLossSpike", "ticket"), found("TrainingStalled", cause="TrainingNonFinite")]
    assert counts(judge(recording(NAN, allowed=also), said)) == (1, 0, 0, 0, 0)
    assert judge(recording(NAN, allowed=also), [found(), found("TrainingStalled")]).false_pages == 1


def test_what_is_told_under_a_cause_has_the_severity_of_that_message() -> None:
    line = {"kind": "HostOomKill", "severity": "ticket", "first_timestamp": "2026-03-02T08:01:00.000Z",
            "last_timestamp": "2026-03-02T08:05:00.000Z",
            "evidence": [{"kind": "TrainingKilled", "severity": "page", "run": "gemma", "rank": None}]}  # fmt: skip
    cause, evidence = read(json.loads(json.dumps(line)))
    killed = Expected("TrainingKilled", PAGE, T0 + 62, 10.0, "gemma")
    assert (evidence.cause, evidence.severity, evidence.first) == ("HostOomKill", "ticket", T0 + 60)
    assert counts(judge(recording(killed), [cause, evidence])) == (0, 1, 0, 2, 0)


def test_scores_count_against_the_detector_that_said_it_and_the_family_in_which_it_did() -> None:
    scenario, tally = next(all_scenarios()), Tally()
    made = recording(NAN)
    tally.add(scenario, made, judge(made, [found(at=104), found("TrainingLossSpike", "ticket"), found("GpuMissing")]))

    family = tally.families[scenario.family]
    assert (family.precision, family.recall, family.false_pages) == (pytest.approx(1 / 3), 1.0, 1)
    assert tally.kinds["GpuMissing"].false == tally.kinds["TrainingLossSpike"].false == 1
    assert tally.kinds["TrainingNonFinite"].precision == 1.0
    assert family.delay(0.5)[0] == pytest.approx(4.0)
    assert len(tally.wrong) == 2


def test_where_nothing_is_to_be_found_silence_is_the_score() -> None:
    assert Score(scenarios=4, clean=3).worst == 0.75
    assert Score(scenarios=4, clean=4, expected=2, hits=0).worst == 0.0


def test_scenarios_are_chosen_by_a_word_of_their_name_or_family() -> None:
    chosen = labelled.chosen(["SourceDown", "nonfinite"])
    assert {one.kinds[0] for one in chosen if one.kinds} >= {"SourceDown", "TrainingNonFinite"}
    assert {one.family for one in chosen} < {one.family for one in labelled.chosen([])}


def test_the_page_is_written_between_its_marks_and_told_in_words(tmp_path: Path) -> None:
    target = tmp_path / "detection.md"
    target.write_text(f"# Title\n\n{page.BEGIN}\nNot measured yet\n{page.END}\n\n## After\n")
    tally, made = Tally(), recording(NAN)
    tally.add(next(all_scenarios()), made, judge(made, [found()]))
    results = Results(
        tally, nanogpt.Nanogpt(2, 50), [stragglers.Trace("job_1", 6, 10, {6: 21})], nab.Nab(12.0, 1, 2, 1, 3)
    )
    page.put(target, page.measured(results))
    page.put(target, page.measured(results))

    text = target.read_text()
    assert text.startswith("# Title") and text.rstrip().endswith("## After") and "Not measured yet" not in text
    assert text.count("### By detector") == 1
    assert "| stragglers of job_1 | worker 6 alone, within 20 steps | worker 6, 11 steps after | met |" in text
    assert str(Path.cwd()) not in text


def measured(tally: Tally, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(labelled, "measure", lambda scenarios, jobs: tally)
    monkeypatch.setattr("sys.argv", ["bench.detect", "nonfinite"])
    return bench_main()


def test_a_goal_that_is_missed_ends_the_bench_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario, made, met, missed = next(all_scenarios()), recording(NAN), Tally(), Tally()
    met.add(scenario, made, judge(made, [found()]))
    missed.add(scenario, made, judge(made, [found(), found("TrainingStalled")]))
    assert measured(met, monkeypatch) == 0
    assert measured(missed, monkeypatch) == 1
    assert "bench: missed: precision, all labelled scenarios, lowest family" in capsys.readouterr().err


def test_the_page_in_the_repository_has_its_marks() -> None:
    text = (Path(page.__file__).parents[2] / "docs" / "detection.md").read_text()
    assert text.count(page.BEGIN) == text.count(page.END) == 1


@pytest.mark.parametrize(
    ("named", "is_right"), [({6: 21}, True), ({6: 40}, False), ({6: 21, 2: 30}, False), ({}, False), ({2: 21}, False)]
)
def test_a_trace_is_right_where_the_slow_worker_alone_is_named_in_time(named: dict[int, int], is_right: bool) -> None:
    assert stragglers.Trace("job_1", 6, 10, named).is_right == is_right


def test_a_log_is_read_with_the_time_of_each_step(tmp_path: Path) -> None:
    rows = ["log,step,train_loss,train_time_ms,step_avg_ms", "4,1,10.5,,", "4,2,9.5,100,", "4,3,9.0,250,", "8,1,10.0,,"]
    (tmp_path / "steps.csv.gz").write_bytes(gzip.compress("\n".join(rows).encode()))
    one, other = nanogpt.read(tmp_path / "steps.csv.gz")
    assert (one.number, one.steps, other.number) == ("4", [1, 2, 3], "8")
    assert nanogpt._seconds(one) == pytest.approx([0.3, 0.4, 0.55])


@pytest.mark.parametrize(("high", "is_spike"), [(3, True), (2, False)])
def test_a_ticket_is_true_where_the_loss_was_up_for_three_steps(high: int, is_spike: bool) -> None:
    losses = [4.0 + 0.01 * (step % 7) for step in range(300)]
    losses[200 : 200 + high] = [6.0] * high
    log = nanogpt.Log("4", list(range(300)), losses, [None] * 300)
    assert nanogpt.is_spike(log, 203) == is_spike
    assert nanogpt.spikes_of(log) == int(is_spike)


def test_a_word_in_a_window_is_worth_more_the_earlier_it_comes() -> None:
    values = [(float(when), 0.0) for when in range(1000)]
    found_early, _, early = nab.score(values, [(500.0, 600.0)], [500.0])
    _, _, late = nab.score(values, [(500.0, 600.0)], [590.0])
    _, false, outside = nab.score(values, [(500.0, 600.0)], [10.0, 300.0, 500.0])
    assert found_early == 1 and 0.98 < early <= 1.0
    assert 0.0 < late < early
    assert (false, outside) == (1, pytest.approx(early - 0.11))
    assert nab.score(values, [(500.0, 600.0)], []) == (0, 0, -1.0)


def test_a_jump_in_a_series_is_one_word() -> None:
    values = [(float(when), 1.0 + 0.01 * (when % 3) + (5.0 if 500 <= when < 520 else 0.0)) for when in range(1000)]
    assert list(nab.spikes(values)) == [502.0]


def test_lengths_of_time_are_told_in_a_fitting_unit() -> None:
    assert [tables.lasting(value) for value in (0.4, 150.0, 9000.0, 400000.0)] == ["0.4 s", "2.5 min", "2.5 h", "4.6 d"]
