"""What is drawn of what was told: gaps, spikes, smoothing, sums and rates."""

import json
from typing import Any

from tests.web_page.modules import evaluate

PLOT = {"plot": "plot_data.js"}


def told(program: str) -> Any:
    return evaluate(PLOT, program)


def fitted(mean: list[float | None], bad: list[int], x: list[float] | None = None, is_time: bool = False) -> Any:
    """null: the line breaks; "on": the line goes on over it."""
    column = {"min": mean, "max": mean, "mean": mean, "nonfinite": bad}
    xs = x or list(range(len(mean)))
    call = f"plot.fit({json.dumps(column)}, {json.dumps(xs)}, false, {json.dumps(is_time)}).mean"
    return told(f"{call}.map((value) => value === undefined ? 'on' : value)")


def test_a_line_breaks_where_a_value_was_no_number_and_goes_on_over_what_is_not_known() -> None:
    assert fitted([1, None, 2, None, 3], [0, 3, 0, 0, 0]) == [1, None, 2, "on", 3]


def test_on_the_axis_of_time_a_long_pause_is_a_gap() -> None:
    x = [float(at) for at in range(100)] + [5000.0, 5001.0, 5002.0, 5003.0]
    mean: list[float | None] = [1.0] * 99 + [None] + [1.0] * 4
    assert fitted(mean, [0] * 104, x, is_time=True)[98:101] == [1, None, 1]
    assert fitted(mean, [0] * 104, x)[98:101] == [1, "on", 1]


def test_smoothing_starts_with_the_first_value_and_nan_leaves_no_trace() -> None:
    values = told("plot.smoothed([4, 2, null, undefined, 2], 0.5).map((value) => value === undefined ? 'on' : value)")
    assert values[0] == 4
    assert values[1] == (0.5 * 4 + 2) / 1.5
    assert values[2:4] == [None, "on"]
    assert 2 < values[4] < values[1]
    assert told("plot.smoothed([1, 2], 0)") is None


def test_on_a_logarithmic_scale_nothing_is_drawn_at_nought() -> None:
    assert told("plot.positive([1, 0, -1, null, 2])") == [1, None, None, None, 2]


def test_phases_lie_upon_each_other_and_are_read_as_they_are() -> None:
    lines = [{"x": [1, 2], "mean": [1, 2]}, {"x": [1, 2], "mean": [10, None]}]
    found = told(f"plot.stacked({json.dumps(lines)})")
    assert [line["mean"] for line in found] == [[1, 2], [11, 2]]
    assert [line["own"] for line in found] == [[1, 2], [10, None]]


def test_a_counter_that_starts_over_is_a_gap_and_no_fall() -> None:
    assert told("plot.rates([null, 10, 30, 5, null, 25], [0, 1, 2, 3, 4, 5])") == [None, None, 20, None, None, 10]


def test_between_rare_readings_the_line_goes_on_and_a_gap_is_longer_than_a_few_of_them() -> None:
    rare = [5, None, None, 6, None, None, 7, None, None, 8, *[None] * 19, 9]
    found = told(
        f"plot.bridged({json.dumps(rare)}, {json.dumps(list(range(20)))}).map((value) => value ?? String(value))"
    )
    assert found[:10] == [5, "undefined", "undefined", 6, "undefined", "undefined", 7, "undefined", "undefined", 8]
    assert found[10:] == ["null"] * 19 + [9]


def test_the_nearest_value_is_found_in_long_and_in_empty_lines() -> None:
    assert told("[plot.nearest([1, 5, 9], 6.9), plot.nearest([1, 5, 9], 7.1), plot.nearest([1], 99)]") == [1, 2, 0]
