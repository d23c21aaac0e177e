"""The small parts: figures, graphs, levels, history, and what the locale can show."""

import math
from dataclasses import replace

import pytest

from tests.tui.support import NOON, gpu, run, told
from trainvitals.tui import figures, gpu_table, levels, lines, text
from trainvitals.tui.braille import graph
from trainvitals.tui.feed import Heard
from trainvitals.tui.history import MOST_FRAMES, Frame, History
from trainvitals.tui.leaving import knows_braille
from trainvitals.tui.picture import Gpu, picture
from trainvitals.tui.view import View


def test_figures_are_short_and_odd_ones_are_words() -> None:
    told_as = {
        figures.span: {0.4: "0 s", 59: "59 s", 120: "2 min", 7260: "2 h 1 min", 4 * 86400: "4 days", -3: "0 s",
                       math.nan: "-", math.inf: "-", -math.inf: "0 s"},
        figures.large: {9999.0: "9999", 12_345.0: "12.3k", 264_000.0: "264k", 1.5e6: "1.50M", 2e9: "2.00G",
                        math.inf: "inf"},
        figures.short: {1.82345: "1.823", 3e-4: "0.0003", 1.2e-7: "1.2e-07", 0.0: "0", math.nan: "NaN"},
        figures.count: {12_400.0: "12,400", math.nan: "NaN"},
        figures.dollars: {1234.5: "$1,234.50"},
        figures.gib: {63488.0: "62.0"},
    }  # fmt: skip
    for show, cases in told_as.items():
        assert {value: show(value) for value in cases} == cases


def test_a_graph_fills_from_below_and_what_is_unknown_is_a_gap() -> None:
    assert graph([0.0, 100.0, None, 50.0], 1, 0.0, 100.0) == ["⣸⢠"]
    assert graph([0.0, 100.0, None, 50.0], 2, 0.0, 100.0) == ["⢸ ", "⣸⢸"]
    assert graph([math.nan, math.inf, None], 1, 0.0, 1.0) == ["  "]
    assert graph([5.0, 5.0], 1, 5.0, 5.0) == ["⣤"]
    assert graph([1e308, -1e308], 1, -1e308, 1e308) == ["⣀"]
    assert text.ascii_only(graph([0.0, 100.0, None, 50.0], 1, 0.0, 100.0)[0]) == "|."


def test_a_bar_has_its_width_whatever_it_shows() -> None:
    for share in (None, -1.0, 0.0, 0.049, 0.5, 0.951, 1.0, 7.0, math.nan, math.inf):
        assert lines.width(lines.bar(share, 10, "good")) == 10
    assert "".join(piece for piece, _ in lines.bar(0.55, 10, "good")) == "━━━━━╸────"
    assert "━" not in "".join(piece for piece, _ in lines.bar(None, 10, "good"))


def test_what_is_wrong_stands_before_what_is_cut_off() -> None:
    verdict = {"state": "page", "words": "gemma: step 12; GPU 5 has failed", "first": "GPU 5 has failed",
               "rest": "gemma: step 12"}  # fmt: skip
    for state, words in (("page", "GPU 5 has failed; gemma: step 12"), ("well", verdict["words"])):
        assert picture(told(verdict={**verdict, "state": state})).told == (state, words)
    assert picture(told(verdict={"state": "page", "words": "of another version"})).told == (
        "page", "of another version")  # fmt: skip
    long = picture(told(verdict={**verdict, "rest": "gemma " * 200})).told
    assert long and long[1].startswith("GPU 5 has failed; gemma") and long[1].endswith("…")
    assert text.wrap(long[1], 40, 2)[-1].endswith("…")


def heading(*names: str) -> str:
    head = gpu_table.rows([Gpu(number, name) for number, name in enumerate(names)], 0, {}, 80, 24)[0]
    return "".join(piece for piece, _ in head)


def test_headings_stand_apart_and_a_name_that_is_not_known_is_no_kind_of_its_own() -> None:
    assert " use " in heading("NVIDIA A100", "NVIDIA H100") and "utilisation " in heading("NVIDIA A100", "NVIDIA A100")
    assert "name" in heading("NVIDIA A100", "NVIDIA H100")
    assert "name" not in heading("NVIDIA A100", "")


@pytest.mark.parametrize(
    ("celsius", "slowdown", "sign"),
    [
        (79.0, 87.0, "  "),
        (80.5, None, "! "),
        (82.0, 87.0, "! "),
        (87.0, 87.0, "!!"),
        (70.0, 74.0, "! "),
        (None, 87.0, "  "),
    ],
)
def test_heat_is_judged_by_the_device_itself(celsius: float | None, slowdown: float | None, sign: str) -> None:
    values = {"temperature_celsius": celsius, "temperature_slowdown_celsius": slowdown}
    read = {name: value for name, value in values.items() if value is not None}
    assert levels.temperature(Gpu(0, values=read)).sign == sign


