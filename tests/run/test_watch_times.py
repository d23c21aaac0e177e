"""Forward and backward are timed where they train, and only there."""

from contextlib import nullcontext
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: make trainers")
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.run.watch_helpers import Recorder, batch, sgd, small, train
from trainvitals.run import watch_parcel, watch_times
from trainvitals.run.watch import watch

BOTH = ["forward", "backward"]


def watched(model: Any) -> Recorder:
    run = Recorder()
    watch(run, model)
    return run


def test_each_step_has_both_times_within_the_time_it_took() -> None:
    model = small()
    run = watched(model)
    began = watch_times.clock()
    train(run, model, sgd(model), steps=3)
    took = watch_times.clock() - began
    assert run.phases() == BOTH * 3
    assert 0 < sum(seconds for _, seconds in run.seconds) < took


def test_evaluation_counts_not_with_no_grad_nor_without() -> None:
    model = small()
    run = watched(model)
    with torch.no_grad():
        model(batch())
    with torch.inference_mode():
        model(batch())
    model.eval()(batch())
    model.train()(batch())
    assert run.seconds == []
    train(run, model, sgd(model))
    assert run.phases() == BOTH


def test_a_model_that_trains_in_eval_mode_counts() -> None:
    model = small().eval()
    run = watched(model)
    train(run, model, sgd(model))
    assert run.phases() == BOTH


def test_two_calls_and_one_backward() -> None:
    model = small()
    run = watched(model)
    train(run, model, sgd(model), loss=lambda model: (model(batch(1)) - model(batch(2))).square().sum())
    assert sorted(run.phases()) == ["backward", "forward", "forward"]


def test_accumulated_gradients_add_up() -> None:
    model = small()
    run = watched(model)
    for seed in range(4):
        model(batch(seed)).sum().backward()
    assert run.phases() == BOTH * 4


def test_two_losses_of_one_forward() -> None:
    model = small()
    run = watched(model)
    output = model(batch())
    output.sum().backward(retain_graph=True)
    output.square().sum().backward()
    assert run.phases() == ["forward", "backward", "backward"]


def test_a_gradient_of_gradients() -> None:
    model, inputs = small(), batch().requires_grad_()
    run = watched(model)
    (slope,) = torch.autograd.grad(model(inputs).sum(), inputs, create_graph=True)
    slope.square().sum().backward()
    assert run.phases()[:2] == BOTH


@pytest.mark.parametrize("reentrant", [True, False])
def test_what_is_computed_anew_for_a_checkpoint_is_backward(reentrant: bool) -> None:
    class Saving(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(8, 8), small()

        def forward(self, inputs: torch.Tensor) -> Any:
            return checkpoint(self.second, self.first(inputs), use_reentrant=reentrant)

    model = Saving()
    run = watched(model)
    train(run, model, sgd(model), steps=2)
    assert run.phases() == BOTH * 2
    assert len(run.lines) == 1 and run.lines[0]["gradient_norm"] > 0


def test_a_model_that_is_a_checkpoint_as_a_whole_counts_its_forward_once() -> None:
    model = small()
    run = watched(model)
    checkpoint(model, batch(), use_reentrant=False).sum().backward()
    assert run.phases() == BOTH


@pytest.mark.parametrize("make", [
    lambda output: {"logits": output, "note": "text"}, lambda output: (output.sum(), [output]), lambda output: output,
], ids=["mapping", "nested", "tensor"])  # fmt: skip
def test_whatever_a_model_returns(make: Any) -> None:
    class Returning(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = small()

        def forward(self, inputs: torch.Tensor) -> Any:
            return make(self.inner(inputs))

    model = Returning()
    run = watched(model)
    output = model(batch())
    next(iter(watch_times.tensors(output))).sum().backward()
    assert run.phases() == BOTH


class Keeper(nn.Module):
    """Returns what it computed once and keeps, beside what it computes each time."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)
        self.kept = torch.ones(4, requires_grad=True) * 2

    def forward(self, inputs: torch.Tensor) -> Any:
        return self.layer(inputs) + self.kept, self.kept


def test_a_part_of_the_graph_that_is_kept_for_ever_gets_one_hook() -> None:
    model = Keeper()
    run = watched(model)
    for _ in range(50):
        output, kept = model(batch())
        (output.sum() + kept.sum()).backward(retain_graph=True)
    assert run.phases() == BOTH * 50
    handle = model.kept.grad_fn.register_prehook(lambda *_: None)
    assert len(handle.hooks_dict_ref()) == 2


def test_two_calls_that_meet_in_the_graph_both_count() -> None:
    model = nn.Tanh()
    run = watched(model)
    inputs = batch().requires_grad_()
    model(model(inputs)).sum().backward()
    assert run.phases() == ["forward", "forward", "backward"]


def test_a_backward_that_fails_leaves_the_next_one_whole() -> None:
    model = small()
    run = watched(model)

    def fail(_: Any) -> None:
        raise ValueError("the user's own")

    output = model(batch())
    model[0].weight.register_hook(fail)
    with pytest.raises(ValueError, match="the user's own"):
        output.sum().backward()
    model[0].weight._backward_hooks.clear()
    train(run, model, sgd(model))
    assert run.phases() == ["forward", *BOTH]


@pytest.mark.parametrize("whole", [True, False])
def test_a_compiled_model_is_timed_from_outside(whole: bool) -> None:
    model = torch.compile(small(), backend="aot_eager", fullgraph=whole)
    run = watched(model)
    train(run, model, sgd(model), steps=2)
    assert run.phases() == BOTH * 2


class Span:
    """Stands in for a GPU's events: they are past when the test says so."""

    past = False

    def close(self) -> None:
        pass

    def seconds(self) -> float | None:
        return 0.25 if self.past else None


def test_a_gpus_times_are_given_when_its_events_are_past(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_times.cuda, "span", Span)
    monkeypatch.setattr(torch.cuda, "device", lambda _: nullcontext())
    monkeypatch.setattr("trainvitals.run.watch._device", lambda _: torch.device("cuda"))
    run, model = Recorder(), small()
    optimizer = sgd(model)
    watch(run, model, optimizer)
    train(run, model, optimizer, steps=2)
    assert run.seconds == []
    monkeypatch.setattr(Span, "past", True)
    train(run, model, optimizer)
    assert run.seconds == [("forward", 0.25), ("backward", 0.25)] * 3


def test_in_a_graph_that_is_being_captured_nothing_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_times.cuda, "span", lambda: None)
    monkeypatch.setattr(torch.cuda, "device", lambda _: nullcontext())
    monkeypatch.setattr("trainvitals.run.watch._device", lambda _: torch.device("cuda"))
    run, model = Recorder(), small()
    watch(run, model)
    train(run, model, sgd(model))
    assert run.seconds == []


class Event:
    """Stands in for the event behind a copy from a GPU."""

    past = False

    def query(self) -> bool:
        return self.past


def test_norms_from_a_gpu_are_logged_under_their_step_when_the_copy_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = watch_parcel._sent
    monkeypatch.setattr(watch_parcel, "_sent", lambda *given: sent(*given)._replace(event=Event()))
    run, model = Recorder(), small()
    optimizer = sgd(model)
    watching = watch(run, model, optimizer, every=2)
    train(run, model, optimizer, steps=4)
    assert run.lines == []
    monkeypatch.setattr(Event, "past", True)
    watching.remove()
    assert [line["step"] for line in run.lines] == [1, 3]
    assert run.lines[0]["gradient_norm"] > 0
