"""A signal's handler that raises, as timeouts are made, interrupts whatever is running, us too: it means the caller."""

import functools
import gc
import logging
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import trainvitals as tv
from tests.collector.support import wait_for
from tests.run.support import lines, run_folders

ALARMS = 300
# Far more than there is time for before the alarm.
CALLS = 20_000


class Late(Exception):
    pass


def raising(kind: type[Exception], number: int, frame: object) -> None:
    raise kind("took too long")


class Raising:
    def __init__(self, kind: type[Exception]) -> None:
        self.kind = kind

    def __call__(self, number: int, frame: object) -> None:
        raise self.kind("took too long")


@pytest.fixture
def alarmed() -> Iterator[Callable[[Any], None]]:
    before = signal.getsignal(signal.SIGALRM)
    # What strikes within a callback of the garbage collector is nobody's: Python itself prints and forgets it.
    gc.collect()
    gc.disable()
    yield lambda handler: signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    gc.enable()


@pytest.mark.parametrize("kind", [Late, TimeoutError])
@pytest.mark.parametrize("as_handler", [lambda kind: functools.partial(raising, kind), Raising])
def test_each_timeout_reaches_the_training_and_no_line_is_torn(
    tmp_path: Path, alarmed: Callable[[Any], None], as_handler: Callable[[type[Exception]], Any], kind: type[Exception]
) -> None:
    run = tv.start("late", dir=tmp_path)
    run.log(returned=-1)
    wait_for(lambda: run.folder is not None)
    alarmed(as_handler(kind))
    returned = 0
    for number in range(ALARMS):
        with pytest.raises(kind, match="took too long"):  # noqa: PT012
            signal.setitimer(signal.ITIMER_REAL, 0.0001 + number * 1e-6)
            for _ in range(CALLS):
                run.log(loss=1.5, returned=returned, step=returned)
                returned += 1
    run.finish()
    logged = [record["returned"] for record in lines(*run_folders(tmp_path)) if "returned" in record]
    assert set(range(returned)) <= set(logged)
    assert run.troubles == 0


class Broken(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise RuntimeError("no log")


def test_a_log_handler_that_fails_is_nothing_that_training_hears_of(tmp_path: Path) -> None:
    broken = Broken()
    logging.getLogger("trainvitals").addHandler(broken)
    try:
        run: Any = tv.start("x", dir=tmp_path, rank="zz")  # type: ignore[arg-type]
        run.watch(3)
        run.log(loss=object.__new__)
        run.log(loss=1, step="never")
        run.finish()
    finally:
        logging.getLogger("trainvitals").removeHandler(broken)
