"""Parameters that FSDP puts in and out of a module: what is there is measured, freed memory is never read."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: make trainers")
import torch
from torch import nn
from torch.distributed import fsdp

from tests.run.watch_helpers import Recorder, batch, gradients, norm, sgd, small
from trainvitals.run.watch import watch
from trainvitals.run.watch_layers import is_there

ROOT = Path(__file__).parents[2]
SHARDED = """
import json, sys, torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from tests.run.watch_helpers import Recorder, batch, sgd, small
from trainvitals.run.watch import watch

options, keeps_unsharded = json.loads(sys.argv[1]), sys.argv[2] == "accumulates"
dist.init_process_group("gloo", init_method=f"file://{sys.argv[3]}", rank=0, world_size=1)
model, run = small(), Recorder()
fully_shard(model[0]), fully_shard(model)
optimizer = sgd(model)
watch(run, model, optimizer, every=1, **options)

def whole(tensors):
    return float(torch.cat([each.full_tensor().detach().reshape(-1) for each in tensors]).norm())

wanted = []
for _ in range(12):
    run.number += 1
    for last in (False, True) if keeps_unsharded else (True,):
        model.set_requires_gradient_sync(last)
        model.set_reshard_after_backward(last)
        model(batch()).square().mean().backward()
    parameters = list(model.parameters())
    gradient, size = whole(each.grad for each in parameters), whole(parameters)
    wanted.append({"gradient_norm": gradient, "parameter_norm": size, "update_ratio": 0.1 * gradient / size})
    optimizer.step()
    optimizer.zero_grad()
print(json.dumps({"wanted": wanted, "found": run.lines}))
dist.destroy_process_group()
"""


@pytest.mark.skipif(not hasattr(fsdp, "fully_shard"), reason="this torch has no fully_shard")
@pytest.mark.parametrize(("options", "way"), [
    ({"activations": True, "attention": True, "layers": ["*"]}, "at once"), ({}, "accumulates"),
])  # fmt: skip
def test_a_sharded_model_is_measured_as_it_is_at_the_step(options: dict[str, Any], way: str, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'collector' / 'src'}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SHARDED, json.dumps(options), way, str(tmp_path / "meeting")]
    done = subprocess.run(command, env=env, text=True, capture_output=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["found"]) == len(told["wanted"])
    for found, wanted in zip(told["found"], told["wanted"], strict=True):
        assert {name: found[name] for name in wanted} == pytest.approx(wanted, rel=1e-4)


def test_a_parameter_without_its_memory_is_left_out() -> None:
    run, model = Recorder(), small()
    optimizer = sgd(model)
    watch(run, model, optimizer, every=1, layers=["*"])
    model(batch()).sum().backward()
    gone = model[0].weight
    gone.untyped_storage().resize_(0)
    gone.grad = None
    size_of_rest = norm(each for each in model.parameters() if each is not gone)
    optimizer.step()
    assert run.lines[0]["parameter_norm"] == pytest.approx(size_of_rest, rel=1e-5)
    assert run.lines[0]["update_ratio"] == pytest.approx(0.1 * norm(gradients(model)) / size_of_rest, rel=1e-4)


def test_a_layer_that_is_replaced_before_the_step_is_measured_as_it_is() -> None:
    run, model = Recorder(), small()
    optimizer = sgd(model, rate=0.0)
    watch(run, model, optimizer, every=1)
    model(batch()).sum().backward()
    model[0].weight = nn.Parameter(torch.zeros(16, 8))
    wanted = norm(model.parameters())
    optimizer.step()
    assert run.lines[0]["parameter_norm"] == pytest.approx(wanted, rel=1e-5)


def test_memory_that_is_there_in_part_is_not_there() -> None:
    whole = torch.ones(4, 4)
    views = whole[:2], whole[2:], whole.t()
    assert all(map(is_there, views))
    whole.untyped_storage().resize_(8 * whole.element_size())
    assert list(map(is_there, views)) == [True, False, False]
    assert is_there(torch.empty(0)) and is_there(torch.ones(3).to_sparse())
