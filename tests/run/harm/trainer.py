"""A small training that uses the whole SDK, as a process of its own:

    trainer.py RESULT [--without] [--deed many_names] [--gate 60] [--start '{"run_id": "x"}']

What it ends with (a digest of its weights, the slowest call of each kind in seconds) goes to the file RESULT. At the
step of the gate it says so and waits until somebody answers: what happens to it meanwhile is the test.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

STEPS = 150
PLANS = {"config": {"lr": 0.1}, "tags": ["harm"], "planned_steps": STEPS}


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
    """The slowest call of each kind."""

    def __init__(self) -> None:
        self.slowest: dict[str, float] = {}

    def __call__(self, call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        began = time.perf_counter()
        try:
            return call(*arguments, **more)
        finally:
            self.note(getattr(call, "__name__", str(call)), time.perf_counter() - began)

    def note(self, name: str, seconds: float) -> None:
        self.slowest[name] = max(seconds, self.slowest.get(name, 0.0))

    @contextmanager
    def within(self, block: Any, name: str) -> Iterator[None]:
        self(block.__enter__)
        try:
            yield
        finally:
            began = time.perf_counter()
            block.__exit__(None, None, None)
            self.note(f"end of {name}", time.perf_counter() - began)


def batches() -> Any:
    inputs = torch.randn(STEPS * 16, 32)
    targets = inputs.sum(dim=1, keepdim=True).sin()
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, targets), batch_size=16)


def pause(gate: int, number: int) -> None:
    if number == gate:
        print("at the gate", flush=True)
        sys.stdin.readline()


def train(run: Any, watch: Stopwatch, gate: int, deed: Callable[[Any, Stopwatch, int], None]) -> str:
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    watch(run.watch, model, optimizer)
    watch(run.describe, {"layers": 2}, framework="torch")
    watch(run.alert_when, "hot", lambda metrics: metrics["loss"] > 1e9, "page", "loss {loss}")
    for number, (inputs, targets) in enumerate(run.data(batches()), start=1):
        pause(gate, number)
        with watch.within(run.step(), "step"):
            with watch.within(run.phase("forward"), "forward"):
                loss = torch.nn.functional.mse_loss(model(inputs), targets)
            with watch.within(run.phase("backward"), "backward"):
                loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            with watch.within(run.phase("optimizer"), "optimizer"):
                optimizer.step()
                optimizer.zero_grad()
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


def main() -> None:
    flags = parsed()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.optim.SGD([torch.zeros(1)])  # torch imports the half of itself here
    from tests.run.harm import deeds

    deed = getattr(deeds, flags.deed)
    watch = Stopwatch()
    if flags.without:
        run: Any = Nothing()
    else:
        import trainvitals as tv

        deeds.before(flags.deed)
        run = watch(lambda: tv.start("harm", **PLANS, **flags.start))
    weights = train(run, watch, flags.gate, deed)
    watch(run.finish)
    result = {"weights": weights, "slowest": watch.slowest, "ended": time.monotonic(), "pid": os.getpid(),
              "run": getattr(run, "id", ""), "dropped": getattr(run, "dropped", 0)}  # fmt: skip
    flags.result.write_text(json.dumps(result, default=str))


if __name__ == "__main__":
    main()
