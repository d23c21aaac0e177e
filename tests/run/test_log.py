"""What `log` makes of what it is given: a line, whatever it is, and one warning where something is left out."""

import json
import logging
import math
import threading
from collections import OrderedDict
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import pytest

import trainvitals as tv
from tests.run.devices import Device
from tests.run.support import events, lines, written


class Colour(Enum):
    RED = 2


class Failing:
    def _fail(self, *_: object) -> Any:
        raise ValueError("not this one")

    __float__ = __str__ = __repr__ = __len__ = __iter__ = __bool__ = _fail


class FailingToSay(Failing):
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


def test_numbers_text_and_lists_are_in_the_line_as_they_are(run: tv.Run) -> None:
    run.log(a=1, b=0.5, c=True, d="text", e=[1, 2.5], f={"g": 1}, big=2**70)
    run.log({"a": 2, "with blank": 3}, b=4)
    assert written(run) == [
        {"step": 1, "a": 1, "b": 0.5, "c": True, "d": "text", "e": [1, 2.5], "f": {"g": 1}, "big": 2**70},
        {"step": 2, "a": 2, "with blank": 3, "b": 4},
    ]


# What is given -> what the line has; nothing at all where it is left out.
VALUES: list[tuple[Any, Any]] = [
    (math.inf, math.inf), (-math.inf, -math.inf), ("null", "null"), ("NaN", "NaN"), (Colour.RED, 2),
    (Decimal("0.5"), 0.5), (Fraction(1, 4), 0.25), (b"x", "b'x'"), ({1: 2}, {"1": 2}), ((1, 2), [1, 2]),
    (Failing(), "<Failing: ValueError>"), ([Failing()], ["<Failing: ValueError>"]), ("\ud800", "\ud800"),
    (10**5000, hex(10**5000)), (1 + 2j, "(1+2j)"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), VALUES, ids=range(len(VALUES)))
def test_a_value_is_kept_as_near_as_json_can(run: tv.Run, given: Any, expected: Any) -> None:
    run.log(value=given, loss=1.5)
    assert written(run) == [{"step": 1, "value": expected, "loss": 1.5}]


def test_nan_is_data_and_none_says_nothing(run: tv.Run) -> None:
    run.log(loss=math.nan, empty=None, norm=1.0)
    run.log(empty=None)
    first, second = written(run)
    assert math.isnan(first.pop("loss")) and first == {"step": 1, "norm": 1.0} and second == {"step": 2}


@pytest.mark.parametrize("value", [FailingToSay(), [0.0] * 100_000, "x" * 1_000_000, {"a": [Failing()] * 9000}],
                         ids=["fails", "list", "text", "tree"])  # fmt: skip
