"""What is looked at, as the address says it, and how often it is asked for."""

from typing import Any

import pytest

from tests.web_page.modules import evaluate


def pause(took: float, span: float) -> float:
    return float(evaluate({"system": "system_choice.js"}, f"system.pauseAfter({took}, {span})"))


@pytest.mark.parametrize(("took", "span", "seconds"), [(0.01, 300, 2), (0.01, 7200, 12), (0.01, 2_592_000, 60),
                                                       (1, 300, 10), (20, 2_592_000, 200)])  # fmt: skip
def test_a_tenth_of_the_time_at_most_goes_into_waiting(took: float, span: float, seconds: float) -> None:
    assert pause(took, span) == pytest.approx(seconds)


def chosen(query: str, program: str) -> Any:
    modules = {"training": "training_choice.js", "system": "system_choice.js"}
    return evaluate(modules, f"(location.search = {query!r}, {program})")


def test_of_what_is_too_much_eight_are_shown_and_the_rest_is_named() -> None:
    query = "?" + "&".join(f"run={name}" for name in "abcdef") + "&rank=0,1"
    runs = "['a', 'b', 'c', 'd', 'e', 'f'].map((run) => ({ run, name: run, ranks: run === 'f' ? [3] : [0, 1] }))"
    found = chosen(query, f"training.pairs(training.choice([]), {runs})")
    assert [pair["label"] for pair in found] == [f"{run}, rank {rank}" for run in "abcd" for rank in (0, 1)]
    left = f"training.leftOutWords(training.choice([]), {runs})"
    assert chosen(query, left) == "At most 8 lines are drawn. Left out: e, rank 0; e, rank 1; f, rank 3."
    assert chosen("?run=a", left) == ""


def test_only_fields_of_gpus_and_host_are_asked_for() -> None:
    query = "?field=loss&field=gpu:power_draw_watts&field=host:&field=host:a b"
    assert chosen(query, "system.choice(1000).fields") == ["gpu:power_draw_watts"]
