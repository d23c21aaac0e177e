"""Live runs: claims them and logs four steps a second for each rank until its input is closed.

python -m bench.trainer JOURNAL RUNS RANKS
"""

import select
import sys
from pathlib import Path

from trainvitals.journal.run_files import RunFiles
from trainvitals.journal.runs import claim

STEP_SECONDS = 0.25


def start(root: Path, runs: int, ranks: int, first: int = 0) -> list[RunFiles]:
    numbers = range(first, first + runs)
    return [_rank(root, f"bench-{run}", rank, ranks) for run in numbers for rank in range(ranks)]


def _rank(root: Path, name: str, rank: int, ranks: int) -> RunFiles:
    gpus = [{"gpu": str(rank), "uuid": f"GPU-0000100{rank}-fa4e-4b1d-8000-0000000000a{rank}"}]
    held = claim(root, name, rank=rank, world_size=ranks, run_id=name, facts={"gpus": gpus})
    return RunFiles(held, name, framework="bench", planned_steps=100_000)


def record(step: int) -> dict[str, float]:
    """The given fields of a training line, and the timing of a step."""
    return {"step": step, "epoch": step / 1000, "loss": 2.0 / (1 + step * 1e-3), "learning_rate": 3e-4,
            "gradient_norm": 1.2345678901, "throughput_samples_per_sec": 1024.5, "memory_allocated_mb": 40211.25,
            "memory_reserved_mb": 45056.0, "step_duration_seconds": 0.2481, "data_wait_seconds": 0.0123,
            "forward_seconds": 0.0801, "backward_seconds": 0.1312, "optimizer_seconds": 0.0191}  # fmt: skip


def main() -> None:
    ranks = start(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    step = 0
    while not select.select([sys.stdin], [], [], STEP_SECONDS)[0]:
        step += 1
        for rank in ranks:
            rank.metrics.append(record(step))
    for rank in ranks:
        rank.end("finished")


if __name__ == "__main__":
    main()