def test_what_is_wrong_with_a_gpu_is_said_worst_first() -> None:
    assert levels.state(Gpu(0)) == (levels.GOOD, "")
    assert levels.state(Gpu(0, throttle=("sw_power_cap",))) == (levels.GOOD, "")
    assert levels.state(Gpu(0, throttle=("sw_thermal_slowdown",))) == (levels.WARN, "heat slows")
    assert levels.state(Gpu(0, throttle=("hw_slowdown", "hw_power_brake"))) == (levels.BAD, "power brake")
    assert levels.state(Gpu(0, values={"xid": 79.0})) == (levels.WARN, "Xid 79")
    ecc = {"xid": 48.0, "ecc_volatile_errors_total_uncorrected": 1.0}
    assert levels.state(Gpu(0, values=ecc)) == (levels.BAD, "bad memory")
    assert levels.memory(Gpu(0, values={"memory_percent": 95.0})) == levels.WARN


def test_the_newest_xid_of_a_gpu_counts() -> None:
    xids = [{"gpu": "1", "xid": "79", "last_timestamp_seconds": 20.0, "errors_total": 1.0},
            {"gpu": "1", "xid": "31", "last_timestamp_seconds": 10.0, "errors_total": 2.0}]  # fmt: skip
    assert [one.values.get("xid") for one in picture(told(2, xids=xids)).gpus] == [None, 79.0]


def course(history: History, points: int, now: float) -> list[float | None]:
    return history.course(("gpu", "0", "utilization_percent"), points, now)


def seen(*at: float, interval: float = 1.0) -> History:
    """A reading at each of these times, whose value is the time."""
    history = History()
    for when in at:
        history.add(picture(told([gpu(0, utilization_percent=when)], at=NOON + when)), when, interval)
    return history


def test_ticks_that_come_early_or_late_leave_no_gaps_and_missing_ones_do() -> None:
    assert course(seen(1, 1.9, 3.2, 4), 6, 4.5) == [None, None, 1, 1.9, 3.2, 4]
    assert course(seen(1, 2, 6), 6, 6.1) == [1, 2, None, None, None, 6]
    assert course(seen(1, 2), 6, 5.0) == [None, 1, 2, None, None, None]
    assert course(seen(1, 2, 3), 3, 2.5) == [None, 1, 2], "what came after a pause began is not seen"
    assert course(seen(0, 5, 10, interval=5.0), 3, 11) == [0, 5, 10]
    assert course(seen(1), 4, 1e12) == [None] * 4


def test_the_same_tick_told_twice_is_one() -> None:
    history = seen(1)
    again = picture(told([gpu(0)], at=NOON + 1))
    history.add(again, 2.0, 1.0)
    history.add(replace(again, at=None), 3.0, 1.0)
    assert len(history.frames) == 1


def test_what_was_before_is_put_before_and_nothing_over_what_is_there() -> None:
    history = seen(100, 101)
    history.recall(Frame(float(at), 0.0, 1.0, {("gpu", "0", "utilization_percent"): -at}) for at in range(95, 102))
    assert course(history, 8, 101.2) == [None, -95, -96, -97, -98, -99, 100, 101]
    history.recall(Frame(at / 10, 0.0, 0.1, {}) for at in range(2 * MOST_FRAMES))
    assert len(history.frames) == MOST_FRAMES and course(history, 2, 101.2) == [100, 101]


def test_the_history_does_not_grow_without_end() -> None:
    assert len(seen(*range(MOST_FRAMES + 50)).frames) == MOST_FRAMES


def test_time_is_shared_out_over_the_phases_of_the_last_seconds() -> None:
    history = History()
    for tick in range(60):
        rank = {"rank": 0, "phase_seconds_total_forward": 0.75 * tick,
                "phase_seconds_total_data_wait": 100 + 0.25 * max(0, tick - 30)}  # fmt: skip
        history.add(picture(told(0, [run("a", 1, ranks=[rank])], at=NOON + tick)), float(tick), 1.0)
    assert history.phases("a", 59.0) == {"forward": 0.75, "data_wait": 0.25}
    assert history.phases("b", 59.0) == {}


@pytest.mark.parametrize(
    ("environ", "was_coerced", "knows"),
    [
        ({"LANG": "en_US.UTF-8"}, False, True),
        ({"LC_ALL": "C.utf8"}, False, True),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "C"}, True, False),
        ({"LC_CTYPE": "C.UTF-8"}, True, False),
        ({"LC_CTYPE": "C.UTF-8", "LANG": "de_DE.UTF-8"}, True, True),
        ({"LC_CTYPE": "C.UTF-8", "LANG": "C"}, False, True),
        ({"LANG": "de_DE.ISO-8859-1"}, False, False),
        ({"LANG": "en_US.UTF-8", "TERM": "linux"}, False, False),
        ({}, True, False),
    ],
)
def test_the_users_locale_decides_what_can_be_shown(environ: dict[str, str], was_coerced: bool, knows: bool) -> None:
    assert knows_braille(environ, was_coerced) is knows


def test_a_slow_agent_is_given_its_time_before_it_is_lost() -> None:
    slow = picture(told(1, interval=30.0))
    assert not View(heard=Heard(slow, "agent x", 0.0), now=80.0).is_lost
    assert View(heard=Heard(slow, "agent x", 0.0), now=91.0).is_lost
    assert View(heard=Heard(picture(told(1)), "agent x", 0.0), now=6.0, interval=0.5).is_lost
