"""How values are put into words: what is not known is a dash, what is no number keeps its name."""

import json
from typing import Any

import pytest

from tests.web_page.modules import evaluate

FORMAT = {"format": "format.js"}
DASH, MINUS = chr(0x2013), chr(0x2212)
NAMES = ("plain", "percent", "celsius", "watts", "bytes", "money", "duration", "seconds", "ago", "integer", "large")


def told(*calls: str, zone: str = "UTC") -> list[str]:
    found = evaluate(FORMAT, f"[{', '.join('format.' + call for call in calls)}]", zone)
    assert isinstance(found, list)
    return found


def test_what_is_not_known_is_a_dash_and_never_nought() -> None:
    names = ("plain", "percent", "celsius", "watts", "bytes", "money", "duration", "seconds", "ago", "integer", "large")
    assert told(*(f"{name}({value})" for name in names for value in ("null", "undefined"))) == [DASH] * 2 * len(names)


def test_what_is_no_number_keeps_its_name() -> None:
    assert told('plain("NaN")', 'plain("-Infinity")', 'percent("Infinity")', "plain(NaN)") == [
        "NaN",
        "\u2212∞",
        "∞",
        "NaN",
    ]


@pytest.mark.parametrize(
    ("call", "words"),
    [("plain(1.8243)", "1.824"), ("plain(0)", "0"), ("plain(12400)", "12,400"), ("plain(0.0003)", f"3e{MINUS}4"),
     ("plain(-2.8e-7)", f"{MINUS}2.8e{MINUS}7"), ("plain(1.25e12)", "1.25e12"), ("large(14000)", "14k"),
     ("large(41213)", "41.2k"),
     ("percent(97.4)", "97 %"), ("percent(0.34)", "0.3 %"), ("percent(0)", "0 %"), ("bytes(1536)", "1.5 KiB"),
     ("bytes(84825604096)", "79.0 GiB"), ("seconds(0.29)", "290 ms"), ("seconds(12.44)", "12.4 s"),
     ("seconds(0)", "0 s"), ("duration(2460)", "41 min"), ("duration(7800)", "2 h 10 min"), ("duration(0.2)", "0 s"),
     ("duration(273600)", "3 d 4 h"), ("duration(3600)", "1 h"), ("money(23.1)", "$23.10"),
     ("money(1234.5)", "$1,235")],
)  # fmt: skip
def test_values_are_short_and_have_their_unit(call: str, words: str) -> None:
    assert told(call) == [words]


def test_times_are_those_of_the_viewers_zone() -> None:
    stamp = '"2025-07-30T23:34:56.789Z"'
    now = 'Date.parse("2025-07-31T08:00:00Z")'
    assert told(f"time({stamp}, {now})", zone="UTC") == ["30 Jul 23:34"]
    assert told(f"time({stamp}, {now})", f"about({stamp}, {now})", zone="Asia/Tokyo") == ["08:34:56", "08:34"]
    assert told(f'time("2024-12-31T12:00:00Z", {now})', 'time("soon")') == ["31 Dec 2024 12:00", DASH]


def shares(*sums: tuple[float, float, float]) -> Any:
    """The share at each (time, data wait, everything else)."""
    ranks = [[at, {"phase_seconds_total_data_wait": wait, "phase_seconds_total_other": other}]
             for at, wait, other in sums]  # fmt: skip
    program = f"{json.dumps(ranks)}.map(([at, rank]) => wait.waitShare('a', rank, at) ?? null)"
    return evaluate({"wait": "data_wait.js"}, program)


def test_data_wait_is_of_the_last_fifteen_seconds() -> None:
    quiet = [(float(at), 0.0, float(at)) for at in range(100)]
    starved = [(100.0 + at, 0.5 * at, 100 + 0.5 * at) for at in range(20)]
    found = shares(*quiet, *starved)
    assert found[:2] == [None, 0]
    assert found[99] == 0
    assert 0.2 < found[107] < 0.3
    assert found[-1] == 0.5


def test_a_run_that_starts_over_is_measured_anew_and_one_that_hangs_is_unknown() -> None:
    assert shares((0, 5, 5), (1, 6, 5), (2, 0, 1), (3, 0.5, 1.5), *((at, 0.5, 1.5) for at in range(4, 20))) == [
        None, 1, None, 0.5, *[0.5] * 14, None, None]  # fmt: skip
