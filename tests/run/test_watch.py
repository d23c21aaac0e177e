"""What a watch says of a training: norms that are what torch says they are, at the steps they were asked for."""

import math
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed: make trainers")
import torch
from torch import nn

import trainvitals as tv
from tests.run.watch_helpers import Recorder, batch, gradients, norm, sgd, small, train
from trainvitals.journal.record import decode
from trainvitals.run.watch import watch


def lines(folder: Path, name: str) -> list[dict[str, object]]:
    return [decode(line) for path in sorted(folder.rglob(name)) for line in path.read_bytes().splitlines()]


def test_norms_are_those_of_gradients_parameters_and_the_step() -> None:
    run, model = Recorder(), small()
    optimizer = sgd(model)
    watch(run, model, optimizer)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    train(run, model, optimizer)
    moved = [after.detach() - was for after, was in zip(model.parameters(), before, strict=True)]
    (line,) = run.lines
    assert line["step"] == 1
    assert line["gradient_norm"] == pytest.approx(norm(gradients(model)), rel=1e-5)
    assert line["parameter_norm"] == pytest.approx(norm(before), rel=1e-5)
    assert line["update_ratio"] == pytest.approx(norm(moved) / norm(before), rel=1e-4)
    assert line["vanishing_layers"] == line["exploding_layers"] == 0


def test_every_so_many_steps_from_the_first() -> None:
    run, model = Recorder(), small()
    optimizer = sgd(model)
    watch(run, model, optimizer, every=3)
    train(run, model, optimizer, steps=8)
    assert [line["step"] for line in run.lines] == [1, 4, 7]


def test_without_an_optimizer_each_backward_is_a_step() -> None:
    run, model = Recorder(), small()
    watch(run, model, every=2)
    train(run, model, sgd(model), steps=4)
    assert [line["step"] for line in run.lines] == [1, 3]
    assert "update_ratio" not in run.lines[0] and run.lines[0]["parameter_norm"] > 0


def test_layers_are_chosen_by_pattern_or_by_the_name_of_what_holds_them() -> None:
    run, model = Recorder(), nn.ModuleDict({"body": small(), "head": nn.Linear(4, 1)})
    model.forward = lambda inputs: model["head"](model["body"](inputs))  # type: ignore[method-assign]
    optimizer = sgd(model)
    watch(run, model, optimizer, layers=["body.*", "body"])
    train(run, model, optimizer)
    named = {name for name in run.lines[0] if name.startswith("gradient_norm/")}
    assert named == {"gradient_norm/body.0", "gradient_norm/body.2", "gradient_norm/body"}
    assert run.lines[0]["gradient_norm/body.0"] == pytest.approx(norm(gradients(model["body"][0])), rel=1e-5)
    assert run.lines[0]["gradient_norm/body"] == pytest.approx(norm(gradients(model["body"])), rel=1e-5)
    assert 0 < run.lines[0]["update_ratio/body.2"] < 1


def test_frozen_parameters_count_nowhere_and_count_once_they_are_unfrozen() -> None:
    run, model = Recorder(), small()
    model[0].requires_grad_(False)
    optimizer = sgd(model)
    watch(run, model, optimizer, every=1, layers=["*"])
    train(run, model, optimizer)
    model[0].requires_grad_(True)
    train(run, model, optimizer)
    assert "gradient_norm/0" not in run.lines[0] and "gradient_norm/0" in run.lines[1]
    assert run.lines[0]["parameter_norm"] < run.lines[1]["parameter_norm"] / 1.2


def test_a_tied_weight_counts_once_in_the_total_and_in_each_layer_that_has_it() -> None:
    run, model = Recorder(), nn.Sequential(nn.Embedding(10, 8), nn.Linear(8, 10, bias=False))
    model[1].weight = model[0].weight
    optimizer = sgd(model)
    watch(run, model, optimizer, layers=["*"])
    train(run, model, optimizer, loss=lambda model: model(torch.arange(5)).square().mean())
    whole = norm(gradients(model))
    for name in ("gradient_norm", "gradient_norm/0", "gradient_norm/1"):
        assert run.lines[0][name] == pytest.approx(whole, rel=1e-5)


def test_sparse_gradients_are_summed_before_they_are_measured() -> None:
    run, model = Recorder(), nn.Sequential(nn.Embedding(10, 4, sparse=True))
    optimizer = sgd(model)
    watch(run, model, optimizer, layers=["0"])
    train(run, model, optimizer, loss=lambda model: model(torch.tensor([1, 1, 2])).square().sum())
    assert run.lines[0]["gradient_norm"] == pytest.approx(norm([model[0].weight.grad.to_dense()]), rel=1e-5)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float64])
