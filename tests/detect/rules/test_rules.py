"""What rules find in what they are asked of."""

import math

import pytest

from tests.detect.rules.support import one, rules_of, train
from trainvitals.detect.finding import Place

HOT = """
- name: Hot loss
  when: loss > 2 * target and step > 500
  for: 5 steps
  severity: page
  message: "Loss is {loss:.2f}"
  cooldown: 300s
"""


def test_the_rule_of_the_manual_is_found_at_the_fifth_step():
    rules = rules_of(HOT)
    found = []
    for step in range(495, 507):
        found += rules.training("gemma", 0, 1000.0 + step, {"step": step, "loss": 9.0, "target": 2.0})
    first, second = found
    assert (first.kind, first.severity, first.what, first.step) == ("Hot loss", "page", "Loss is 9.00", 505)
    assert (first.value, first.threshold, first.place) == (9.0, 4.0, Place(run="gemma", rank="0"))
    assert second.key == first.key
    assert rules.kinds == {"Hot loss"}


def test_without_words_the_condition_is_told_with_its_value():
    (finding,) = one("loss > 2 and step > 1").training("a", 0, 1.0, {"step": 2, "loss": 3.5})
    assert finding.what == "loss > 2 and step > 1: it is 3.5"
    (finding,) = one("isnan(loss)").training("a", 0, 1.0, {"step": 2, "loss": math.nan})
    assert (finding.what, finding.value, finding.severity) == ("isnan(loss)", None, "ticket")


def test_a_finding_says_what_to_do_where_the_rule_does():
    (finding,) = one("loss > 2", advice="Call Ada.").training("a", 0, 1.0, {"step": 2, "loss": 3})
    assert finding.todo == "Call Ada."


def test_steps_in_a_row_are_counted_and_one_that_is_well_begins_anew():
    rules = one("loss > 2", for_="3 steps", cooldown=0)
    assert train(rules, [3, 3, 1, 3, 3, 3, 3, 1, 3, 3]) == [6, 7]


def test_several_lines_of_a_step_are_one_step():
    rules = one("loss > 2", for_="3 steps")
    found = [rules.training("a", 0, 1.0, {"step": step, "loss": 3}) for step in (1, 1, 1, 2, 2)]
    assert not any(found)
    assert rules.training("a", 0, 1.0, {"step": 3, "loss": 3})


def test_seconds_are_those_of_the_lines():
    rules = one("loss > 2", for_="30s")
    assert train(rules, [3, 3, 3, 3, 3], every=10.0) == [4, 5]


def test_a_clock_that_is_set_back_keeps_no_rule_silent():
    rules = one("loss > 2", for_="30s", cooldown="1m")
    whens = (9000.0, 5000.0, 5020.0, 5040.0)
    found = [bool(rules.training("a", 0, when, {"step": step, "loss": 3})) for step, when in enumerate(whens)]
    assert found == [False, False, False, True]


def test_a_value_told_in_another_line_or_an_earlier_step_counts():
    rules = one("loss > 2 * target", cooldown=0)
    assert train(rules, [{"target": 2.0}, {"loss": 3.0}, {"loss": 5.0}, {"epoch": 1}, {"loss": 1.0}]) == [3]


def test_a_step_that_does_not_tell_what_is_asked_for_is_passed_over():
    rules = one("`val/loss` > 2", for_="2 steps")
    assert train(rules, [{"val/loss": 3}, {"loss": 1}, {"loss": 1}, {"val/loss": 3}, {"loss": 1}]) == [4]


def test_what_nobody_told_is_no_error_and_no_finding():
    assert train(one("nobody > 2 or loss > nobody"), [1, 9, math.nan]) == []


@pytest.mark.parametrize("value", [None, "high", [9], {"a": 9}, math.nan])
def test_what_is_no_number_is_unknown(value):
    assert train(one("loss > 2"), [value]) == []


def test_numbers_of_any_kind_are_taken():
    assert train(one("loss >= 1"), [True, False, 10**400, 2, 1.5, -(10**400)]) == [1, 3, 4, 5]


def test_that_a_field_was_never_told_can_be_asked_of_each_line():
    assert train(one("step > 2 and not known(loss)"), [{"epoch": 1}] * 4 + [1.0]) == [3, 4]


