"""The index of training files: extremes that stay, names that nobody foresaw, and a size that is bounded."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainvitals.journal import index
from trainvitals.journal.index import Block, Names, blocks, decoded, encoded, key_of, merged, summary
from trainvitals.journal.lines import opened
from trainvitals.journal.record import encode, timestamp_at

FILE = "training_metrics_20250730_123456.jsonl"
NOON = 1_753_876_800.0


def line(step: object, **values: Any) -> bytes:
    when = NOON + (step if isinstance(step, int) and abs(step) < 10**9 else 0)
    return encode({"timestamp": timestamp_at(when), "step": step, **values})


def blocks_of(folder: Path, content: bytes, names: Names | None = None) -> list[Block]:
    """Through the file's form and back."""
    (folder / FILE).write_bytes(content)
    with opened(folder, FILE) as fd:
        return [decoded(encoded(block).rstrip(b"\n")) for block in blocks(fd, FILE, 0, names or Names())]


def told(block: Block, name: str) -> list[Any] | None:
    return block.told(key_of(name))


def test_a_block_keeps_the_spike_the_mean_and_what_is_no_number(tmp_path: Path) -> None:
    values = [1.0] * 600
    values[7], values[8], values[9], values[10] = 1e6, -3.5, math.nan, math.inf
    found = blocks_of(tmp_path, b"".join(line(step, loss=value) for step, value in enumerate(values)))
    assert found[0].lines >= index.BLOCK_LINES
    count = found[0].lines - 2
    assert told(found[0], "loss") == [-3.5, 1e6, pytest.approx((1e6 - 3.5 + count - 2) / count), count, 2]
    assert told(found[1], "loss") == [1.0, 1.0, 1.0, found[1].lines, 0]
    assert (found[0].steps, found[0].times) == ([0, found[0].lines - 1], [NOON, NOON + found[0].lines - 1])
    assert (found[0].names, found[1].names) == (["loss"], [])


def test_blocks_lie_one_behind_the_other_and_the_rest_is_what_they_left(tmp_path: Path) -> None:
    content = b"".join(line(step, loss=1.0 * step) for step in range(1000))
    found = blocks_of(tmp_path, content + b'{"step":1000,"lo')
    assert [block.offset for block in found] == [0, *(block.end for block in found[:-1])]
    with opened(tmp_path, FILE) as fd:
        [last] = blocks(fd, FILE, found[-1].end, Names(), len(content) + 10)
        assert list(blocks(fd, FILE, len(content), Names(), len(content) + 10)) == []
    assert (last.end, last.steps) == (len(content), (found[-1].steps[1] + 1, 999))  # type: ignore[index]
    assert sum(block.lines for block in found) + last.lines == 1000


def test_nothing_but_numbers_is_summed_up(tmp_path: Path) -> None:
    values = {"text": "5", "flag": True, "nothing": None, "list": [1.0], "deep": {"a": 1}, "whole": 3, "real": 2.5}
    [first, *_] = blocks_of(tmp_path, b"".join(line(step, **values) for step in range(400)))
    assert first.names == ["real", "whole"]
    assert told(first, "whole") == [3, 3, 3, first.lines, 0]
    assert told(first, "flag") is None


def test_numbers_past_what_a_float_holds_are_infinite_and_steps_past_it_near_enough(tmp_path: Path) -> None:
    huge = 10**400
    content = b"".join(line(10**25 if step == 5 else step, loss=huge if step == 3 else step) for step in range(600))
    [first, *_] = blocks_of(tmp_path, content)
    assert told(first, "loss") == [0, first.lines - 1, pytest.approx(first.lines / 2, rel=0.1), first.lines - 1, 1]
    assert first.steps == [0, 1e25]


@pytest.mark.parametrize("step", [math.nan, -math.inf, "seven", None, [1], True, 10**400])
def test_a_step_that_is_no_number_is_none(tmp_path: Path, step: object) -> None:
    [first, *_] = blocks_of(tmp_path, b"".join(line(step, loss=1.0) for _ in range(600)))
    assert first.steps is None and told(first, "loss") is not None


HOSTILE = ('x"', '"loss":[', ',"loss":[9,9,9,9,9]', '\\"loss', '"fields":{', "a]", "{}", "\n", "\u2028", "ünder")


