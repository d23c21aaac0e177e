"""What is too long is not read to learn so, and what a device has yet to compute is not waited for."""

import logging
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("torch", reason="torch is not installed: make trainers")
import numpy as np
import torch

import trainvitals as tv
from tests.run.devices import Device, FarTensor
from tests.run.support import events, written

MOST_SECONDS = 0.1


def endless() -> list[Any]:
    given: list[Any] = [1]
    given.append(given)
    return given


# What makes the value -> what is written of it; None: nothing.
LONG: dict[str, tuple[Callable[[], Any], Any]] = {
    "array": (lambda: np.zeros(10_000_000), None),
    "tensor": (lambda: torch.zeros(10_000_000), None),
    "list": (lambda: [0.5] * 3_000_000, "<list of more than {} entries>"),
    "weights": (lambda: {"w": torch.zeros(2000, 2000)}, "<dict of more than {} entries>"),
    "tensors": (lambda: [torch.zeros(1000) for _ in range(1000)], "<list of more than {} entries>"),
    "nested": (lambda: [[[0] * 100] * 100] * 100, "<list of more than {} entries>"),
    "bytes": (lambda: b"x" * 50_000_000, "<bytes of more than {} entries>"),
    "mock": (lambda: [1, MagicMock()], [1]),
    "itself": (endless, None),
}


@pytest.mark.parametrize("name", LONG)
def test_what_is_long_is_not_read(run: tv.Run, name: str) -> None:
    make, expected = LONG[name]
    value = make()
    began = time.perf_counter()
    run.log(value=value, loss=1.0)
    run.event("as a field", value=value, sure=1)
    assert time.perf_counter() - began < MOST_SECONDS
    (record,) = written(run)
    assert run.folder is not None
    (event,) = events(run.folder, "note")
    assert (record["loss"], event["sure"]) == (1.0, 1)
    for given, most in ((record, 1000), (event, 5000)):
        if isinstance(expected, str) and "{}" in expected:
            assert given["value"] == expected.format(most)
        else:
            assert given.get("value") == expected


def test_of_very_many_names_the_first_are_kept(run: tv.Run, caplog: pytest.LogCaptureFixture) -> None:
    values = {f"value {number}": 1.0 for number in range(300_000)}
    began = time.perf_counter()
    run.log(values)
    assert time.perf_counter() - began < MOST_SECONDS
    (record,) = written(run)
    assert len(record) == 10_001 and "value 9999" in record and len(caplog.records) == 1


@pytest.mark.parametrize("kind", [Device, FarTensor])
def test_within_a_list_as_a_step_and_in_an_event_a_device_is_not_waited_for(run: tv.Run, kind: type[Device]) -> None:
    run.log(value=[1, kind(False, value=2), {"a": kind(False, value=3), "b": 4}])
    run.log(loss=1.0, step=kind(False, value=7))
    with run.step(kind(False, value=7)):
        run.event("at work", value=kind(False, value=1), values=[kind(False, value=1), 2])
    run.describe(planned_steps=kind(False, value=9))
    first, second, _ = written(run)
    assert first["value"] == [1, {"b": 4}] and second["loss"] == 1.0
    assert run.folder is not None and events(run.folder, "note")[0]["values"] == [2]


def test_what_a_device_far_behind_costs_is_counted(
    run: tv.Run, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1010):
        run.log(value=Device(False, value=number))
    assert run.dropped == 10 and [record.levelno for record in caplog.records] == [logging.WARNING]
    monkeypatch.setattr(Device, "is_ready", lambda _: True)
    assert [line["value"] for line in written(run) if "value" in line] == list(range(10, 1010))


def test_a_clock_that_stands_still_keeps_no_run_from_its_end(run: tv.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.log(value=Device(False), loss=1.0)
    now = time.monotonic()
    began = time.perf_counter()
    with monkeypatch.context() as frozen:
        frozen.setattr(time, "monotonic", lambda: now)
        run.finish()
    assert time.perf_counter() - began < 1.0 and run.status == "finished"


def test_near_the_limit_of_recursion_calls_raise_nothing(run: tv.Run) -> None:
    raised = []

    def deeper() -> None:
        for call in (lambda: run.log(loss=1.0, values=[1]), lambda: run.event("deep"), in_a_step):
            try:
                call()
            except RecursionError:
                raised.append(call)
        below(4)
        deeper()

    def in_a_step() -> None:
        with run.step():
            pass

    def below(levels: int) -> None:
        if levels:
            below(levels - 1)

    with pytest.raises(RecursionError):
        deeper()
    assert raised == []


@pytest.mark.parametrize("place", ["begin", "end"])
def test_a_step_that_an_exception_left_open_ends_no_counting(run: tv.Run, place: str) -> None:
    """A signal's handler may raise wherever Python is."""
    step = run.step()
    if place == "begin":
        step.__enter__()  # and its `with` never came to be
    else:
        with run.step():
            step.__enter__()  # neither did this one, within another
    del step
    for number in range(3):
        with run.step(), run.step():
            pass
        run.log(after=number)
    assert [line["after"] for line in written(run) if "after" in line] == [0, 1, 2] and run.number == 4


def test_an_exception_that_fails_when_it_is_looked_at_goes_on_as_it_is(run: tv.Run) -> None:
    with pytest.raises(SystemExit), run.step():
        raise SystemExit(np.array([1, 2]))
    assert run.number == 1