def test_a_reopening_waits_for_the_cooldown():
    """A finding that was told lately is open still: that is no opening."""
    rules = one("loss > 2", cooldown="300s")
    values = [3, 3, *[1] * 10, 3, *[1] * 10, 3, 3]
    assert train(rules, values, every=20.0) == [1, 2, 24, 25]


def test_a_slow_step_keeps_its_finding_open_to_the_next():
    rules = one("loss > 2", cooldown="1h")
    found = [
        finding for step in range(4) for finding in rules.training("a", 0, 600.0 * step, {"step": step, "loss": 3})
    ]
    assert len(found) == 1
    rules = one("loss > 2", cooldown="1h")
    found = []
    for step in range(1, 6):
        found += rules.training("a", 0, 600.0 * step, {"step": step, "loss": 3 if step > 2 else 1})
    assert [finding.stays for finding in found] == [1800.0] * 3


def test_a_window_is_over_the_steps_that_told_it():
    rules = one("mean(loss, 3) > 2", cooldown=0)
    assert train(rules, [9, 9, {"epoch": 1}, 1, 1, 1, math.nan, math.inf, 9]) == [4, 5, 9]


def test_a_window_takes_one_value_a_step():
    rules = one("max(loss, 2) > 0")
    assert not rules.training("a", 0, 1.0, {"step": 1, "loss": 3})
    assert not rules.training("a", 0, 1.0, {"step": 1, "loss": 3})
    assert rules.training("a", 0, 1.0, {"step": 2, "loss": 3})


def test_windows_within_windows_and_of_what_is_worked_out():
    assert train(one("max(mean(loss / target, 2), 2) > 2"), [{"loss": 6, "target": 2}] * 4) == [3, 4]


@pytest.mark.parametrize(
    ("when", "steps"), [("slope(loss, 5) > 0.39", [9, 10, 11]), ("slope(loss, 5s) > 0.39", [10, 11])]
)
def test_a_slope_is_per_step_or_per_second(when, steps):
    assert train(one(when), [4, 3, 2, 1, 1, 1, 1.5, 2, 2.5, 3, 3.5]) == steps


def test_runs_stand_for_themselves_and_are_forgotten():
    rules = one("loss > 2", for_="2 steps")
    assert train(rules, [3], "a") == train(rules, [3], "b") == []
    assert train(rules, [3], "a", first=2) == [2]
    rules.forget("b")
    assert train(rules, [3], "b", first=2) == []


def test_the_lowest_rank_that_tells_it_is_asked():
    rules = one("loss > 2", cooldown=0)
    assert train(rules, [3], rank=7) == [1]
    assert train(rules, [{"epoch": 1}], rank=0) == []
    assert train(rules, [3], rank=7, first=2) == [2]
    assert train(rules, [3], rank=3, first=2) == [2]
    assert train(rules, [3], rank=7, first=3) == []
    (finding,) = rules.training("a", 0, 9e3, {"step": 3, "loss": 3})
    assert finding.place.rank == "0"


def test_each_gpu_is_asked_for_itself():
    rules = one("gpu.temperature_celsius > 85 and memory_percent > 50", for_="10s",
                message="GPU {gpu} has {temperature_celsius} °C")  # fmt: skip
    found = []
    for second in range(12):
        for gpu in range(3):
            values = {"temperature_celsius": 90.0 if gpu == 1 else 60.0, "memory_used_mb": 6.0, "memory_total_mb": 10.0}
            found += rules.gpu(float(second), (("gpu", str(gpu)), ("uuid", f"GPU-{gpu}")), values)
    assert [(finding.what, finding.place) for finding in found] == [
        ("GPU 1 has 90 °C", Place(gpu="1", uuid="GPU-1"))
    ] * 2


def test_what_a_gpu_does_not_tell_is_as_it_was_until_it_is_unknown():
    rules = one("power_draw_watts > 100 and temperature_celsius > 85", cooldown=0)
    labels = {"gpu": "0", "uuid": "GPU-0"}
    assert not rules.gpu(1.0, labels, {"power_draw_watts": 200.0})
    assert rules.gpu(2.0, labels, {"temperature_celsius": 90.0})
    assert not rules.gpu(3.0, labels, {"power_draw_watts": None})
    assert not rules.gpu(4.0, labels, {"temperature_celsius": 90.0})


