"""Trainers and callbacks are copied and sent elsewhere with what the integrations hold of them."""

import copy
import inspect
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainvitals.integrations.training import OfTraining, Training, replace


class Trainer:
    def __init__(self) -> None:
        self.saved: list[str] = []

    def save(self, path: str) -> list[str]:
        self.saved.append(path)
        return self.saved


class Callback(OfTraining):
    def __init__(self, **options: Any) -> None:
        self._training = Training("test", "copied", options)
        self.undo: list[Callable[[], None]] = []

    def watch(self, trainer: Trainer) -> None:
        self.undo.append(replace(trainer, "save", lambda original: lambda path: original(f"seen {path}")))


def sent(what: Any) -> Any:
    return pickle.loads(pickle.dumps(what))


@pytest.mark.parametrize("copied", [copy.deepcopy, sent])
def test_a_copied_trainer_has_its_own_method_again(copied: Callable[[Any], Any]) -> None:
    trainer, callback = Trainer(), Callback()
    callback.watch(trainer)
    other = copied(trainer)
    assert (trainer.save("a"), other.save("b")) == (["seen a"], ["b"])
    assert list(inspect.signature(trainer.save).parameters) == ["path"]
    callback.undo[0]()
    assert trainer.save("c") == ["seen a", "c"] and "save" not in vars(trainer)


def test_a_copied_callback_has_the_same_run_and_one_that_is_sent_records_nothing(tmp_path: Path) -> None:
    trainer, callback = Trainer(), Callback(dir=tmp_path)
    callback.watch(trainer)
    callback._training.begin("copied", 0)
    try:
        assert copy.deepcopy(callback).run is callback.run and callback.run.status == "running"
        assert sent(callback).run.status == "off"
        copy.deepcopy(callback).undo[0]()
        assert trainer.save("a") == ["seen a"]
    finally:
        callback._training.end()


def test_options_that_cannot_be_copied_are_shared() -> None:
    callback = Callback(config={"lock": threading.Lock()})
    assert copy.deepcopy(callback)._training._options is callback._training._options