def test_a_value_of_no_use_costs_itself_and_one_warning(
    run: tv.Run, value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        run.log(value=value, loss=number)
    records = written(run)
    assert [record["loss"] for record in records] == [0, 1, 2] and all(len(str(r)) < 20_000 for r in records)
    assert len(caplog.records) == 1 and caplog.records[0].levelno == logging.WARNING


@pytest.mark.parametrize("step", ["third", object(), math.nan, Failing(), [1], -5], ids=range(6))
def test_a_step_that_is_no_number_costs_no_record(run: tv.Run, step: Any, caplog: pytest.LogCaptureFixture) -> None:
    run.log(loss=1, step=step)
    run.log({"loss": 2, "step": step})
    with run.step(step):
        pass
    records = written(run)
    assert [record["loss"] for record in records if "loss" in record] == [1, 2] and len(caplog.records) == 1
    assert [record["step"] for record in records] == [1, 2, 1]


def test_steps_may_be_any_kind_of_number(run: tv.Run) -> None:
    run.log(loss=1, step=5.0)  # type: ignore[arg-type]
    run.log({"loss": 2, "global_step": "6"})
    run.log({"loss": 3, "step": 8}, step=7)
    assert [(record["step"], record["loss"]) for record in written(run)] == [(5, 1), (6, 2), (7, 3)]


def test_mappings_of_any_kind_are_values(run: tv.Run) -> None:
    class Broken(dict[str, Any]):
        def keys(self) -> Any:
            raise ValueError("no keys")

    run.log(OrderedDict(a=1))
    run.log(MappingProxyType({"a": 2}), b=1)
    run.log(Broken(a=3), b=2)
    run.log({1: 2, None: 3, ("a", 1): 4})  # type: ignore[dict-item]
    assert [record.get("a") for record in written(run)][:2] == [1, 2] and run.dropped <= 1


def test_a_name_means_the_same_however_it_is_written(run: tv.Run) -> None:
    run.log({"train/loss": 1, "lr": 2, "grad-norm": 3, "Samples Per Second": 4, "tokens_per_sec": 5, "val/loss": 6})
    run.log(loss=1, train_loss=2)
    run.log(timestamp="mine", event="mine")
    first, second, third = written(run)
    assert first == {"step": 1, "loss": 1, "learning_rate": 2, "gradient_norm": 3, "throughput_samples_per_sec": 4,
                     "tokens_per_second": 5, "val/loss": 6}  # fmt: skip
    assert second == {"step": 2, "loss": 1, "train_loss": 2}
    assert third == {"step": 3, "timestamp_": "mine", "event": "mine"}


def test_a_devices_value_comes_in_a_later_line_of_its_step_and_is_not_waited_for(run: tv.Run) -> None:
    run.log(loss=Device(False, False, True), lr=1)
    run.log(lr=2)
    run.log(lr=3)
    records = written(run)
    assert {"step": 1, "learning_rate": 1} in records and {"step": 1, "loss": 0.5} in records


def test_a_device_that_failed_keeps_the_run_from_nothing(run: tv.Run, caplog: pytest.LogCaptureFixture) -> None:
    """After a CUDA error each question is answered with it, also the last ones of a run that crashed."""
    for number in range(3):
        run.log(loss=Device(False, RuntimeError("device-side assert")), lr=number)
    run.alert_when("any", lambda metrics: metrics["learning_rate"] == 2)
    folder = run.folder
    assert folder is not None
    with pytest.raises(RuntimeError), run:
        raise RuntimeError("device-side assert")
    assert [end["status"] for end in events(folder, "end")] == ["crashed"]
    assert [line["learning_rate"] for line in lines(folder)] == [0, 1, 2] and len(caplog.records) == 1


def test_the_end_of_a_run_does_not_wait_for_a_device_that_is_far_behind(run: tv.Run) -> None:
    import time

    run.log(loss=Device(False))
    began = time.perf_counter()
    run.finish()
    assert time.perf_counter() - began < 0.5 and run.status == "finished"


def test_the_time_of_a_line_is_never_a_value_of_the_users(run: tv.Run) -> None:
    run.log({"timestamp": 5, "timestamp_": 6, "timestamp__": 7, "loss": 1})
    (path,) = run.folder.glob("training_metrics_*") if run.folder else ()
    line = json.loads(path.read_text())
    assert line["timestamp"].endswith("Z") and sorted(
        value for key, value in line.items() if key.startswith("timestamp_")
    ) == [5, 6, 7]


def test_threads_lose_nothing_of_each_other(run: tv.Run) -> None:
    def log(thread: int) -> None:
        for number in range(200):
            run.log({f"thread {thread}": number}, step=number)

    threads = [threading.Thread(target=log, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = written(run)
    for number in range(8):
        name = f"thread {number}"
        assert [record[name] for record in records if name in record] == list(range(200))


def test_events_hold_what_they_are_given(run: tv.Run) -> None:
    with run.step():
        pass
    run.event("half way", loss=0.5, kind="mine", text="never", event="never", bad=FailingToSay())
    run.event("x" * 100_000)
    run.write_event("epoch", number=3, step=12)
    run.finish()
    assert run.folder is not None
    first, second, third = events(run.folder)[:3]
    assert (first["event"], first["text"], first["loss"], first["step"], first["kind"]) == (
        "note", "half way", 0.5, 1, "mine")  # fmt: skip
    assert len(second["text"]) < 11_000 and (third["event"], third["number"], third["step"]) == ("epoch", 3, 12)


def test_after_the_end_nothing_is_written_any_more(run: tv.Run) -> None:
    run.log(loss=1)
    run.finish()
    assert run.folder is not None
    before = {path: path.read_bytes() for path in run.folder.iterdir() if path.is_file()}
    for _ in range(2):
        with run.step(), run.phase("evaluation"):
            run.log(loss=2)
    list(run.data([1, 2]))
    run.event("late")
    run.checkpoint("late.pt")
    run.describe({"late": 1})
    run.finish("crashed", "late")
    assert {path: path.read_bytes() for path in run.folder.iterdir() if path.is_file()} == before
    assert not tv.current() and run.status == "finished"
