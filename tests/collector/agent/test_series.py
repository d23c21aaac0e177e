"""A run's curves: what stands out stands out at every zoom, and what belongs together stays together."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.collector.agent.written import FIRST, NOON, SECOND, line, losses, run_folder, steps
from tests.collector.journal.helpers import add
from trainvitals.agent import series as series_module
from trainvitals.agent.rank_index import RankIndex
from trainvitals.agent.series import Asked, series

ALL = Asked(("loss",), "step", None, None, 1000)
Json = dict[str, Any]
Ask = Callable[..., Json]


def asking(folder: Path, began: float | None = None) -> Ask:
    def ask(**changed: Any) -> Json:
        index = RankIndex(folder, "here", 0)
        index.advance(lambda: False)
        return series(folder, index.view(), ALL._replace(**changed), began)

    return ask


def points(told: Json, field: str = "loss") -> list[tuple[Any, ...]]:
    column = told["fields"][field]
    return list(zip(told["x_values"], column["min"], column["max"], column["mean"], column["nonfinite"], strict=True))


SPIKE, DIP, BAD = 31_337, 55_555, 70_000
LONG = 100_000


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hundred thousand steps with a spike, a dip and a NaN, each of one step."""
    folder = run_folder(tmp_path_factory.mktemp("journal"), "long")
    odd = {SPIKE: 1e6, DIP: -1e6, BAD: math.nan}
    add(folder / FIRST, losses((step, odd.get(step, 1.0)) for step in range(1, LONG + 1)))
    return folder


@pytest.mark.parametrize("count", [1, 2, 7, 1000, 4000])
def test_spike_dip_and_nan_show_however_few_the_points(long: Path, count: int) -> None:
    told = asking(long)(points=count)
    found = points(told)
    assert len(found) <= count and not told["raw"] and told["lines"] == LONG
    assert max(point[2] for point in found) == 1e6
    assert min(point[1] for point in found) == -1e6
    assert sum(point[4] for point in found) == 1


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, LONG), st.integers(1, LONG), st.integers(1, 4000))
def test_a_range_holds_what_lies_in_it_and_nothing_else(long: Path, one: int, other: int, count: int) -> None:
    start, end = sorted((one, other))
    found = points(asking(long)(start=float(start), end=float(end), points=count))
    xs = [point[0] for point in found]
    assert len(found) <= count and xs == sorted(xs) and xs[0] == start and xs[-1] <= end
    assert max((point[2] for point in found if point[2] is not None), default=None) == (
        1e6 if start <= SPIKE <= end else None if start == end == BAD else 1.0)  # fmt: skip
    assert (-1e6 in [point[1] for point in found]) == (start <= DIP <= end)
    assert sum(point[4] for point in found) == (start <= BAD <= end)


def test_where_few_lines_are_asked_for_each_step_is_a_point(long: Path) -> None:
    told = asking(long)(start=SPIKE - 2.0, end=SPIKE + 2.0)
    assert told["raw"] and told["lines"] == 5
    assert points(told)[1:4] == [
        (SPIKE - 1, 1.0, 1.0, 1.0, 0),
        (SPIKE, 1e6, 1e6, 1e6, 0),
        (SPIKE + 1, 1.0, 1.0, 1.0, 0),
    ]
    assert told["steps"] == told["x_values"]


def test_a_point_of_nan_alone_has_a_count_and_no_mean(long: Path) -> None:
    told = asking(long)(start=float(BAD), end=float(BAD))
    assert points(told) == [(BAD, None, None, None, 1)]


