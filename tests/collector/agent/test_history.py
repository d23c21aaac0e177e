"""The history: three lanes, gaps that stay gaps, and a month in little memory."""

import math
import subprocess
import sys

import pytest

from trainvitals.agent.history import HISTORY_FIELDS, HOST, LANES, History

NOW = 1_753_878_896.0
FIELD = "temperature_celsius"


def put(history: History, when: float, value: float, replayed: bool = False) -> None:
    history.put("0", when, {FIELD: value}, replayed)


def points(history: History, start: float, end: float = NOW, now: float = NOW) -> tuple[int, list[tuple[float, ...]]]:
    width, found = history.points("0", FIELD, start, end, now)
    return width, [tuple(point) for point in found]  # type: ignore[arg-type]


def test_the_last_hour_comes_by_the_second_with_gaps() -> None:
    history = History()
    put(history, NOW - 2, 50.25)
    put(history, NOW, 51)
    assert points(history, NOW - 2) == (1, [(NOW - 2, 50.25, 50.25), (NOW - 1, None, None), (NOW, 51, 51)])


def test_a_day_comes_as_means_that_keep_the_peak() -> None:
    history = History()
    start = NOW - NOW % 10 - 7200
    for second in range(10):
        put(history, start + second, 90 if second == 3 else 50)
    put(history, NOW, 50)
    width, found = points(history, start)
    assert width == 10
    assert found[0] == (start, 54, 90)


def test_a_month_comes_by_the_minute() -> None:
    history = History()
    put(history, NOW - 29 * 86400, 40)
    put(history, NOW, 50)
    width, found = points(history, NOW - 30 * 86400)
    assert width == 60
    assert [point[1] for point in found if point[1] is not None] == [40, 50]


@pytest.mark.parametrize(("width", "slots"), LANES)
def test_what_is_older_than_a_lane_is_not_in_it(width: int, slots: int) -> None:
    history = History()
    put(history, NOW - width * slots, 11)
    put(history, NOW, 50)
    assert 11 not in [point[1] for point in points(history, NOW - width * slots + width)[1]]


def test_a_ring_that_comes_round_forgets_what_it_passed_over() -> None:
    history = History()
    for second in range(0, 8000, 2):
        put(history, NOW + second, 60)
    _, found = points(history, NOW + 7990, NOW + 8000, NOW + 8000)
    assert [point[1] for point in found] == [60, None, 60, None, 60, None, 60, None, 60]


def test_the_past_may_be_filled_in_after_the_present_began() -> None:
    history = History()
    put(history, NOW, 50)
    for second in range(60):
        put(history, NOW - 60 + second, 40, replayed=True)
    put(history, NOW + 1, 51)
    width, found = points(history, NOW - 60, NOW + 1, NOW + 1)
    assert [point[1] for point in found] == [40] * 60 + [50, 51]
    assert width == 1


def test_values_beyond_the_scale_stop_at_its_end_and_unknown_ones_are_gaps() -> None:
    history = History()
    history.put("0", NOW, {FIELD: 1e9, "power_draw_watts": None, "utilization_percent": -5.0})
    assert points(history, NOW)[1][0][1] == pytest.approx(655.34)
    assert history.points("0", "power_draw_watts", NOW, NOW, NOW)[1] == []
    assert history.points("0", "utilization_percent", NOW, NOW, NOW)[1][0].mean == 0


def test_every_value_a_gpu_can_show_comes_back_as_precise_as_it_is_read() -> None:
    history = History()
    for name in HISTORY_FIELDS:
        unit = 0.0625 if name == "power_draw_watts" else 0.01
        history.put("0", NOW, {name: 87.1234})
        assert history.points("0", name, NOW, NOW, NOW)[1][0].mean == pytest.approx(87.1234, abs=unit / 2)


def test_gpus_are_listed_by_number_and_an_unknown_one_has_no_points() -> None:
    history = History()
    for gpu in ("10", "2", "0"):
        history.put(gpu, NOW, {FIELD: 1.0})
    assert history.gpus() == ["0", "2", "10"]
    assert history.points("77", FIELD, NOW, NOW, NOW) == (1, [])


