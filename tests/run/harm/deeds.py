"""What a training does in each of its steps that a monitor may stumble over."""

import math
import os
import resource
import threading
from typing import Any

import torch

STEPS_OF_DEEDS = 100


def nothing(run: Any, watch: Any, number: int) -> None:
    pass


def before(deed: str) -> None:
    """What is so before the run starts."""
    {"no_descriptors": _fill_descriptors, "no_threads": _forbid_threads}.get(deed, lambda: None)()


class Failing:
    """An object that can be asked for nothing."""

    def _fail(self, *_: object) -> Any:
        raise ValueError("not this one")

    __float__ = __int__ = __str__ = __repr__ = __len__ = __iter__ = __bool__ = __hash__ = __index__ = _fail

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class FailingMapping(dict[str, Any]):
    def keys(self) -> Any:
        raise ValueError("no keys")

    items = __iter__ = keys  # type: ignore[assignment]


def values(run: Any, watch: Any, number: int) -> None:
    """Everything that is no plain number, each in some step; and the loss beside it must come through."""
    if number == 10:
        watch(run.log, {f"metric {name}": name for name in range(10_000)})
    elif 10 < number < 110:
        for name in range(100):
            watch(run.log, {f"once {number} {name}": 1.0})
    odd: list[Any] = ["x" * 1_000_000, math.nan, math.inf, -math.inf, Failing(), [Failing()], {"a": Failing()}, None,
                      torch.tensor(math.nan), torch.ones(3), torch.empty(0), torch.tensor(1 + 2j), b"bytes", 10**5000,
                      torch.ones(2, device="meta"), "\ud800", object(), [0.0] * 100_000, {"deep": [[[[1]]]]},
                      torch.ones(1, requires_grad=True).sum().to_sparse()]  # fmt: skip
    watch(run.log, odd=odd[number % len(odd)], sure=number)
    watch(run.log, {1: 2, None: 3, ("a", 1): 4, "\ud800": 5})
    calls(run, watch, number)


def calls(run: Any, watch: Any, number: int) -> None:
    """Each call with what it does not expect."""
    odd = Failing()
    if number == 20:
        watch(run.log, FailingMapping(a=1), step="third")
        watch(run.log, loss=1.0, step=odd)
        watch(run.event, odd, text=odd, kind=odd, event=odd)
        watch(run.event, "long", text="x" * 1_000_000)
        watch(run.checkpoint, odd, step=odd)
        watch(run.describe, odd, framework=odd, planned_steps=odd, tags=odd)
        watch(run.add_seconds, forward=odd)
        watch(run.add_seconds, forward="long")
        watch(run.alert_when, odd, odd, odd, odd, odd)
        watch(run.alert_when, "never", lambda metrics: metrics["no such"] > 1)
        watch(run.watch, odd).remove()
        watch(run.profile_inference, odd, odd)
    if number == 21:
        with watch.within(run.phase(odd), "odd phase"):
            pass


def threads(run: Any, watch: Any, number: int) -> None:
    """Eight threads that log while the step goes on."""
    if number % 10:
        return

    def log(thread: int) -> None:
        for count in range(20):
            run.log({f"thread {thread}": count})

    workers = [threading.Thread(target=log, args=(thread,)) for thread in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def forks(run: Any, watch: Any, number: int) -> None:
    """A child that believes it is the trainer, ended without and with Python's own end."""
    if number % 25:
        return
    child = os.fork()
    if child == 0:
        run.log(forked=number)
        run.event("of a child")
        run.finish()
        if number % 2:
            os._exit(0)
        raise SystemExit(0)
    assert os.waitpid(child, 0)[1] == 0


class Squares(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return torch.tensor(index * index)


def workers(run: Any, watch: Any, number: int) -> None:
    """Data from processes that were forked, and from processes that were begun anew."""
    if number in (20, 40):
        context = "fork" if number == 20 else "spawn"
        loader = torch.utils.data.DataLoader(Squares(), num_workers=1, multiprocessing_context=context)
        assert sum(int(batch) for batch in run.data(loader)) == 14


def closes_everything(run: Any, watch: Any, number: int) -> None:
    """As a program that makes itself a daemon, and then opens files of its own."""
    if number == 40:
        os.chdir("/")
        os.closerange(3, 4096)
        watch.forget()
        _own.extend(open(os.path.join(os.environ["OWN_FILES"], str(name)), "w+") for name in range(20))  # noqa: SIM115
    if number > 40:
        _own[number % 20].write("mine\n")
        _own[number % 20].flush()


_own: list[Any] = []


def daemon(run: Any, watch: Any, number: int) -> None:
    """Twice forked, and the parents gone: what goes on is the grandchild."""
    if number == 40:
        for _ in range(2):
            if os.fork():
                os._exit(0)
            os.setsid()


def no_descriptors(run: Any, watch: Any, number: int) -> None:
    """None left from before the start on, until the training is nearly done."""
    if number == STEPS_OF_DEEDS:
        _free_descriptors()


def no_descriptors_midway(run: Any, watch: Any, number: int) -> None:
    if number == 40:
        _fill_descriptors()
    no_descriptors(run, watch, number)


_taken: list[int] = []


def _fill_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    try:
        while True:
            _taken.append(os.dup(2))
    except OSError:
        pass


def _free_descriptors() -> None:
    while _taken:
        os.close(_taken.pop())


no_threads = nothing


def _forbid_threads() -> None:
    """The kernel has no room for such a stack."""
    threading.stack_size(2**46)
