"""A model's inference, measured: figures that can be checked by hand, and a training that goes on as if nothing was."""

import gc
import warnings
import weakref
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: make trainers")
import torch
from torch import nn

import trainvitals as tv
from tests.run.watch_helpers import Recorder, batch, sgd, small, train
from trainvitals.journal.record import decode
from trainvitals.run import inference_quantized
from trainvitals.run.inference import profile_inference

pytestmark = pytest.mark.filterwarnings("error")


def wide(layers: int = 4) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(256, 256) for _ in range(layers)])


def profiled(model: Any, inputs: Any, **options: Any) -> dict[str, Any]:
    return profile_inference(Recorder(), model, inputs, **{"runs": 10, "warmup": 1, **options})


def test_latency_throughput_size_and_memory() -> None:
    told = profiled(wide(), torch.randn(8, 256))
    assert 0 < told["latency_p50_ms"] <= told["latency_p90_ms"] <= told["latency_p99_ms"]
    fastest, slowest = 8 / told["latency_p99_ms"] * 1e3, 8e6
    assert fastest <= told["throughput_samples_per_sec"] < slowest
    assert told["model_size_mb"] == 4 * (256 * 256 + 256) * 4 / 2**20
    # A layer's input and its output.
    assert told["peak_memory_mb"] == pytest.approx(told["model_size_mb"] + 2 * 8 * 256 * 4 / 2**20, rel=1e-3)
    assert (told["device"], told["batch_size"], told["runs"]) == ("cpu", 8, 10)


def test_the_same_in_8_bits_and_how_far_it_is_off() -> None:
    model, inputs = wide(1), torch.randn(64, 256)
    told = profiled(model, inputs)
    assert told["quantization_ratio"] == pytest.approx(0.25, abs=0.01)
    assert told["quantized_model_size_mb"] == pytest.approx(told["model_size_mb"] / 4, rel=0.05)
    assert told["quantized_latency_p50_ms"] > 0 and told["quantized_peak_memory_mb"] < told["peak_memory_mb"]
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        copied = torch.ao.quantization.quantize_dynamic(wide(1).eval())
        one, other = model(inputs), copied(inputs)
    assert told["difference_mean"] == pytest.approx(float((one - other).abs().mean()), rel=1e-3)
    assert told["difference_max"] == pytest.approx(float((one - other).abs().max()), rel=1e-3)
    assert told["top1_agreement"] == pytest.approx(float((one.argmax(-1) == other.argmax(-1)).float().mean()))
    assert 0.5 < told["top1_agreement"] <= 1
    assert told["repeat_difference"] == 0


@pytest.mark.parametrize("model", [
    nn.LSTM(8, 8), nn.Sequential(nn.Linear(8, 8), nn.GRU(8, 8)),
    nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2),
], ids=["recurrent", "mixed", "attention"])  # fmt: skip
def test_models_of_several_kinds_are_quantised(model: nn.Module) -> None:
    told = profiled(model, torch.randn(3, 4, 8))
    assert "quantized_why_not" not in told
    assert 0 < told["quantization_ratio"] < 1 and told["difference_max"] < 0.5


def test_where_nothing_can_be_quantised_that_is_said_and_the_rest_is_told() -> None:
    told = profiled(nn.Sequential(nn.Conv2d(3, 4, 3)), torch.randn(2, 3, 8, 8))
    assert told["latency_p50_ms"] > 0
    assert told["quantized_latency_p50_ms"] is told["quantization_ratio"] is told["top1_agreement"] is None
    assert "no linear or recurrent layers" in told["quantized_why_not"]


def test_where_quantisation_fails_that_is_said() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(8, 4)

        def forward(self, inputs: torch.Tensor) -> Any:
            return self.inner(inputs.to(self.inner.weight.dtype))

    told = profiled(Model(), batch())
    assert told["latency_p50_ms"] > 0 and told["quantized_model_size_mb"] is None
    assert told["quantized_why_not"].startswith("AttributeError: ")


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = small()

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": left.sum(), "logits": self.inner(left - right)}


@pytest.mark.parametrize("inputs", [
    (batch(1), batch(2)), {"left": batch(1), "right": batch(2)},
], ids=["by place", "by name"])  # fmt: skip
def test_inputs_by_place_or_by_name_and_logits_among_the_outputs(inputs: Any) -> None:
    told = profiled(Named(), inputs)
    assert told["batch_size"] == 6 and 0 < told["difference_max"] < 0.2
    assert told["top1_agreement"] is not None