def test_a_month_of_eight_gpus_takes_at_most_8_mib() -> None:
    """Filled to the brim in a process of its own, measured by what the kernel counts."""
    script = """
import psutil
from trainvitals.agent.history import HISTORY_FIELDS, HOST, LANES, History
history = History()
values = dict.fromkeys(HISTORY_FIELDS, 50.0)
before = psutil.Process().memory_info().rss
for gpu in range(8):
    history.put(str(gpu), 0, values)
    for name in HISTORY_FIELDS:
        for lane in history._lanes[(str(gpu), name)]:
            lane._means[:] = memoryview(b"\\1" * lane._means.nbytes).cast("H")
            if lane._peaks is not lane._means:
                lane._peaks[:] = memoryview(b"\\1" * lane._peaks.nbytes).cast("H")
print((psutil.Process().memory_info().rss - before) / 2**20)
"""
    grown = float(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)
    assert 6 < grown <= 8


def test_after_the_clock_was_ahead_and_was_set_right_the_present_shows() -> None:
    history = History()
    for second in range(-600, 0):
        put(history, NOW + second, 40)
    for second in range(600):
        put(history, NOW + 86400 + second, 90)
    for second in range(600):
        put(history, NOW + second, 50)
    for start, seconds in ((NOW + 590, 1), (NOW - 20_000, 10), (NOW - 20 * 86400, 60)):
        width, found = points(history, start, NOW + 2 * 86400, NOW + 599)
        seen = [point for point in found if point[1] is not None]
        assert width == seconds
        assert {point[1] for point in seen} <= {40, 50}, width
        assert seen[-1][0] == pytest.approx(NOW + 599, abs=width)


def test_a_reading_that_comes_a_little_late_clears_nothing() -> None:
    history = History()
    put(history, NOW, 50)
    put(history, NOW - 3, 40)
    assert [point[1] for point in points(history, NOW - 3)[1]] == [40, None, None, 50]


def test_what_is_replayed_never_sets_the_present_back() -> None:
    history = History()
    put(history, NOW, 50)
    put(history, NOW - 3000, 40, replayed=True)
    assert points(history, NOW)[1] == [(NOW, 50, 50)]


def test_points_may_be_fewer_and_keep_the_peak_and_the_gap() -> None:
    history = History()
    start = NOW - NOW % 60 - 600
    for second in range(600):
        if not 120 <= second < 240:
            put(history, start + second, 90.0 if second == 301 else 50.0)
    width, found = history.points("0", FIELD, start, start + 599, start + 599, 10)
    assert width == 60
    assert [point.peak for point in found] == [50, 50, None, None, 50, 90, 50, 50, 50, 50]
    assert found[5].mean == pytest.approx(50 + 40 / 60, abs=0.01)
    assert [point.timestamp for point in found] == [start + 60 * number for number in range(10)]


def test_points_stay_where_they_are_as_time_goes_on() -> None:
    history = History()
    for second in range(200):
        put(history, NOW + second, 50.0)
    for late in range(12):
        found = history.points("0", FIELD, NOW + late, NOW + 150 + late, NOW + 200, 15)[1]
        assert found and all(point.timestamp % 10 == 0 for point in found)


@pytest.mark.parametrize("value", [0.0, 1.0, 1234.5, 7e9, 3.3e13])
def test_bytes_of_every_size_are_kept_to_a_thousandth(value: float) -> None:
    history = History()
    history.put(HOST, NOW, {"network_receive_bytes_per_second": value, "cpu_iowait_ratio": 0.0123})
    [point] = history.points(HOST, "network_receive_bytes_per_second", NOW, NOW, NOW)[1]
    assert point.mean == pytest.approx(value, rel=0.001, abs=0.001)
    assert history.points(HOST, "cpu_iowait_ratio", NOW, NOW, NOW)[1][0].mean == 0.0123
    assert history.gpus() == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "7", None])
def test_what_is_no_number_is_a_gap(value: object) -> None:
    history = History()
    history.put(HOST, NOW, {"cpu_usage_percent": value})
    assert history.points(HOST, "cpu_usage_percent", NOW, NOW, NOW)[1] == []


@pytest.mark.parametrize(("seconds", "width"), [(3600, 1), (86400, 10), (30 * 86400, 60)])
def test_a_span_that_was_asked_for_a_moment_before_the_last_tick_is_as_fine_as_ever(seconds: int, width: int) -> None:
    history = History()
    put(history, NOW - 10, 50.0)
    assert points(history, NOW - seconds - 5, NOW - 5)[0] == width
    assert points(history, NOW - 1.1 * seconds)[0] >= min(60, 10 * width)
