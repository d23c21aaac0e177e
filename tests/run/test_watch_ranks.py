"""Several processes: what a rank tells of gradients is what all of them came to together."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_port

pytest.importorskip("torch", reason="torch is not installed: make trainers")

ROOT = Path(__file__).parents[2]
RANK = """
import json, sys, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from tests.run.watch_helpers import Recorder, batch, gradients, norm, sgd, small, train
from trainvitals.run.watch import watch

rank, port = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
inner = small()
model, run = DistributedDataParallel(inner), Recorder()
watched = inner if sys.argv[3] == "inner" else model
optimizer = sgd(model)
watch(run, watched, optimizer, every=1, layers=["0"])
train(run, model, optimizer, loss=lambda model: model(batch(rank)).square().mean())
wanted = norm(gradients(model))
with model.no_sync():
    model(batch()).sum().backward()
print(json.dumps({"found": run.lines[0]["gradient_norm"], "wanted": wanted, "phases": run.phases(),
                  "layer": run.lines[0]["gradient_norm/0"]}))
dist.destroy_process_group()
"""


def told_by_two_ranks(watched: str) -> list[dict[str, Any]]:
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'collector' / 'src'}", "OMP_NUM_THREADS": "1"}
    port = str(free_port())
    ranks = [subprocess.Popen([sys.executable, "-c", RANK, str(rank), port, watched], env=env, text=True,
                              stdout=subprocess.PIPE) for rank in (0, 1)]  # fmt: skip
    try:
        return [json.loads(rank.communicate(timeout=90)[0]) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


@pytest.mark.parametrize("watched", ["inner", "outer"])
def test_each_rank_tells_the_norm_of_the_gradients_they_came_to_together(watched: str) -> None:
    ranks = told_by_two_ranks(watched)
    for told in ranks:
        assert told["found"] == pytest.approx(told["wanted"], rel=1e-5)
        assert told["found"] == pytest.approx(ranks[0]["found"], rel=1e-6)
        assert 0 < told["layer"] < told["found"]
        assert told["phases"] == ["forward", "backward"] * 2
