"""Whether all is well, in words: each state that somebody may look at."""

from typing import Any

import pytest

from trainvitals.agent.finding_words import WORDS, finding_words
from trainvitals.agent.verdict_words import span, verdict
from trainvitals.detect.advice import ADVICE

Json = dict[str, Any]
GEMMA = {"run": "gemma-qlora", "status": "running", "progress": {
    "step": 12400, "planned_steps": 20000, "steps_per_second": 3.1, "loss": 1.8249, "loss_trend": "falling",
    "eta_seconds": 2452}}  # fmt: skip


def view(*runs: Json, firing: tuple[Json, ...] = (), gpus: int = 8, **more: Any) -> Json:
    told = {"timestamp": "2025-07-30T12:00:00.000Z", "problems": [], "runs": list(runs), "sources": {},
            "gpus": [{"gpu": number} for number in range(gpus)], "alerts": {"firing": list(firing)}}  # fmt: skip
    return {**told, **more}


def alert(name: str, severity: str = "ticket", **labels: str) -> Json:
    return {"name": name, "labels": {"severity": severity, **labels}, "annotations": {"summary": "…"}}


def told(view: Json) -> tuple[str, str]:
    found = verdict(view)
    return found["state"], found["words"]


def test_a_run_that_is_well() -> None:
    assert told(view(GEMMA)) == (
        "well", "gemma-qlora: step 12,400 of 20,000, 3.1 steps/s, loss 1.82 and falling, ETA 41 min")  # fmt: skip


def test_with_a_finding() -> None:
    state, words = told(view(GEMMA, firing=(alert("GpuThermalMargin", gpu="3", uuid="GPU-3"),)))
    assert state == "ticket" and words.endswith("ETA 41 min; GPU 3 near its heat limit")


def test_the_worst_comes_first_for_who_looks_from_afar() -> None:
    ticket, page = alert("GpuThermalMargin", gpu="3"), alert("GpuXidFatal", "page", gpu="5")
    ran = "gemma-qlora: step 12,400 of 20,000, 3.1 steps/s, loss 1.82 and falling, ETA 41 min"

    def parts(view: Json) -> tuple[str, str]:
        found = verdict(view)
        return found["first"], found["rest"]

    assert parts(view(GEMMA)) == (ran, "")
    assert parts(view(GEMMA, firing=(page, ticket))) == ("GPU 5 has failed", f"{ran}; GPU 3 near its heat limit")
    missing = {"problems": ["7 of 8 GPUs answer"]}
    assert parts(view(GEMMA, firing=(ticket,), **missing)) == (
        "7 of 8 GPUs answer", f"{ran}; GPU 3 near its heat limit")  # fmt: skip
    assert parts(view(GEMMA, firing=(page,), **missing))[0] == "GPU 5 has failed"
    assert parts(view(timestamp=None)) == ("starting: no reading has come yet", "")


def test_what_is_silenced_is_counted_and_says_nothing_of_the_state() -> None:
    quiet = {**alert("GpuThermalMargin", "page", gpu="3"), "silenced": {"until": "2025-07-30T13:00:00.000Z"}}
    state, words = told(view(GEMMA, firing=(quiet,)))
    assert state == "well" and words.endswith("ETA 41 min; 1 silenced alert")
    state, words = told(view(GEMMA, firing=(quiet, quiet, alert("TrainingLossSpike"))))
    assert state == "ticket" and words.endswith("; 2 silenced alerts")


def test_what_is_acknowledged_is_as_wrong_as_before() -> None:
    known = {**alert("GpuThermalMargin", "page", gpu="3"), "acknowledged": {"by": "ada"}}
    assert told(view(GEMMA, firing=(known,)))[0] == "page"


