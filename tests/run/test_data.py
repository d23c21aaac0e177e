"""`run.data(loader)` is the loader in all but the clock."""

import asyncio
import copy
import gc
import pickle
import weakref
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import trainvitals as tv
from tests.run.support import lines


@pytest.fixture
def run(tmp_path: Path) -> Iterator[tv.Run]:
    with tv.start("data", dir=tmp_path) as run:
        yield run


class Loader:
    """What a loader may have besides its batches."""

    batch_size = 4

    def __init__(self) -> None:
        self.epoch = 0

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Iterator[int]:
        yield from range(3)

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


def test_a_loader_shows_through_what_times_it(run: tv.Run) -> None:
    loader: Any = Loader()
    data: Any = run.data(loader)
    data.set_epoch(5)
    assert (len(data), data.batch_size, loader.epoch, bool(run.data([]))) == (3, 4, 5, False)
    assert [list(data), list(data)] == [[0, 1, 2], [0, 1, 2]] and len(copy.copy(data)) == 3
    with pytest.raises(AttributeError):
        _ = data.no_such
    with pytest.raises(TypeError):
        len(run.data(iter([])))  # type: ignore[arg-type]
    assert list(run.data(number for number in range(2))) == [0, 1]


def test_a_loaders_own_exception_is_the_users(run: tv.Run) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("a broken file")

    with pytest.raises(ValueError, match="a broken file"):
        list(run.data(broken()))


class Flawed:
    """A loader with one bad sample."""

    def __init__(self) -> None:
        self.at = 0

    def __iter__(self) -> "Flawed":
        return self

    def __next__(self) -> int:
        self.at += 1
        if self.at == 3:
            raise OSError("a bad sample")
        if self.at > 6:
            raise StopIteration
        return self.at


def skipping(batches: Iterator[int]) -> Iterator[int]:
    while True:
        try:
            yield next(batches)
        except StopIteration:
            return
        except OSError:
            continue


def test_a_bad_sample_that_is_skipped_ends_no_loader(run: tv.Run) -> None:
    assert list(skipping(iter(run.data(Flawed())))) == list(skipping(iter(Flawed()))) == [1, 2, 4, 5, 6]


def test_an_iterator_stays_one_and_a_loader_becomes_none(run: tv.Run) -> None:
    batches = run.data(iter([1, 2]))
    assert iter(batches) is batches and next(batches) == 1 and list(batches) == [2]
    assert not isinstance(run.data([1]), Iterator) and isinstance(iter(run.data([1])), Iterator)
    assert run.data([1, 2])[1] == 2 and 2 in run.data([1, 2])
    assert not hasattr(run.data(Flawed()), "__len__") and not hasattr(run.data(Loader()), "__getitem__")


def test_what_is_set_is_set_at_the_loader(run: tv.Run) -> None:
    loader = Loader()
    data: Any = run.data(loader)
    data.epoch = 5
    data._loader = "one of its own"
    assert vars(loader) == vars(data) == {"epoch": 5, "_loader": "one of its own"}
    del data.epoch
    assert not hasattr(loader, "epoch")


def test_a_copy_has_a_copy_of_the_loader_and_is_timed_too(run: tv.Run) -> None:
    loader: Any = Loader()
    loader.seen = []
    data: Any = run.data(loader)
    for copied in (copy.copy(data), copy.deepcopy(data)):
        copied.epoch = 7
        assert type(copied) is type(data) and loader.epoch == 0 and list(copied) == [0, 1, 2]
    assert copy.copy(data).seen is loader.seen and copy.deepcopy(data).seen is not loader.seen
    assert type(pickle.loads(pickle.dumps(data))) is Loader


def test_the_last_batch_is_nobodys_while_the_next_is_made(run: tv.Run) -> None:
    class Batch:
        pass

    alive: list[weakref.ref[Batch]] = []

    def batches() -> Iterator[Batch]:
        for _ in range(3):
            gc.collect()
            assert all(each() is None for each in alive)
            made = Batch()
            alive.append(weakref.ref(made))
            yield made
            del made

    for batch in run.data(batches()):
        assert alive[-1]() is batch
        del batch
    assert len(alive) == 3


def test_a_loader_within_a_loader_waits_once(run: tv.Run) -> None:
    import time

    def slow() -> Iterator[int]:
        for number in range(2):
            time.sleep(0.05)
            yield number

    began = time.perf_counter()
    for _ in run.data(number for number in run.data(slow())):
        with run.step():
            pass
    took = time.perf_counter() - began
    run.finish()
    assert run.folder is not None
    assert 0.1 <= sum(line.get("data_wait_seconds", 0) for line in lines(run.folder)) <= took


class Remote:
    """A loader whose batches come from elsewhere."""

    closed = False

    def __len__(self) -> int:
        return 2

    async def __aiter__(self) -> AsyncIterator[int]:
        for number in range(2):
            await asyncio.sleep(0.05)
            yield number

    async def __aenter__(self) -> "Remote":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.closed = True


async def train(run: tv.Run, batches: Any) -> list[int]:
    seen = []
    async for batch in batches:
        with run.step():
            seen.append(batch)
    return seen


def test_a_loader_that_is_awaited_is_waited_for_by_the_clock_too(run: tv.Run) -> None:
    loader: Any = Remote()
    seen = asyncio.run(train(run, run.data(loader)))
    run.finish()
    assert run.folder is not None and seen == [0, 1] and len(run.data(loader)) == 2
    waits = [line["data_wait_seconds"] for line in lines(run.folder) if "data_wait_seconds" in line]
    assert len(waits) == 2 and min(waits) >= 0.045


def test_an_awaited_iterator_stays_one_and_its_context_is_its_own(run: tv.Run) -> None:
    async def all_of_it() -> None:
        loader: Any = Remote()
        batches: Any = run.data(loader.__aiter__())
        assert aiter(batches) is batches and await anext(batches) == 0
        assert [batch async for batch in batches] == [1]
        async with run.data(loader):
            assert not loader.closed
        assert loader.closed

    asyncio.run(all_of_it())
    plain: Any = run.data([1])
    with pytest.raises(TypeError):
        aiter(plain)
