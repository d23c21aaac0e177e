"""Whatever the optimizer is called with or by: gradients as backward left them, counted in steps of the optimizer."""

from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: make trainers")
import torch

from tests.run.watch_helpers import Recorder, batch, gradients, norm, sgd, small, train
from trainvitals.run.watch import watch


def loss(model: Any, seed: int = 1) -> torch.Tensor:
    return model(batch(seed)).square().mean()


def test_accumulated_gradients_are_measured_whole_and_a_step_counts_once() -> None:
    run, model = Recorder(), small()
    optimizer = sgd(model)
    watch(run, model, optimizer, every=2)
    wanted = []
    for _ in range(4):
        optimizer.zero_grad()
        for seed in range(3):
            loss(model, seed).backward()
        wanted.append(norm(gradients(model)))
        optimizer.step()
    assert run.values("gradient_norm") == pytest.approx(wanted[::2], rel=1e-5)


def test_the_norm_is_that_before_clipping() -> None:
    run, model = Recorder(), small()
    optimizer = sgd(model)
    watch(run, model, optimizer, every=1)
    for _ in range(3):
        optimizer.zero_grad()
        loss(model).backward()
        whole = float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3))
        optimizer.step()
        assert run.lines[-1]["gradient_norm"] == pytest.approx(whole, rel=1e-5)


def test_a_backward_less_than_usual_is_measured_at_the_step() -> None:
    run, model = Recorder(), small()
    optimizer = sgd(model)
    watch(run, model, optimizer, every=1)
    for backwards in (3, 1, 2):
        optimizer.zero_grad()
        for seed in range(backwards):
            loss(model, seed).backward()
        whole = norm(gradients(model))
        optimizer.step()
        assert run.lines[-1]["gradient_norm"] == pytest.approx(whole, rel=1e-5)


@pytest.mark.parametrize(("clipped", "fused"), [(False, False), (True, False), (False, True), (True, True)])
def test_a_scalers_factor_is_taken_out(clipped: bool, fused: bool) -> None:
    run, model = Recorder(), small()
    optimizer = torch.optim.Adam(model.parameters(), fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    watch(run, model, optimizer, every=1)
    for _ in range(3):
        wanted = norm(torch.autograd.grad(loss(model), list(model.parameters())))
        optimizer.zero_grad()
        scaler.scale(loss(model)).backward()
        if clipped:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        scaler.step(optimizer)
        scaler.update()
        assert run.lines[-1]["gradient_norm"] == pytest.approx(wanted, rel=1e-4)


def test_a_step_that_a_scaler_leaves_out_is_none() -> None:
    run, model = Recorder(), small()
    optimizer, scaler = sgd(model), torch.amp.GradScaler("cpu", init_scale=4.0)
    watch(run, model, optimizer, every=1)
    for factor in (float("inf"), 1.0):
        run.number += 1
        optimizer.zero_grad()
        scaler.scale(loss(model) * factor).backward()
        scaler.step(optimizer)
        scaler.update()
    assert [line["step"] for line in run.lines] == [2]
    assert run.lines[0]["gradient_norm"] == pytest.approx(norm(gradients(model)), rel=1e-4)


def test_a_closure_that_does_the_backward_itself() -> None:
    run, model = Recorder(), small()
    optimizer = sgd(model)
    watch(run, model, optimizer, every=1)
    for seed in range(3):

        def closure(seed: int = seed) -> torch.Tensor:
            optimizer.zero_grad()
            found = loss(model, seed)
            found.backward()
            return found

        optimizer.step(closure)
        assert run.lines[-1]["gradient_norm"] == pytest.approx(norm(gradients(model)), rel=1e-5)
        assert run.lines[-1]["update_ratio"] > 0


def test_lbfgs_which_asks_its_closure_as_often_as_it_likes() -> None:
    run, model = Recorder(), small()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=5)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        found = loss(model)
        found.backward()
        return found

    watch(run, model, optimizer, every=2)
    for _ in range(4):
        run.number += 1
        optimizer.step(closure)
    assert [line["step"] for line in run.lines] == [1, 3]
    assert all(line["gradient_norm"] > 0 and line["update_ratio"] > 0 for line in run.lines)


def test_a_model_whose_parts_are_called_instead_of_it_is_measured_at_the_step() -> None:
    run, model = Recorder(), small()
    optimizer = sgd(model)
    watch(run, model, optimizer)
    train(run, model, optimizer, loss=lambda model: model[2](model[0](batch())).sum())
    assert run.seconds == []
    assert run.lines[0]["gradient_norm"] == pytest.approx(norm(gradients(model)), rel=1e-5)


def test_several_optimizers_of_one_model_make_one_step_together() -> None:
    run, model = Recorder(), small()
    optimizers = [sgd(model[0]), torch.optim.Adam(model[2].parameters())]
    watch(run, model, optimizers, every=2, layers=["0", "2"])
    for _ in range(4):
        run.number += 1
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss(model).backward()
        for optimizer in optimizers:
            optimizer.step()
    assert [line["step"] for line in run.lines] == [1, 3]
    assert all(line["update_ratio/0"] > 0 and line["update_ratio/2"] > 0 for line in run.lines)


def test_an_optimizer_that_steps_less_often_holds_up_nothing() -> None:
    run, model = Recorder(), small()
    often, seldom = sgd(model[0]), sgd(model[2])
    watch(run, model, [often, seldom], every=1, layers=["2"])
    for run.number in range(1, 7):
        for optimizer in (often, seldom):
            optimizer.zero_grad()
        loss(model, run.number).backward()
        whole = norm(gradients(model))
        often.step()
        if run.number % 3 == 0:
            seldom.step()
            assert run.lines[-1]["gradient_norm"] == pytest.approx(whole, rel=1e-5)
    assert [line["step"] for line in run.lines] == [1, 2, 3, 4, 5, 6]
    assert [line["step"] for line in run.lines if "update_ratio/2" in line] == [3, 6]


def test_an_optimizer_within_a_wrapper_is_found() -> None:
    class Wrapper:
        def __init__(self, optimizer: torch.optim.Optimizer) -> None:
            self.optimizer = optimizer

    run, model = Recorder(), small()
    optimizer = sgd(model)
    watch(run, model, Wrapper(Wrapper(optimizer)))
    train(run, model, optimizer)
    assert run.lines[0]["update_ratio"] > 0