def test_a_gpu_that_is_throttled_before_it_is_a_finding_is_told_and_not_twice() -> None:
    hot = [{"gpu": number, "throttle_active": ["hw_thermal_slowdown"] * (number in (3, 5))} for number in range(8)]
    state, words = told({**view(GEMMA), "gpus": hot})
    assert state == "well" and words.endswith("; GPUs 3, 5 throttled by heat")
    _, words = told({**view(GEMMA, firing=(alert("GpuHardwareSlowdown", gpu="3"),)), "gpus": hot})
    assert words.endswith("; GPU 3 slowed down by its hardware; GPU 5 throttled by heat")


def test_nothing_wrong_and_no_run() -> None:
    assert told(view()) == ("well", "8 GPUs answer, no run is live")
    assert told(view(gpus=1)) == ("well", "1 GPU answers, no run is live")
    assert told(view({**GEMMA, "status": "finished"})) == ("well", "8 GPUs answer, no run is live")


def test_heat_that_slows_a_gpu_now_is_told_as_that_and_once() -> None:
    hot = [{"gpu": 3, "throttle_active": ["sw_thermal_slowdown"]}, {"gpu": 5}]
    margin = alert("GpuThermalMargin", gpu="3"), alert("GpuThermalMargin", "page", gpu="5")
    _, words = told({**view(GEMMA, firing=(*margin, alert("GpuTemperatureHigh", gpu="3"))), "gpus": hot})
    assert words.endswith("; GPU 5 at its heat limit; GPU 3 throttled by heat")


def test_what_befell_a_run_that_has_ended_waits_for_what_goes_on() -> None:
    ended = {**GEMMA, "run": "before", "status": "crashed"}
    nan, xid = alert("TrainingNonFinite", "page", run="before"), alert("GpuXidFatal", "page", gpu="6")
    found = verdict(view(GEMMA, ended, firing=(nan, xid, alert("GpuThermalMargin", gpu="1"))))
    assert found["first"] == "GPU 6 has failed"
    assert found["rest"].endswith("; before has NaN or infinite values; GPU 1 near its heat limit")


def test_the_runs_that_are_named_are_those_that_are_worst() -> None:
    runs = [{**GEMMA, "run": f"run{number}", "progress": {}} for number in range(5)]
    firing = (alert("TrainingHangSuspected", "page", run="run4"), alert("TrainingLossSpike", run="run3"))
    words = told(view(*runs, firing=firing))[1]
    assert words.startswith("5 runs; run4: no step yet; run3: no step yet; run0: no step yet; and 2 more; ")


def test_before_the_first_reading() -> None:
    assert told(view(timestamp=None, gpus=0)) == ("starting", "starting: no reading has come yet")


def test_a_run_that_has_just_begun() -> None:
    assert told(view({**GEMMA, "progress": {}})) == ("well", "gemma-qlora: no step yet")


def test_no_gpu_and_why() -> None:
    assert told(view(gpus=0)) == ("well", "no GPU here, no run is live")
    sources = {
        "nvml": {"up": False, "problem": "nvml: the driver does not answer"},
        "host": {"up": True, "problem": ""},
    }
    assert told(view(gpus=0, sources=sources))[1] == "nvml: the driver does not answer, no run is live"


def test_several_runs_and_many() -> None:
    runs = [{**GEMMA, "run": f"run{number}"} for number in range(5)]
    _, words = told(view(*runs[:2]))
    assert words == ("2 runs; run0: step 12,400 of 20,000, loss 1.82 and falling, ETA 41 min; "
                     "run1: step 12,400 of 20,000, loss 1.82 and falling, ETA 41 min")  # fmt: skip
    _, words = told(view(*runs))
    assert words.startswith("5 runs; run0: ") and words.endswith("; and 2 more") and "run3" not in words


def test_a_run_that_hangs() -> None:
    stands = {**GEMMA, "progress": {"step": 812, "planned_steps": 20000, "loss": 1.8}}
    state, words = told(view(stands, firing=(alert("TrainingHangSuspected", "page", run="gemma-qlora"),)))
    assert (state, words) == ("page", "gemma-qlora: step 812 of 20,000, loss 1.8; gemma-qlora hangs, it seems")