def test_names_that_look_like_the_index_itself_are_told_apart(tmp_path: Path) -> None:
    values = {name: 1.0 * number for number, name in enumerate(HOSTILE)} | {"loss": 77.0}
    [first, *_] = blocks_of(tmp_path, b"".join(line(step, **values) for step in range(2000)))
    assert {name: told(first, name)[0] for name in values} == values  # type: ignore[index]
    assert first.names == sorted(values)


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=20), st.floats(-1e6, 1e6), max_size=8))
def test_whatever_the_names_each_is_found_again(fields: dict[str, float]) -> None:
    summaries = {name: [value, value, value, 1, 0] for name, value in fields.items()}
    made = Block(FILE, 0, 9, 1, None, None, sorted(fields), b"," + json.dumps(summaries, ensure_ascii=False,
                 separators=(",", ":")).encode()[1:-1])  # fmt: skip
    again = decoded(encoded(made).rstrip(b"\n"))
    for name, one in summaries.items():
        if all(letter >= " " and letter not in "\x7f" for letter in name):  # json and orjson escape these unlike
            assert again.told(key_of(name)) == one
    assert again.names == sorted(fields)


def test_names_that_no_json_can_hold_or_that_are_too_long_are_left_out(tmp_path: Path) -> None:
    broken = b'{"step":1,"\\ud800":1.0,"' + b"x" * 300 + b'":2.0,"loss":3.0}\n'
    [first, *_] = blocks_of(tmp_path, broken * 3000)
    assert first.names == ["loss"]


def test_a_thousand_names_have_a_place_and_those_that_always_have_one_keep_it(tmp_path: Path) -> None:
    many = {f"n{number}": 1.0 for number in range(3000)}
    content = b"".join(line(step, **many) for step in range(300))
    content += b"".join(line(step, loss=1.0, own=2.0) for step in range(9000))
    names = Names(frozenset({"loss"}))
    found = blocks_of(tmp_path, content, names)
    assert index.MAX_FIELDS - 1 <= len(names.told - {"loss"}) <= index.MAX_FIELDS
    assert told(found[-1], "loss") is not None and told(found[-1], "own") is None


def line_of_each_size() -> Sequence[bytes]:
    names = ("loss", "learning_rate", "gradient_norm", "epoch", "tokens_per_second", "step_duration_seconds")
    usual = {name: 0.123456789 * number for number, name in enumerate(names)}
    return [
        b"".join(line(step, loss=0.123456789 * step) for step in range(20_000)),
        b"".join(line(step, **usual) for step in range(10_000)),
        b"".join(line(step, **{f"layer.{n}": step / (n + 7) for n in range(500)}) for step in range(300)),
        b"".join(b'{"step":1,"%d":1}\n' % (number % 1000) for number in range(100_000)),  # each name now and then
        b"".join(b'{"step":1,"%d":1}\n' % number for number in range(100_000)),  # each name once
        b'{"step":1}\n' * 100_000,
        b"\n" * 200_000,
        b"garbage\n" * 100_000,
        b'{"n":' + b"1," * 100_000 + b"\n" + b'{"a":1}\n' * 1000,
    ]


@pytest.mark.parametrize("number", range(9))
def test_an_index_stays_a_few_percent_of_what_it_tells_of(tmp_path: Path, number: int) -> None:
    content = line_of_each_size()[number]
    found = blocks_of(tmp_path, content)
    assert sum(len(encoded(block)) for block in found) < 0.06 * len(content)


def test_a_million_fields_in_a_line_are_bounded(tmp_path: Path) -> None:
    content = b'{"step":1,' + b",".join(b'"f%d":1.0' % number for number in range(200_000)) + b"}\n"
    found = blocks_of(tmp_path, content * 3)
    assert found and all(len(block.names) <= index.MAX_FIELDS for block in found)


@pytest.mark.parametrize("broken", [b"", b"{}", b"[]", b"7", b'{"file":1}', b'{"offset":0,"end":1}', b"\xff"])
def test_what_is_no_block_is_refused(broken: bytes) -> None:
    with pytest.raises(ValueError, match="no block"):
        decoded(broken)


def test_a_block_that_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    [first, *_] = blocks_of(tmp_path, b"".join(line(step, loss=1.0) for step in range(600)))
    for wrong in ({"offset": -1}, {"end": 0}, {"file": "training_metrics_x.jsonl"}, {"offset": "0"}):
        with pytest.raises(ValueError, match="no block"):
            decoded(encoded(first._replace(**wrong)).rstrip(b"\n"))


def test_sums_that_overflow_have_a_mean_all_the_same() -> None:
    assert summary([1e308, 1e308, 1e308]) == [1e308, 1e308, pytest.approx(1e308), 3, 0]


@given(st.lists(st.floats(allow_infinity=True, allow_nan=True), min_size=1, max_size=40), st.integers(0, 40))
def test_two_summaries_merged_are_that_of_both(values: list[float], at: int) -> None:
    parts = [one for one in (summary(values[:at]), summary(values[at:])) if one]
    whole = summary(values)
    both = merged(*parts) if len(parts) == 2 else parts[0]
    assert whole is not None
    assert [both[0], both[1], both[3], both[4]] == [whole[0], whole[1], whole[3], whole[4]]
    if whole[3]:
        assert math.isclose(both[2], whole[2], rel_tol=1e-6, abs_tol=1e-6 * max(map(abs, whole[:2])))