def test_infinities_are_counted_and_values_past_a_float_too(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    add(folder / FIRST, line(1, NOON, loss=math.inf) + line(2, NOON, loss=10**400) + line(3, NOON, loss=2))
    assert points(asking(folder)()) == [(1, None, None, None, 1), (2, None, None, None, 1), (3, 2.0, 2.0, 2.0, 0)]


def test_a_run_that_was_resumed_shows_its_last_life_and_does_not_hide_the_one_before(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    add(folder / FIRST, steps(1, 600, loss=5.0))
    add(folder / SECOND, steps(401, 1000, loss=3.0, began=NOON + 7200))
    found = {point[0]: point for point in points(asking(folder)())}
    assert found[400][1:4] == (5.0, 5.0, 5.0)
    assert found[500][1:4] == (3.0, 5.0, 3.0)
    assert found[1000][1:4] == (3.0, 3.0, 3.0)
    assert len(found) == 1000


def test_and_so_it_does_where_blocks_stand_for_its_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series_module, "RAW_LINES", 0)
    folder = run_folder(tmp_path)
    add(folder / FIRST, steps(1, 6000, loss=5.0))
    add(folder / SECOND, steps(4001, 10_000, loss=3.0, began=NOON + 7200))
    found = points(asking(folder)(points=10))
    assert [point[3] for point in found] == [5.0] * 4 + [3.0] * 6
    assert [point[2] for point in found] == [5.0] * 6 + [3.0] * 4


def test_over_time_both_lives_have_their_place(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    add(folder / FIRST, steps(1, 3, loss=5.0))
    add(folder / SECOND, steps(2, 4, loss=3.0, began=NOON + 7200))
    told = asking(folder)(x="time")
    assert [point[0] - NOON for point in points(told)] == [0, 1, 2, 7200, 7201, 7202]
    assert told["steps"] == [1, 2, 3, 2, 3, 4]
    told = asking(folder, NOON - 10)(x="elapsed", start=10.0, end=11.5)
    assert [point[0] for point in points(told)] == [10, 11]
    assert points(asking(folder)(x="elapsed"))[0][0] == 0


def test_lines_of_one_step_are_one_point(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    for step in range(1, 4):
        for at, values in enumerate(({"loss": 1.0 * step}, {"step_duration_seconds": 0.5}, {"val_loss": 9.0})):
            add(folder / FIRST, line(step, NOON + 10 * step + at, **values))
    for x in ("step", "time"):
        told = asking(folder)(x=x, fields=("loss", "step_duration_seconds", "val_loss"))
        assert len(told["x_values"]) == 3 and told["raw"]
        assert [point[3] for point in points(told)] == [1.0, 2.0, 3.0]
        assert [point[3] for point in points(told, "val_loss")] == [9.0] * 3


def test_a_field_told_now_and_then_has_its_values_and_nothing_between(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    for step in range(1, 2001):
        add(folder / FIRST, line(step, NOON + step, loss=1.0, **({"val_loss": float(step)} if step % 500 == 0 else {})))
    told = asking(folder)(fields=("val_loss", "never"), points=4000)
    assert [point[0] for point in points(told, "val_loss") if point[3] is not None] == [500, 1000, 1500, 2000]
    assert set(points(told, "never")) == {(step, None, None, None, 0) for step in range(1, 2001)}
    assert told["names"] == ["loss", "val_loss"]


@pytest.mark.parametrize("field", ["tokens_seen", "num_input_tokens_seen"])
def test_tokens_as_the_run_counts_them(tmp_path: Path, field: str) -> None:
    folder = run_folder(tmp_path)
    add(folder / FIRST, b"".join(line(step, NOON + step, loss=1.0, **{field: step * 4096}) for step in range(1, 501)))
    told = asking(folder)(x="tokens", start=4096 * 10.0, end=4096 * 12.0)
    assert (told["x_values"], told["steps"]) == ([40960, 45056, 49152], [10, 11, 12])


def test_tokens_added_up_from_their_rate(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    add(folder / FIRST, steps(1, 1000, tokens_per_second=1000.0, step_duration_seconds=0.5))
    told = asking(folder)(x="tokens")
    assert told["x_values"] == pytest.approx([500 * step for step in range(1000)], abs=500)
    part = asking(folder)(x="tokens", start=100_000.0, end=200_000.0)
    assert part["steps"][0] == pytest.approx(201, abs=2) and part["steps"][-1] == pytest.approx(401, abs=2)


def test_a_run_that_tells_no_tokens_says_so(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    add(folder / FIRST, steps(1, 10))
    with pytest.raises(ValueError, match=r"x: 'tokens' cannot be used: .*tokens_per_second"):
        asking(folder)(x="tokens")


@pytest.mark.parametrize("x", ["step", "time", "elapsed", "tokens"])
def test_a_run_without_a_line_has_no_points(tmp_path: Path, x: str) -> None:
    told = asking(run_folder(tmp_path))(x=x)
    assert (told["x_values"], told["fields"]["loss"]["mean"], told["lines"], told["missing_bytes"]) == ([], [], 0, 0)


def test_lines_without_a_step_or_a_time_are_where_they_can_be(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    add(folder / FIRST, b'{"loss":1.0}\n{"step":2,"loss":2.0}\n' + line(3, NOON, loss=3.0))
    assert [point[0] for point in points(asking(folder)())] == [2, 3]
    assert [point[0] for point in points(asking(folder)(x="time"))] == [NOON]


def test_a_file_that_goes_while_it_is_read_is_no_error(long: Path, tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    add(folder / FIRST, steps(1, 1000))
    index = RankIndex(folder, "here", 0)
    index.advance(lambda: False)
    view = index.view()
    (folder / FIRST).unlink()
    assert series(folder, view, ALL)["x_values"] == []