def test_a_model_in_16_bits() -> None:
    told = profiled(wide().to(torch.bfloat16), torch.randn(8, 256, dtype=torch.bfloat16))
    assert told["quantization_ratio"] == pytest.approx(0.5, abs=0.02)
    assert told["difference_max"] < 1


def test_the_same_input_twice_tells_of_chance() -> None:
    class Chance(nn.Module):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return inputs + torch.rand_like(inputs)

    assert profiled(Chance(), batch())["repeat_difference"] > 0


def state(model: nn.Module) -> dict[str, Any]:
    return {"modes": [module.training for module in model.modules()], "grad": torch.is_grad_enabled(),
            "random": torch.get_rng_state().tolist(), "fast": torch.backends.mha.get_fastpath_enabled(),
            "weights": [parameter.detach().clone().tolist() for parameter in model.parameters()],
            "buffers": [(id(buffer), buffer.tolist()) for buffer in model.buffers()],
            "gradients": [None if each.grad is None else each.grad.tolist() for each in model.parameters()],
            "hooks": [len(module._forward_hooks) for module in model.modules()]}  # fmt: skip


@pytest.mark.parametrize("inputs", [batch(), torch.ones(2, 3)], ids=["done", "failed"])
def test_everything_is_as_it_was(inputs: torch.Tensor) -> None:
    model = nn.Sequential(nn.Dropout(), small().eval(), nn.BatchNorm1d(4))
    before = state(model)
    failed = False
    try:
        profiled(model, inputs)
    except RuntimeError:
        failed = True
    assert failed == (inputs.shape[-1] == 3)
    assert state(model) == before
    train(Recorder(), model, sgd(model))


class Counting(nn.Module):
    """Keeps count of its calls in several ways, and its outputs depend on it."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("again", torch.zeros(()))
        self.register_buffer("last", None)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.again = self.again + 1
        self.last = inputs
        return self.inner(inputs) * self.calls + self.again


def test_what_a_model_counts_in_its_buffers_is_as_it_was_and_gradients_are_too() -> None:
    model = Counting()
    model(batch()).sum().backward()
    before, last = state(model), model.last
    profiled(model, batch())
    assert state(model) == before and model.last is last
    assert float(model.calls) == float(model.again) == 1  # type: ignore[operator,arg-type]


def test_a_graph_that_waits_for_its_backward_pass_is_not_spoilt() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8).eval())
    loss = model(batch()).sum()
    profiled(model, batch())
    loss.backward()


@pytest.mark.parametrize("shape", ["tensor", "tuple", "mapping"])
def test_a_model_that_writes_into_its_inputs_has_the_same_each_time_and_never_the_callers(shape: str) -> None:
    class Adds(nn.Module):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return inputs.add_(1)

    given = torch.zeros(2, 3)
    inputs = {"tensor": given, "tuple": (given,), "mapping": {"inputs": given}}[shape]
    assert profiled(Adds(), inputs)["repeat_difference"] == 0
    assert given.tolist() == torch.zeros(2, 3).tolist()


def test_what_a_model_keeps_from_it_can_be_trained_with() -> None:
    class Keeps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.kept = nn.Linear(8, 8), None

        def forward(self, inputs: torch.Tensor) -> Any:
            if self.kept is None:
                self.kept = torch.ones(8) * 2
            return self.inner(inputs) * self.kept

    model = Keeps()
    profiled(model, batch())
    train(Recorder(), model, sgd(model))


def test_of_the_copy_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    copied = inference_quantized._on_the_processor

    def seen(model: Any) -> Any:
        made.append(weakref.ref(found := copied(model)))
        return found

    monkeypatch.setattr(inference_quantized, "_on_the_processor", seen)
    profiled(wide(), torch.randn(8, 256))
    gc.collect()
    assert [each() for each in made] == [None]


def test_a_watched_model_is_profiled_and_none_of_it_counts_as_training() -> None:
    from trainvitals.run.watch import watch

    run, model = Recorder(), small()
    watch(run, model, sgd(model))
    profile_inference(run, model, batch(), runs=3)
    assert (run.seconds, run.lines) == ([], [])
    assert [event["event"] for event in run.events] == ["inference"]


def test_a_run_writes_it_down_and_a_failure_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with tv.start("profiled", dir=tmp_path) as run:
        told = run.profile_inference(small(), batch(), runs=3)
        assert run.profile_inference(small(), batch(), runs=0) == {}
        folder = run.folder
    assert folder is not None
    events = [decode(line) for line in (folder / "events.rank0.jsonl").read_bytes().splitlines()]
    written = next(event for event in events if event["event"] == "inference")
    assert told.items() <= written.items()
    assert "runs: '0' cannot be used: it is how often the model is asked, 1 or more" in caplog.text