def test_a_run_that_crashed() -> None:
    state, words = told(view(firing=(alert("TrainingCrashed", "page", run="gemma-qlora"),)))
    assert (state, words) == ("page", "8 GPUs answer, no run is live; gemma-qlora has crashed")


def test_a_loss_that_is_no_number() -> None:
    bad = {**GEMMA, "progress": {"step": 5, "loss": "NaN", "loss_trend": "falling"}}
    assert told(view(bad))[1] == "gemma-qlora: step 5, loss NaN"


def test_steps_that_take_long() -> None:
    slow = {**GEMMA, "progress": {"step": 5, "steps_per_second": 0.08}}
    assert told(view(slow))[1] == "gemma-qlora: step 5, 12.5 s a step"


@pytest.mark.parametrize(("severities", "problems", "state"), [
    (("info",), [], "well"), (("info", "ticket"), [], "ticket"), (("ticket", "page"), [], "page"),
    (("ticket",), ["7 of 8 GPUs answer"], "problem"), (("page",), ["7 of 8 GPUs answer"], "page"),
    ((), ["the sampler is stuck"], "problem")])  # fmt: skip
def test_the_worst_counts(severities: tuple[str, ...], problems: list[str], state: str) -> None:
    firing = tuple(alert("GpuMemoryHigh", severity, gpu="0") for severity in severities)
    assert told(view(GEMMA, firing=firing, problems=problems))[0] == state


def test_what_is_wrong_with_the_monitoring_is_told_in_its_words() -> None:
    state, words = told(view(timestamp=None, gpus=0, problems=["the sampler is stuck: no tick has ended for a while"]))
    assert (state, words) == ("problem", "the sampler is stuck: no tick has ended for a while")
    words = told(view(GEMMA, problems=["7 of 8 GPUs answer"]))[1]
    assert words.startswith("gemma-qlora: ") and words.endswith("; 7 of 8 GPUs answer")


def test_many_findings_are_counted_and_those_for_the_page_alone_are_not_told() -> None:
    firing = tuple(alert("GpuMemoryHigh", "ticket", gpu=str(number)) for number in range(5))
    _, words = told(view(GEMMA, firing=(*firing, alert("GpuSharedByOthers", "info", gpu="7"))))
    assert words.count("almost out of memory") == 3 and words.endswith("; and 2 more")


def test_every_kind_the_agent_finds_has_words() -> None:
    assert WORDS.keys() == ADVICE.keys()


@pytest.mark.parametrize(("found", "words"), [
    (alert("TrainingStraggler", run="gemma", rank="6"), "gemma rank 6 holds up the others"),
    (alert("GpuMissing"), "a GPU missing"), (alert("GpuXidFatal", gpu="2"), "GPU 2 has failed"),
    (alert("HostDiskFull", instance="gpu1"), "a disk is full"), (alert("MyRule", run="gemma"), "MyRule (gemma)"),
    (alert("MyRule"), "MyRule"), (alert("GpuMemoryLeak", run="a"), "a needs more and more memory")])  # fmt: skip
def test_findings_in_few_words(found: Json, words: str) -> None:
    assert finding_words(found) == words


def test_names_of_others_are_one_line_of_text_and_not_long() -> None:
    hostile = {**GEMMA, "run": "<script>\n\x1b[2J\u202e" + "x" * 500, "progress": {}}
    _, words = told(view(hostile))
    assert words.startswith("<script>") and len(words) < 60 and words.isprintable()


@pytest.mark.parametrize(("seconds", "words"), [
    (0, "0 s"), (0.4, "0 s"), (59, "59 s"), (60, "1 min"), (2452, "41 min"), (3600, "1 h"), (12000, "3 h 20 min"),
    (86400, "1 day"), (86400 * 2 + 4 * 3600, "2 days 4 h"), (86400 * 400, "400 days")])  # fmt: skip
def test_spans_in_words(seconds: float, words: str) -> None:
    assert span(seconds) == words