def test_the_host_is_asked():
    rules = one("cpu_usage_percent > 90 and min(host.cpu_usage_percent, 5s) > 80")
    found = [bool(rules.host(float(second), {"cpu_usage_percent": 95.0})) for second in range(8)]
    assert found == [False] * 5 + [True] * 3
    assert rules.host(8.0, {"cpu_usage_percent": 95.0})[0].place == Place()


def test_a_rule_of_both_is_asked_with_each_line_of_the_run_beside_any_of_its_gpus():
    rules = one("loss > 2 and gpu.temperature_celsius > 85", cooldown=0,
                message="'{loss} at {gpu.temperature_celsius}, GPU {gpu}'")  # fmt: skip
    rules.gpus["a"] = {"GPU-0", "GPU-1"}
    assert train(rules, [3]) == []
    for gpu, heat in enumerate((60.0, 90.0, 99.0)):
        assert not rules.gpu(1000.0, {"gpu": str(gpu), "uuid": f"GPU-{gpu}"}, {"temperature_celsius": heat})
    (finding,) = rules.training("a", 0, 1001.0, {"step": 2, "loss": 3})
    assert (finding.what, finding.place) == ("3 at 90, GPU 1", Place(run="a", rank="0"))
    (finding,) = rules.training("b", 0, 1001.0, {"step": 2, "loss": 3})
    assert finding.what == "3 at 90, GPU 1"
    assert not rules.training("a", 0, 1100.0, {"step": 3, "loss": 3})


def test_host_and_gpu_and_host_and_run_go_together():
    rules = rules_of("- {name: r, when: cpu_usage_percent > 90 and loss > 2}\n"
                     "- {name: g, when: cpu_usage_percent > 90 and temperature_celsius > 80}")  # fmt: skip
    assert not rules.training("a", 0, 1.0, {"step": 1, "loss": 3})
    assert not rules.host(1.0, {"cpu_usage_percent": 95.0})
    assert [finding.kind for finding in rules.training("a", 0, 1.5, {"step": 2, "loss": 3})] == ["r"]
    assert [finding.kind for finding in rules.gpu(2.0, {"gpu": "0"}, {"temperature_celsius": 90.0})] == ["g"]


def test_a_name_that_no_line_tells_is_told_once(caplog):
    rules = one("loss > 2 * targt and not known(never)")
    train(rules, [{"loss": 1.0, "target": 2.0}] * 450)
    (hint,) = rules.hints
    assert hint == "rule 'r': run a told no 'targt' in its first 200 lines; the nearest that it tells is 'target'"
    assert [record.message for record in caplog.records] == [hint]


def test_no_hint_where_each_name_was_told_by_some_run():
    rules = one("loss > 2 and reward > 1")
    for step in range(150):
        for run, name in (("a", "loss"), ("b", "reward")):
            rules.training(run, 0, step, {"step": step, name: 1.0})
    assert not rules.hints


def test_memory_is_bounded():
    rules = one("loss > 2 and nobody > 3 and mean(loss, 10) > 3")
    for at in range(400):
        rules.training(f"run-{at}", 0, at, {"step": 1, "loss": 3, **{f"x{number}": 1.0 for number in range(50)}})
        rules.training("wide", at, at, {"step": 1, "loss": 3})
        rules.gpu(at, {"gpu": str(at)}, {"temperature_celsius": 1.0})
    assert len(rules._runs) <= 256
    assert len(rules._runs["wide"].ranks) <= 17
    assert rules._runs["run-399"].ranks[0].values.keys() == {"run.loss"}
    assert not rules._gpus


def test_lines_of_others_making_harm_nothing():
    rules = one("loss > 2 and mean(loss, 2) > 1 and step > 0", message="'{loss} {step} {run}'")
    for line in ({}, {"step": None}, {"step": "x", "loss": 3}, {"step": -1, "loss": 3}, {"step": 1e9, "loss": 3},
                 {"loss": 3}, {"loss": 3}, {"step": 2**70, "loss": 3}, {"step": 3, "loss": {"a": 1}}):  # fmt: skip
        rules.training("a", 0, 1.0, line)
    rules.gpu(1.0, {}, {"temperature_celsius": "hot"})
    rules.host(1.0, {"cpu_usage_percent": None})