def test_other_precisions_are_measured_in_full(kind: torch.dtype) -> None:
    run, model = Recorder(), small().to(kind)
    optimizer = sgd(model)
    watch(run, model, optimizer)
    train(run, model, optimizer, loss=lambda model: model(batch().to(kind)).square().mean())
    assert run.lines[0]["gradient_norm"] == pytest.approx(norm(gradients(model)), rel=1e-5)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_gradients_that_are_no_numbers_show(bad: float) -> None:
    run, model = Recorder(), small()
    optimizer = sgd(model)
    watch(run, model, optimizer)
    train(run, model, optimizer, loss=lambda model: (model(batch()) * bad).sum())
    assert not math.isfinite(run.lines[0]["gradient_norm"])
    assert run.lines[0]["exploding_layers"] == 2
    assert {"event": "gradients", "step": 1, "vanishing": [], "exploding": ["0", "2"]} in run.events


def test_layers_that_vanish_are_counted_and_named_when_they_change() -> None:
    run, model = Recorder(), small()
    optimizer = sgd(model, rate=0.0)
    watch(run, model, optimizer, every=1)
    for scale in (1.0, 1e-9, 1e-9, 1.0):
        train(run, model, optimizer, loss=lambda model, scale=scale: model(batch()).sum() * scale)
    assert run.values("vanishing_layers") == [0, 2, 2, 0]
    assert [(event["step"], event["vanishing"]) for event in run.events] == [(2, ["0", "2"]), (4, [])]


def test_updates_of_a_large_tensor_are_told_from_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainvitals.run.watch_norms.MAX_COPIED", 4_000)
    run, model = Recorder(), nn.Sequential(nn.Linear(512, 64), nn.Linear(64, 512))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    watch(run, model, optimizer)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    train(run, model, optimizer, loss=lambda model: model(torch.randn(4, 512)).square().mean())
    moved = [after.detach() - was for after, was in zip(model.parameters(), before, strict=True)]
    assert run.lines[0]["update_ratio"] == pytest.approx(norm(moved) / norm(before), rel=0.05)


def test_values_of_a_second_model_go_by_its_class() -> None:
    run, one, other = Recorder(), small(), nn.Bilinear(8, 8, 4)
    optimizers = sgd(one), sgd(other)
    watch(run, one, optimizers[0], layers=["0"])
    watch(run, other, optimizers[1], layers=["Bilinear"])
    train(run, one, optimizers[0])
    train(run, other, optimizers[1], loss=lambda model: model(batch(), batch()).sum())
    assert "gradient_norm" in run.lines[0] and "gradient_norm/0" in run.lines[0]
    assert "gradient_norm" not in run.lines[1] and run.lines[1]["gradient_norm/Bilinear"] > 0


def test_a_model_that_is_watched_again_is_watched_once_under_its_names() -> None:
    run, model = Recorder(), small()
    optimizer = sgd(model)
    for _ in range(3):
        watch(run, model, optimizer)
        watch(run, small(), None)
    train(run, model, optimizer)
    assert run.phases() == ["forward", "backward"]
    assert len(run.values("gradient_norm")) == 1


@pytest.mark.parametrize(("option", "said"), [
    ({"every": 0}, "every: 0 cannot be used: it is a number of steps, 1 or more"),
    ({"layers": ["blocks.*"]}, "layers: 'blocks.*' names no module of the model; they are named as '0', '1', '2'"),
    ({"optimizer": object()}, "optimizer: object cannot be used: it is no torch.optim.Optimizer"),
    ({"model": None}, "watch: the model is no longer watched, and training goes on"),
])  # fmt: skip
def test_what_cannot_be_used_is_told_and_nothing_fails(
    option: dict[str, object], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    watch(Recorder(), **{"model": small(), **option}).remove()
    assert said in caplog.text
    assert len(caplog.records) == 1


def test_a_real_run_gets_the_norms_and_times_of_its_steps(tmp_path: Path) -> None:
    model = small()
    optimizer = sgd(model)
    with tv.start("watched", dir=tmp_path) as run:
        run.watch(model, optimizer, every=2, layers=["*"])
        for _ in range(3):
            with run.step():
                optimizer.zero_grad()
                model(batch()).square().mean().backward()
                optimizer.step()
            run.log(loss=1.0)
    merged: dict[object, dict[str, object]] = {}
    for line in lines(tmp_path, "training_metrics_*.jsonl"):
        merged.setdefault(line["step"], {}).update(line)
    assert [step for step, line in merged.items() if "gradient_norm" in line] == [1, 3]
    assert all(line["forward_seconds"] > 0 and line["backward_seconds"] > 0 for line in merged.values())
    events = [line for line in lines(tmp_path, "events.rank0.jsonl") if line["event"] == "histograms"]
    assert [event["step"] for event in events] == [1]
    assert not model._forward_hooks and not optimizer._optimizer_step_post_hooks
