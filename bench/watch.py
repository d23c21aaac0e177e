"""What watching a model takes of its training steps: ours, and W&B's, beside the same steps unwatched.

python -m bench.watch FOLDER SECONDS    prints the seconds of each step, as {"plain": [[…20 steps], …], "ours": …}
"""

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from pathlib import Path
from statistics import mean
from typing import Any

from bench.rows import Row, Section, median
from bench.run_log import QUIET
from bench.stage import Stage

GOAL = 0.02
TENSORS = 200
EVERY = 10
STEPS = 2 * EVERY
# Of a hundred steps, those with a sample, and the one of them with histograms too.
SAMPLES, HISTOGRAMS = 10, 1
LAYERS, WIDTH, WORDS, LENGTH, BATCH = 16, 256, 8000, 64, 4
Turns = list[list[float]]


def measure(stage: Stage) -> Section:
    folder = stage.folder / "watch"
    folder.mkdir()
    words = [sys.executable, "-m", "bench.watch", str(folder), str(stage.few_or(10, 240))]
    said = subprocess.run(words, check=False, env=stage.env | QUIET, cwd=folder, capture_output=True, text=True,
                          timeout=1800)  # fmt: skip
    if said.returncode:
        raise RuntimeError(f"bench.watch ended with {said.returncode}: {said.stderr[-2000:]}")
    turns: dict[str, Turns] = json.loads(said.stdout)
    plain = median([seconds for turn in turns["plain"] for seconds in turn])
    costs = {name: _mean_step(turns[name]) / plain - 1 for name in _OURS}
    costs["W&B"] = mean(_places(turns["W&B"])) / plain - 1
    return Section("run.watch", [_row(name, costs, plain, len(turns["plain"])) for name in _OURS], [_note(plain)])


def _row(name: str, costs: dict[str, float], plain: float, turns: int) -> Row:
    """Shares of a step, shown as the time they are."""
    ours, peer = costs[name], costs["W&B"]
    is_default = name == "ours"
    return Row(f"added to a step, every {EVERY}th measured: {_OURS[name]}", ours * plain, peer * plain,
               "wandb.watch of all", "ms", "≤ 2 % of the step" if is_default else "",
               ours <= GOAL if is_default else None,
               f"{ours:.1%} of a step, W&B {peer:.1%}; {turns} turns of {STEPS} steps each")  # fmt: skip


_OURS = {"ours": "norms, updates, times", "ours, layers": "these of every layer, and histograms"}


def _note(plain: float) -> str:
    return (
        f"A transformer of {TENSORS} parameter tensors ({LAYERS} layers of {WIDTH}, {BATCH} times {LENGTH} tokens, "
        f"AdamW) on one thread; an unwatched step takes {plain * 1e3:.0f} ms. All ways take turns on one model, and "
        "the processor time of the training's process is compared: of one thread that only computes it is the time by "
        "the clock, without what else the machine does. Differences under half a percent are chance. "
        'W&B\'s is `wandb.watch(log="all", log_freq=10)`, offline, with histograms of every tensor at each tenth step; '
        "ours come at each hundredth, and norms at each tenth. What W&B does in its other process is not counted."
    )


def _places(turns: Turns) -> list[float]:
    """The median of each place in a turn: what else the machine did meets none of them twice."""
    return [median(list(seconds)) for seconds in zip(*turns, strict=True)]


def _mean_step(turns: Turns) -> float:
    """As the places come in a hundred steps: the first of a turn has the histograms."""
    places = _places(turns)
    rest = mean([seconds for number, seconds in enumerate(places) if number % EVERY])
    return (HISTOGRAMS * places[0] + (SAMPLES - HISTOGRAMS) * places[EVERY] + (100 - SAMPLES) * rest) / 100


class Training:
    """One model, stepped on and on; each way to watch it is put on and taken off."""

    def __init__(self, folder: Path) -> None:
        import torch
        import wandb

        import trainvitals

        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.model = _model()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.inputs = torch.randint(WORDS, (BATCH, LENGTH))
        self.loss = torch.nn.CrossEntropyLoss()
        self.run = trainvitals.start("bench", dir=folder / "ours")
        settings = wandb.Settings(x_disable_stats=True, console="off", silent=True)
        self.wandb = wandb.init(project="bench", mode="offline", dir=str(folder), settings=settings)

    def step(self) -> float:
        self.optimizer.zero_grad()
        loss = self.loss(self.model(self.inputs).flatten(0, 1), self.inputs.flatten())
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    @contextmanager
    def plain(self) -> Iterator[Callable[[], object]]:
        yield self.step

    @contextmanager
    def ours(self, layers: list[str] | None = None) -> Iterator[Callable[[], object]]:
        watching = self.run.watch(self.model, self.optimizer, every=EVERY, layers=layers)

        def step() -> None:
            with self.run.step():
                loss = self.step()
            self.run.log(loss=loss)

        yield step
        watching.remove()

    @contextmanager
    def wandbs(self) -> Iterator[Callable[[], object]]:
        self.wandb.watch(self.model, log="all", log_freq=EVERY)
        yield lambda: self.wandb.log({"loss": self.step()})
        self.wandb.unwatch(self.model)


def _model() -> Any:
    """Sixteen layers of twelve tensors, and eight around them."""
    from torch import Tensor, nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.first, self.last = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True)
            self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
            self.head = nn.Linear(WIDTH, WORDS)

        def forward(self, inputs: Tensor) -> Any:
            return self.head(self.last(self.layers(self.first(self.words(inputs) + self.places.weight))))

    model = Model()
    assert len(list(model.parameters())) == TENSORS
    return model


def _turn(way: AbstractContextManager[Callable[[], object]]) -> list[float]:
    taken = []
    with way as step:
        gc.collect()
        for _ in range(STEPS):
            began = time.process_time()
            step()
            taken.append(time.process_time() - began)
    return taken


def main(folder: str, seconds: str) -> None:
    """On a machine that others use a step may take ten times as long: it is time that ends it, and a whole turn."""
    with redirect_stdout(sys.stderr):
        training = Training(Path(folder))
        ways: dict[str, Callable[[], AbstractContextManager[Callable[[], object]]]] = {
            "plain": training.plain, "ours": training.ours, "ours, layers": lambda: training.ours(["*"]),
            "W&B": training.wandbs}  # fmt: skip
        _turn(training.plain())
        found: dict[str, Turns] = {name: [] for name in ways}
        end = time.monotonic() + float(seconds)
        while not found["W&B"] or time.monotonic() < end:
            for name, way in ways.items():
                found[name].append(_turn(way()))
    print(json.dumps(found), flush=True)
    # W&B goes on writing for as long as it likes.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
