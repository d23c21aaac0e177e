"""run.profile_inference(model, inputs): how fast a model answers, and what it would be with its weights in 8 bits.

{"latency_p50_ms": 4.1, "latency_p90_ms": 4.4, "latency_p99_ms": 6.0, "throughput_samples_per_sec": 7800.0,
 "peak_memory_mb": 61.2, "model_size_mb": 50.3, "quantized_latency_p50_ms": 2.2, "quantized_model_size_mb": 13.1,
 "quantization_ratio": 0.26, "difference_mean": 0.01, "difference_max": 0.2, "top1_agreement": 0.98,
 "repeat_difference": 0.0}

The training goes on with what it had: modes, buffers, gradients, random numbers, and the device that everything is on.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter as clock
from typing import Any

from trainvitals.errors import SettingError
from trainvitals.run.inference_memory import model_bytes, peak_bytes
from trainvitals.run.inference_outputs import difference, main_output, top1_agreement
from trainvitals.run.inference_quantized import quantized
from trainvitals.run.watch_layers import alone
from trainvitals.run.watch_times import tensors

torch: Any = sys.modules["torch"]

Call = Callable[[], Any]
Asking = Callable[[], Call]
Results = dict[str, Any]
# Where it is, its name, itself, and what it held.
_Buffer = tuple[dict[str, Any], str, Any, Any]
MIB = 2**20
# Of the quantised model where there is none, as of the other.
_MEASURED = ("latency_p50_ms", "latency_p90_ms", "latency_p99_ms", "throughput_samples_per_sec", "peak_memory_mb",
             "model_size_mb")  # fmt: skip
_COMPARED = ("quantization_ratio", "difference_mean", "difference_max", "top1_agreement")


def profile_inference(run: Any, model: Any, inputs: Any, *, runs: int = 50, warmup: int = 5) -> Results:
    """`inputs` are a tensor, a tuple of what the model takes, or a dictionary of it by name."""
    if runs < 1:
        raise SettingError("runs", runs, "it is how often the model is asked, 1 or more")
    model = alone(model)
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    with _as_it_was(model, device):
        ask = _asking(model, inputs, device)
        results: Results = {"device": str(device), "batch_size": batch_size(inputs), "runs": runs}
        results |= _measured(model, ask, device, results, warmup)
        output, again = ask()(), ask()()
        results["repeat_difference"] = difference(main_output(output), main_output(again))[1]
        results |= _in_8_bits(model, inputs, main_output(output), results, warmup)
    run.write_event("inference", **results)
    return results


def _in_8_bits(model: Any, inputs: Any, output: Any, whole: Results, warmup: int) -> Results:
    """Dynamic quantisation works on the processor only: there the copy is made, and measured."""
    found: Results = {f"quantized_{name}": None for name in _MEASURED} | dict.fromkeys(_COMPARED)
    device = torch.device("cpu")
    try:
        with quantized(model) as small:
            ask = _asking(small, inputs, device, torch.float32)
            told = _measured(small, ask, device, whole, warmup)
            found |= {f"quantized_{name}": value for name, value in told.items()}
            found["quantization_ratio"] = told["model_size_mb"] / whole["model_size_mb"]
            found |= _compared(output, main_output(ask()()))
    except Exception as error:
        found["quantized_why_not"] = f"{type(error).__name__}: {error}"
    return found


def _compared(output: Any, other: Any) -> Results:
    mean, largest = difference(output, other)
    return {"difference_mean": mean, "difference_max": largest, "top1_agreement": top1_agreement(output, other)}


def _measured(model: Any, ask: Asking, device: Any, asked: Results, warmup: int) -> Results:
    runs, batch = asked["runs"], asked["batch_size"]
    for _ in range(warmup):
        ask()()
    taken = sorted(_timed(ask(), device) for _ in range(runs))
    peak = peak_bytes(ask(), model, device)
    return {
        **{f"latency_p{share}_ms": taken[-(-share * runs // 100) - 1] * 1e3 for share in (50, 90, 99)},
        "throughput_samples_per_sec": None if batch is None else batch * runs / sum(taken),
        "peak_memory_mb": None if peak is None else peak / MIB,
        "model_size_mb": model_bytes(model) / MIB,
    }


def _timed(call: Call, device: Any) -> float:
    """A GPU is waited for: this is an explicit call, outside of any step."""
    _wait(device)
    began = clock()
    call()
    _wait(device)
    return clock() - began


def _wait(device: Any) -> None:
    if device.type != "cpu":
        torch.get_device_module(device).synchronize(device)


def _asking(model: Any, inputs: Any, device: Any, floating: Any = None) -> Asking:
    """Each call has inputs of its own, for a model may write into them."""
    return lambda: _call(model, moved(inputs, device, floating))


def _call(model: Any, inputs: Any) -> Call:
    if isinstance(inputs, Mapping):
        return lambda: model(**inputs)
    if isinstance(inputs, (tuple, list)):
        return lambda: model(*inputs)
    return lambda: model(inputs)


def moved(inputs: Any, device: Any, floating: Any = None) -> Any:
    """A copy where the model is; the user's own stay where they are."""
    if isinstance(inputs, torch.Tensor):
        return inputs.detach().to(device, floating if inputs.is_floating_point() else None, copy=True)
    if isinstance(inputs, Mapping):
        return {name: moved(value, device, floating) for name, value in inputs.items()}
    if isinstance(inputs, (tuple, list)):
        return tuple(moved(value, device, floating) for value in inputs)
    return inputs


def batch_size(inputs: Any) -> int | None:
    """By torch's custom the first dimension of the first tensor."""
    first = next(tensors(inputs), None)
    return int(first.shape[0]) if first is not None and first.dim() else None


@contextmanager
def _as_it_was(model: Any, device: Any) -> Iterator[None]:
    """No inference mode: what a model keeps from it could not be trained with."""
    modes = [(module, module.training) for module in model.modules()]
    buffers = _buffers(model)
    gpus = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=gpus), torch.no_grad():
        try:
            model.eval()
            yield
        finally:
            for module, mode in modes:
                module.training = mode
            _put_back(buffers)


def _buffers(model: Any) -> list[_Buffer]:
    """What they hold is kept beside the processor: a GPU may have no room for it, and its peak is measured."""
    named = [(module._buffers, name, held) for module in model.modules() for name, held in module._buffers.items()]
    return [(place, name, held, None if held is None or held.is_inference() else held.detach().to("cpu", copy=True))
            for place, name, held in named]  # fmt: skip


def _put_back(buffers: list[_Buffer]) -> None:
    """By way of `data`: a graph that still waits for its backward pass finds them as it left them."""
    for place, name, held, content in buffers:
        place[name] = held
        if content is not None:
            held.data.copy_(content)
