"""A watched training is the training that it would have been, and a watched model can be used as any other."""

import copy
import gc
import io
import pickle
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: make trainers")
import torch
from torch import nn

from tests.run.watch_helpers import Recorder, batch, sgd, small, train
from trainvitals.run.watch import Watch, watch


class Net(nn.Module):
    """Of all sorts: dropout, batch statistics, attention, changes in place, and a view that is returned."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(inplace=True), nn.BatchNorm1d(16), nn.Dropout(0.3))
        self.attention = nn.MultiheadAttention(16, 2, dropout=0.1, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, inputs: torch.Tensor) -> Any:
        hidden = self.body(inputs)[None]
        return self.head(self.attention(hidden, hidden, hidden)[0][0])[:, 1:]


def trained(watched: bool, optimizer: str) -> dict[str, Any]:
    torch.manual_seed(3)
    model = Net()
    made = getattr(torch.optim, optimizer)(model.parameters(), lr=0.05)
    if watched:
        watch(Recorder(), model, made, every=2, layers=["*"], activations=True, attention=True)
    for _ in range(7):
        made.zero_grad()
        model(torch.randn(6, 8)).add_(1).square().mean().backward()
        made.step()
    return {**model.state_dict(), "random": torch.randn(3)}


@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_weights_and_random_numbers_are_bit_for_bit_the_same(optimizer: str) -> None:
    plain, watched = trained(False, optimizer), trained(True, optimizer)
    assert all(torch.equal(value, watched[name]) for name, value in plain.items())


def everything(model: Any = None, **options: Any) -> tuple[Recorder, Any, torch.optim.Optimizer, Watch]:
    run, model = Recorder(), model or Net()
    optimizer = sgd(model)
    options = {"every": 1, "layers": ["*"], "activations": True, **options}
    return run, model, optimizer, watch(run, model, optimizer, **options)


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.startswith("trainvitals")]


def hooks_of(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


def test_a_copy_is_not_watched_and_works() -> None:
    run, model, optimizer, _ = everything()
    train(run, model, optimizer)
    copied, copied_optimizer = copy.deepcopy(model), copy.deepcopy(optimizer)
    before = len(run.lines), len(run.seconds)
    train(Recorder(), copied, copied_optimizer)
    assert (len(run.lines), len(run.seconds)) == before
    train(run, model, optimizer)
    assert len(run.lines) == before[0] + 1


def test_a_model_and_its_optimizer_are_saved_whole_and_read_where_we_are_not_installed(tmp_path: Path) -> None:
    run, model, optimizer, _ = everything(small())
    train(run, model, optimizer)
    torch.save({"model": model, "optimizer": optimizer}, tmp_path / "whole.pt")
    (tmp_path / "whole.pickle").write_bytes(pickle.dumps(model))
    script = (
        "import pickle, sys, torch\n"
        "sys.modules['trainvitals'] = None\n"
        "for model in (torch.load('whole.pt', weights_only=False)['model'], pickle.load(open('whole.pickle', 'rb'))):\n"
        "    model(torch.ones(2, 8)).sum().backward()\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, timeout=60, check=True)


def test_weights_that_are_saved_alone_know_nothing_of_it() -> None:
    _, model, _, _ = everything(small())
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    assert set(torch.load(file, weights_only=True)) == set(small().state_dict())


def test_after_remove_nothing_of_it_is_left() -> None:
    run, model, optimizer, watching = everything()
    output = model(batch())
    watching.remove()
    output.sum().backward()
    optimizer.step()
    assert hooks_of(model) == 0 and not optimizer._optimizer_step_pre_hooks
    assert (run.lines, run.seconds) == ([], [])
    alive = weakref.ref(model), weakref.ref(model.head.weight)
    gc.disable()
    try:
        del model, optimizer, output
        assert [each() for each in alive] == [None, None]
    finally:
        gc.enable()


def test_a_watch_keeps_no_model_alive() -> None:
    _, model, optimizer, watching = everything()
    alive = weakref.ref(model)
    del model, optimizer
    gc.collect()
    assert alive() is None
    watching.remove()


@pytest.mark.parametrize("broken", [
    "watch_times.Times.forward_begins", "watch_times.Times.forward_ends", "watch_times.Times._backward_reaches",
    "watch_times.Times._backward_ends", "watch_sample.put_norms", "watch_sample.put_histograms",
    "watch_sample.Sample.before_step", "watch_sample.Sample.after_step", "watch_inside.Inside._activation",
    "watch.report", "watch_parcel.Parcel.values",
])  # fmt: skip
def test_what_fails_of_ours_is_one_warning_and_the_end_of_the_watch(
    broken: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("ours is broken")

    plain = trained(False, "SGD")
    monkeypatch.setattr(f"trainvitals.run.{broken}", fail)
    watched = trained(True, "SGD")
    assert all(torch.equal(value, watched[name]) for name, value in plain.items())
    assert warned(caplog) == [
        "watch: the model is no longer watched, and training goes on: RuntimeError: ours is broken"
    ]


def test_a_run_that_fails_ends_the_watch_and_not_the_training(caplog: pytest.LogCaptureFixture) -> None:
    run, model, optimizer, _ = everything(small())
    run.log = None  # type: ignore[assignment, method-assign]
    train(run, model, optimizer, steps=3)
    assert len(warned(caplog)) == 1 and hooks_of(model) == 0


def test_an_exception_in_the_users_forward_is_the_users(caplog: pytest.LogCaptureFixture) -> None:
    run, model, optimizer, _ = everything(small())
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        model(torch.ones(2, 3))
    with torch.no_grad():
        model.eval()(batch() * 1000)
    train(run, model.train(), optimizer)
    assert 0 < run.lines[0]["activation_std/0"] < 10
    assert hooks_of(model) == 2 and warned(caplog) == []


def test_an_optimizer_whose_steps_are_not_seen_ends_the_watch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("trainvitals.run.watch_rounds.MAX_BACKWARDS", 5)
    _, model, _, _ = everything(small())
    for _ in range(10):
        model(batch()).sum().backward()
    assert len(warned(caplog)) == 1 and "the optimizer's steps are not seen" in warned(caplog)[0]


@pytest.mark.parametrize("compiled", [
    lambda model: torch.compile(model, backend="aot_eager", fullgraph=True),
    lambda model: model.compile(backend="aot_eager", fullgraph=True) or model,
], ids=["around", "in place"])  # fmt: skip
def test_a_model_that_is_compiled_once_it_is_watched(compiled: Any, caplog: pytest.LogCaptureFixture) -> None:
    run, model, optimizer, _ = everything(small(), activations=False)
    train(run, compiled(model), optimizer, steps=2)
    assert [line["gradient_norm"] > 0 for line in run.lines] == [True, True]
    assert warned(caplog) == []


def test_inside_a_compiled_model_nothing_is_looked_for(caplog: pytest.LogCaptureFixture) -> None:
    run, model, optimizer, _ = everything(torch.compile(small(), backend="aot_eager"))
    train(run, model, optimizer, steps=2)
    assert not [name for name in run.lines[0] if name.startswith("activation")]
    assert "nothing can be seen inside a compiled model" in warned(caplog)[0] and len(warned(caplog)) == 1


def test_tracing_exporting_and_functional_calls() -> None:
    run, model, optimizer, _ = everything(small())
    inputs = batch()
    torch.export.export(model, (inputs,))
    torch.jit.trace(model.eval(), inputs)
    weights = dict(model.train().named_parameters())

    def loss(weights: Any, sample: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, weights, (sample[None],)).square().sum()

    torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, inputs)
    train(run, model, optimizer)
    assert run.lines[-1]["gradient_norm"] > 0


def test_scripting_a_watched_model_says_what_to_do() -> None:
    *_, model, _, watching = everything(small())
    with pytest.raises(AttributeError, match=r"watching\.remove\(\)"):
        torch.jit.script(model)
    watching.remove()
    assert torch.equal(torch.jit.script(model)(batch()), model(batch()))


def test_a_layer_inside_a_watched_model_keeps_torchs_fast_path() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    padding = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    inputs = torch.randn(2, 6, 8)
    with torch.no_grad():
        before = model(inputs, src_key_padding_mask=padding)
        everything(model, attention=True)
        assert torch.equal(model(inputs, src_key_padding_mask=padding), before)
    assert hooks_of(model) == 2
