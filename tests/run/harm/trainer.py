"""A small training that uses the whole SDK, as a process of its own:

    trainer.py RESULT [--without] [--deed many_names] [--gate 60] [--start '{"run_id": "x"}']

What it ends with (a digest of its weights, the slowest call of each kind in seconds) goes to the file RESULT. At the
step of the gate it says so and waits until somebody answers: what happens to it meanwhile is the test.
"""

import argparse
import atexit
import gc
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

STEPS = 150
PLANS = {"config": {"lr": 0.1}, "tags": ["harm"], "planned_steps": STEPS}


Deed = Callable[[Any, "Stopwatch", int], None]


class Nothing:
    """What the loop has in place of a run when it is not monitored."""

    number = 0

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self

    def data(self, loader: Any) -> Any:
        return loader

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class Stopwatch:
    """The slowest call of each kind. Time in which this thread could have gone on, and others had the processor, is
    the machine's."""

    def __init__(self) -> None:
        self.slowest: dict[str, float] = {}
        self._kernel = -1
        with suppress(OSError):
            self._kernel = os.open("/proc/thread-self/schedstat", os.O_RDONLY)

    def __call__(self, call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        began = self.now()
        try:
            return call(*arguments, **more)
        finally:
            self._note(getattr(call, "__name__", str(call)), began)

    def now(self) -> float:
        try:
            waited_ns = int(os.pread(self._kernel, 100, 0).split()[1])
        except (OSError, ValueError, IndexError):
            waited_ns = 0
        return time.perf_counter() - waited_ns / 1e9

    def forget(self) -> None:
        """Its descriptor has been closed, and the number is another file's."""
        self._kernel = -1

    def _note(self, name: str, began: float) -> None:
        self.slowest[name] = max(self.now() - began, self.slowest.get(name, 0.0))

    @contextmanager
    def within(self, block: Any, name: str) -> Iterator[None]:
        self(block.__enter__)
        try:
            yield
        finally:
            began = self.now()
            block.__exit__(None, None, None)
            self._note(f"end of {name}", began)


def batches(steps: int) -> Any:
    inputs = torch.randn(steps * 16, 32)
    targets = inputs.sum(dim=1, keepdim=True).sin()
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, targets), batch_size=16)


def pause(gate: int, number: int) -> None:
    if number == gate:
        print("at the gate", flush=True)
        sys.stdin.readline()


class Descent:
    """With momentum. Torch's own optimizers import as much again as torch itself."""

    def __init__(self, parameters: Any) -> None:
        self._parameters = list(parameters)
        self._moments = [torch.zeros_like(parameter) for parameter in self._parameters]

    def step(self) -> None:
        with torch.no_grad():
            for parameter, moment in zip(self._parameters, self._moments, strict=True):
                moment.mul_(0.9).add_(parameter.grad)
                parameter.sub_(moment, alpha=0.1)
                parameter.grad = None


def train(run: Any, watch: Stopwatch, gate: int, deed: Deed, steps: int = STEPS) -> str:
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = Descent(model.parameters())
    watch(run.watch, model)
    watch(run.describe, {"layers": 2}, framework="torch")
    watch(run.alert_when, "hot", lambda metrics: metrics["loss"] > 1e9, "page", "loss {loss}")
    for number, (inputs, targets) in enumerate(run.data(batches(steps)), start=1):
        pause(gate, number)
        with watch.within(run.step(), "step"):
            with watch.within(run.phase("forward"), "forward"):
                loss = torch.nn.functional.mse_loss(model(inputs), targets)
            with watch.within(run.phase("backward"), "backward"):
                loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            with watch.within(run.phase("optimizer"), "optimizer"):
                optimizer.step()
            deed(run, watch, number)
            time.sleep(0.001)
        watch(run.log, loss=loss, grad_norm=norm, lr=0.1, note="as text")
        watch(run.add_seconds, other=0.001)
        if number % 50 == 0:
            with watch.within(run.phase("evaluation"), "evaluation"):
                watch(run.log, {"val/loss": loss.item()}, step=number)
            watch(run.checkpoint, f"checkpoint-{number}.pt")
            watch(run.event, "half of a half", loss=loss.item())
    return hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("result", type=Path)
    parser.add_argument("--without", action="store_true")
    parser.add_argument("--deed", default="nothing")
    parser.add_argument("--gate", type=int, default=0)
    parser.add_argument("--start", type=json.loads, default={})
    return parser.parse_args()


def save(path: Path, result: dict[str, Any]) -> None:
    if "ended" in result:
        path.write_text(json.dumps(result | {"exit_seconds": time.monotonic() - result.pop("ended")}))


def main() -> None:
    flags = parsed()
    result: dict[str, Any] = {}
    # Called after what the SDK does at the end, which it imports later.
    atexit.register(lambda: save(flags.result, result))
    torch.set_num_threads(1)
    train(Nothing(), Stopwatch(), 0, lambda *_: None, steps=1)  # what torch opens and imports at first
    gc.collect()
    gc.freeze()  # Python's own pass over all that torch is made of takes long, whoever it falls on
    torch.manual_seed(0)
    from tests.run.harm import deeds

    deed = getattr(deeds, flags.deed)
    watch = Stopwatch()
    if flags.without:
        run: Any = Nothing()
    else:
        import trainvitals as tv

        deeds.before(flags.deed)
        run = watch(lambda: tv.start("harm", **PLANS, **flags.start))
    began = watch.now()
    weights = train(run, watch, flags.gate, deed)
    watch(run.finish)
    result.update(weights=weights, slowest=watch.slowest, seconds=watch.now() - began, ended=time.monotonic())


if __name__ == "__main__":
    main()
