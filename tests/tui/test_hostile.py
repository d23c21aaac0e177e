"""Names come from anybody: none moves the cursor, paints, breaks a line or ends the dashboard."""

import random
import re
import unicodedata
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.events import Paste

from tests.tui.support import Json, Stage, dashboard, finding, gpu, lines_of, rank, run, staged, told
from trainvitals.tui import lines, text
from trainvitals.tui.arrange import heights
from trainvitals.tui.feed import Heard
from trainvitals.tui.history import History
from trainvitals.tui.picture import Picture, Unreadable, picture
from trainvitals.tui.screen import draw
from trainvitals.tui.view import View

NAMES = (
    "\x1b[2J\x1b[31mred\x07", "[red]bold[/red] [b]", "$TERM {x} %s {0}", "a\nb\r\tc\x9b31m", "x" * 5000, "",
    "e\u0301\u0327", "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "\u0645\u0631\u062d\u0628\u0627",
    "\u202egnp.exe\u2066",
    "\u65e5\u672c\u8a9e\u306e\u3068\u3066\u3082\u9577\u3044\u540d\u524d" * 12, "\u200b\u200d\ufeff\ufffd",
    "\U0001f9d1\u200d\U0001f680\U0001f44d\U0001f3fd\U0001f1e9\U0001f1ea", "<script>alert(1)</script>",
)  # fmt: skip


def everywhere(name: str) -> Json:
    process = {"pid": name, "user": name, "command": name, "memory_bytes": 2.0**30}
    told_run = run(name, 2, name=name, framework=name, world_size=name, status=name,
                   ranks=[rank(0) | {"gpus": [{"gpu": "0", "uuid": name}]}])  # fmt: skip
    return told([gpu(0, name=name, processes=[process], throttle_active=[name]), gpu(1)], [told_run, run("b")],
                node=name, problems=[name], alerts={"firing": [finding(name, name, name, name)]},
                verdict={"state": name, "words": name or "-"},
                sources={name: {"up": False, "problem": name}})  # fmt: skip


def is_whole(stage: Stage, size: tuple[int, int]) -> bool:
    drawn = lines_of(stage.svg())
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", "\n".join(drawn))
    return len(drawn) <= size[1] and all(cell_len(line) <= size[0] for line in drawn) and "q quit" in drawn[-1]


@staged
@pytest.mark.parametrize("size", [(80, 24), (130, 40)])
async def test_a_hostile_name_is_text(size: tuple[int, int]) -> None:
    async with dashboard(size) as stage:
        for number, name in enumerate(NAMES):
            await stage.show(everywhere(name) | {"timestamp": f"2025-07-30T12:00:{number:02}Z"})
            assert is_whole(stage, size), repr(name)
            await stage.press("right")
            assert is_whole(stage, size), repr(name)


@staged
async def test_markup_and_escapes_are_shown_as_they_are() -> None:
    async with dashboard() as stage:
        await stage.show(everywhere("[red]x[/red]"))
        assert "TrainVitals [red]x[/red] " in stage.text()
        await stage.show(everywhere("\x1b[31mx") | {"timestamp": "2025-07-30T12:00:01Z"})
        assert "TrainVitals ?[31mx " in stage.text()


@staged
async def test_what_is_pasted_into_the_filter_is_text_too() -> None:
    async with dashboard() as stage:
        await stage.press("slash")
        stage.app.post_message(Paste("\x1b[2J" + "y" * 10_000))
        await stage.pilot.pause()
        await stage.press("enter")
        assert stage.text().splitlines()[-1].startswith("/?[2Jyyy") and len(stage.text().splitlines()[-1]) <= 80


@given(st.text(max_size=60), st.integers(0, 40))
@settings(max_examples=300, deadline=None)
def test_clean_text_is_as_wide_as_it_is_said_to_be(name: str, cells: int) -> None:
    harmless = text.clean(name)
    assert not any(
        unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn", "Mn", "Mc", "Me") for letter in harmless
    )
    assert text.width(text.fit(harmless, cells)) == cells
    plain = text.ascii_only(harmless)
    assert plain.isascii() and len(plain) == text.width(harmless)
    for line in text.wrap(harmless, max(2, cells), 3):
        assert text.width(line) <= max(2, cells)


@given(st.integers(0, 100), st.integers(0, 80), st.integers(0, 5), st.integers(0, 3), st.integers(0, 300))
@settings(max_examples=300, deadline=None)
def test_the_parts_fill_the_screen_and_no_more(room: int, gpus: int, verdict: int, run_lines: int, below: int) -> None:
    got = heights(room, gpus=gpus, verdict=verdict, run=run_lines, below=below)
    assert sum(got) == max(0, room - 2)
    assert min(got) >= 0


def test_answers_that_are_no_snapshot_are_refused_and_mend_nothing() -> None:
    whole = told(
        2, [run("a", 2)], alerts={"firing": [finding("A", "page", "x")]}, verdict={"state": "well", "words": "y"}
    )
    generator = random.Random(5)
    refused = taken = 0
    for _ in range(1000):
        try:
            found = picture(spoilt(whole, generator))
        except Unreadable:
            refused += 1
        else:
            taken += 1
            assert isinstance(found, Picture)
    assert refused > 100 and taken > 100


def spoilt(json: Any, generator: random.Random) -> Any:
    """A copy with one thing in it, anywhere, put in another's place."""
    if generator.random() < 0.25 or not isinstance(json, (dict, list)) or not json:
        return generator.choice([None, "x", -1, 1e308, [], {}, [None], {"a": 1}, True, "NaN", [[]]])
    copy = dict(json) if isinstance(json, dict) else list(json)
    key = generator.choice(list(copy) if isinstance(copy, dict) else range(len(copy)))
    copy[key] = spoilt(copy[key], generator)
    return copy


@pytest.mark.parametrize("size", [(80, 24), (30, 12), (200, 60)])
def test_what_is_taken_is_drawn_however_odd(size: tuple[int, int]) -> None:
    generator = random.Random(6)
    whole = told(
        3, [run("a", 2)], alerts={"firing": [finding("A", "page", "x")]}, verdict={"state": "well", "words": "y"}
    )
    history, drawn = History(), 0
    for tick in range(400):
        try:
            odd = picture(spoilt(whole, generator))
        except Unreadable:
            continue
        history.add(replace(odd, at=float(tick)), float(tick), 1.0)
        parts = draw(View(heard=Heard(odd, "agent x", float(tick)), now=tick + 0.5, history=history), *size)
        drawn += 1
        assert sum(map(len, parts.values())) == size[1]
        assert {lines.width(line) for part in parts.values() for line in part} == {size[0]}
    assert drawn > 100
