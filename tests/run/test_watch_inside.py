"""Activations, attention and histograms: what is told of the layers that are named, or why not."""

import math
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: make trainers")
import torch
from torch import nn

from tests.run.watch_helpers import Recorder, batch, gradients, sgd, small, train
from trainvitals.run.watch import watch


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.startswith("trainvitals")]


def test_activations_of_the_layers_that_are_named() -> None:
    run, model = Recorder(), small()
    optimizer = sgd(model)
    watch(run, model, optimizer, layers=["0", "1"], activations=True)
    with torch.no_grad():
        wanted = model[0](batch())
    train(run, model, optimizer)
    line = run.lines[0]
    assert line["activation_mean/0"] == pytest.approx(float(wanted.mean()), rel=1e-4)
    assert line["activation_std/0"] == pytest.approx(float(wanted.std(correction=0)), rel=1e-4)
    assert line["activation_zeros/0"] == 0
    assert line["activation_zeros/1"] == pytest.approx(float((wanted <= 0).double().mean()))
    assert "activation_mean/2" not in line


def test_activations_are_those_of_a_training_forward_once_a_sample() -> None:
    run, model = Recorder(), small()
    optimizer = sgd(model, rate=0.0)
    watch(run, model, optimizer, every=2, activations=True)
    for _ in range(3):
        with torch.no_grad():
            model.eval()(batch() * 100)
        train(run, model.train(), optimizer, loss=lambda model: (model(batch()) + model(batch() * 50)).sum())
    assert len(run.values("activation_std/0")) == 2
    assert all(deviation < 5 for deviation in run.values("activation_std/0"))


def test_between_samples_there_are_no_hooks_on_the_layers() -> None:
    run, model = Recorder(), small()
    optimizer = sgd(model)
    watch(run, model, optimizer, every=2, activations=True)
    train(run, model, optimizer)
    assert [len(layer._forward_hooks) for layer in model] == [0, 0, 0]


class Attending(nn.Module):
    def __init__(self, *, tells: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.tells = tells
        with torch.no_grad():
            self.attention.in_proj_weight.zero_()  # attends to all alike

    def forward(self, inputs: torch.Tensor) -> Any:
        return self.attention(inputs, inputs, inputs, need_weights=self.tells)[0]


def test_attention_to_everything_alike_has_the_entropy_of_it() -> None:
    run, model = Recorder(), Attending(tells=True)
    optimizer = sgd(model)
    watch(run, model, optimizer, attention=True)
    train(run, model, optimizer, loss=lambda model: model(batch()[None]).sum())
    assert run.lines[0]["attention_entropy/attention"] == pytest.approx(math.log(6), rel=1e-5)
    assert run.lines[0]["attention_entropy"] == pytest.approx(math.log(6), rel=1e-5)


def test_where_attention_is_not_to_be_had_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    run, model = Recorder(), Attending(tells=False)
    optimizer = sgd(model)
    watch(run, model, optimizer, every=1, attention=True)
    train(run, model, optimizer, steps=3, loss=lambda model: model(batch()[None]).sum())
    assert len(run.lines) == 3 and "attention_entropy" not in run.lines[0]
    assert len(warned(caplog)) == 1 and "need_weights=True" in warned(caplog)[0]


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "t5"])
def test_attention_of_transformers(kind: str) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: make trainers")
    made = {
        "bert": lambda: transformers.BertForSequenceClassification(transformers.BertConfig(
            vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16)),
        "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=50, n_embd=16, n_layer=2, n_head=2, n_positions=16, bos_token_id=0, eos_token_id=0)),
        "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16)),
        "t5": lambda: transformers.T5ForConditionalGeneration(transformers.T5Config(
            vocab_size=50, d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2, decoder_start_token_id=0)),
    }  # fmt: skip
    run, model = Recorder(), made[kind]()
    model.set_attn_implementation("eager")
    model.train()
    optimizer = sgd(model)
    watch(run, model, optimizer, attention=True)
    tokens = torch.arange(8)[None]
    labels = torch.tensor([1]) if kind == "bert" else tokens
    train(run, model, optimizer,
          loss=lambda model: model(input_ids=tokens, labels=labels, output_attentions=True).loss)  # fmt: skip
    assert run.phases() == ["forward", "backward"]
    assert len([name for name in run.lines[0] if name.startswith("attention_entropy/")]) == (6 if kind == "t5" else 2)
    # Dropout takes some of it away: less than of all alike, and more than nothing.
    assert 0.3 < run.lines[0]["attention_entropy"] <= math.log(8) + 0.3


def test_histograms_of_the_layers_that_are_named_at_each_tenth_sample() -> None:
    run, model = Recorder(), small()
    optimizer = sgd(model)
    watch(run, model, optimizer, every=2, layers=["2"])
    before = torch.cat([parameter.detach().reshape(-1).clone() for parameter in model[2].parameters()])
    train(run, model, optimizer)
    moved = torch.cat([gradient.reshape(-1) for gradient in gradients(model[2])])
    train(run, model, optimizer, steps=21)
    assert [event["step"] for event in run.events] == [1, 21]
    told = run.events[0]["histograms"]
    assert set(told) == {"parameters/2", "gradients/2"}
    for name, values in (("parameters/2", before), ("gradients/2", moved)):
        counted, edges = torch.histogram(values, 30)
        assert told[name]["counts"] == pytest.approx(counted.tolist(), abs=1) and sum(told[name]["counts"]) == 68
        assert told[name]["edges"] == pytest.approx(edges.tolist(), abs=1e-5)
        assert (told[name]["min"], told[name]["max"]) == pytest.approx((float(values.min()), float(values.max())))
        assert told[name]["sum"] == pytest.approx(float(values.sum()), abs=1e-4)
        assert told[name]["sum_squares"] == pytest.approx(float(values.square().sum()), rel=1e-4)


def test_a_histogram_counts_what_is_finite_and_takes_equal_values() -> None:
    run, model = Recorder(), nn.Sequential(nn.Linear(3, 1, bias=False))
    optimizer = sgd(model, rate=0.0)
    watch(run, model, optimizer, layers=["0"])
    with torch.no_grad():
        model[0].weight.fill_(2.0)
    train(run, model, optimizer, loss=lambda model: model(torch.tensor([[1.0, math.nan, math.inf]])).sum())
    told = run.events[-1]["histograms"]
    assert sum(told["parameters/0"]["counts"]) == 3 and told["parameters/0"]["min"] == 2.0
    assert told["parameters/0"]["edges"][0] < 2.0 < told["parameters/0"]["edges"][-1]
    assert sum(told["gradients/0"]["counts"]) == 1 and told["gradients/0"]["sum"] == 1.0
