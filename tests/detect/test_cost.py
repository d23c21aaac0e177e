"""What an agent pays for a run: its memory does not grow with the steps."""

import tracemalloc
from random import Random

from tests.detect.support import line
from trainvitals.detect.engine import Engine

MOST_BYTES = 2**20
RANKS, STEPS = 8, 2500


def test_a_run_of_eight_ranks_is_kept_in_a_mebibyte() -> None:
    engine, noise = Engine(), Random(5)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for step in range(1, STEPS):
            for rank in range(RANKS):
                values = {"step_duration_seconds": noise.gauss(0.3, 0.003), "data_wait_seconds": 0.005,
                          "forward_seconds": noise.gauss(0.1, 0.001), "gradient_norm": 1 + noise.random(),
                          "learning_rate": 3e-4}  # fmt: skip
                engine.training("gemma", rank, [line(step, 0.3, loss=noise.gauss(3.0, 0.05), **values)])
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert engine.failures == 0
    assert after - before <= MOST_BYTES
