"""GPU 0 answers each NVML call in 200 ms: how long until a change on another GPU is in /metrics."""

import random
import re
import threading
import time

from bench.rows import Row, Section, median
from bench.stage import Stage, Target

GOAL_SECONDS = 1.5
POLL_SECONDS = 0.04
BOUND_SECONDS = 15.0
Seen = dict[str, list[float]]


def measure(stage: Stage) -> Section:
    chance = random.Random(7)
    with stage.scene():
        targets = [stage.agent("beside-slow"), stage.nvitop()]
        stage.scenario.set(0, "delay_ms", 200)
        time.sleep(stage.few_or(2, 8))
        seen: Seen = {target.name: [] for target in targets}
        for turn in range(stage.few_or(2, 10)):
            gpu, degrees = chance.randrange(1, 8), 70 + turn
            time.sleep(chance.random())
            _try(stage, targets, gpu, degrees, seen)
    stage.scenario.write("gpus 8")
    return Section("One GPU that answers slowly", _rows(seen), NOTES)


NOTES = [
    f"Both are asked every {POLL_SECONDS * 1000:.0f} ms; a change that is not seen counts as {BOUND_SECONDS:.0f} s. "
    "The changes come at random times, on a GPU chosen at random among the seven that answer at once.",
]


def _try(stage: Stage, targets: list[Target], gpu: int, degrees: int, seen: Seen) -> None:
    began = time.monotonic()
    stage.scenario.set(gpu, "temperature", degrees)
    threads = [threading.Thread(target=_watch, args=(target, gpu, degrees, began, seen)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _watch(target: Target, gpu: int, degrees: int, began: float, seen: Seen) -> None:
    scraper = target.scraper()
    name = rb"(?:gpu_temperature_celsius|gpu_temperature_C)"
    wanted = re.compile(name + rb"\{[^}]*(?:gpu|index)=\"%d\"[^}]*\} %d(?:\.0)?\n" % (gpu, degrees))
    while (waited := time.monotonic() - began) < BOUND_SECONDS and not wanted.search(scraper.get()):
        time.sleep(POLL_SECONDS)
    scraper.close()
    seen[target.name].append(min(waited, BOUND_SECONDS))


def _rows(seen: Seen) -> list[Row]:
    ours, nvitop = seen["beside-slow"], seen["nvitop-exporter"]
    samples = f"{len(ours)} changes"
    return [
        Row(
            "change visible after, longest",
            max(ours),
            max(nvitop),
            "nvitop-exporter",
            "s",
            "≤ 1.5 s",
            max(ours) <= GOAL_SECONDS,
            samples,
        ),
        Row("change visible after, median", median(ours), median(nvitop), "nvitop-exporter", "s", samples=samples),
    ]
