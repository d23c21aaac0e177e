"""The examples on Hugging Face's libraries: the Trainer, and QLoRA with metrics and a summary."""

import json
import math
import re
import signal
import subprocess
from contextlib import ExitStack

import pytest

from tests.collector.support import fake_gpus
from tests.examples.support import ended, is_answered, needed, press_ctrl_c, wait_for_text
from tests.ports import free_port

needed("torch", "transformers", "accelerate")
QLORA = "qlora_finetune_monitored.py"


def test_the_trainer_s_callback_journals_each_step_and_the_nan_that_the_trainer_prints_as_zero(example):
    diverging = example.start("hf_trainer.py", "--name", "diverging", "--learning-rate", "1e20", "--log-interval", "2",
                              "--output-dir", "other")  # fmt: skip
    out, _ = example.run("hf_trainer.py")
    journal = example.journal("hf-trainer")
    assert "run hf-trainer: 40 steps, finished" in out and f"journal  {journal.folder}" in out
    assert journal.run()["status"] == "finished" and journal.run()["framework"] == "transformers"
    assert list(journal.steps()) == list(range(1, 41))
    assert journal.values("loss")[-1] < journal.values("loss")[0] / 2
    for name in ("loss", "learning_rate", "step_duration_seconds", "data_wait_seconds", "tokens_per_second"):
        assert len(journal.values(name)) == 40, name
    assert len(journal.values("eval_loss")) == 2 and len(journal.values("evaluation_seconds")) == 2
    assert [event["step"] for event in journal.events("checkpoint")] == [20, 40]
    out, _ = ended(diverging)
    losses = example.journal("diverging").values("loss")
    assert "'loss': '0'" in out or "'loss': 0.0" in out
    assert len(losses) == 20 and math.isnan(losses[-1])


@pytest.fixture
def peft():
    needed("peft")


@pytest.mark.usefixtures("peft")
def test_qlora_trains_the_given_model_on_the_given_data_and_sums_it_up(example):
    config = {"model_type": "gpt2", "vocab_size": 256, "n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 64}
    (example.folder / "model.yaml").write_text("".join(f"{key}: {value}\n" for key, value in config.items()))
    (example.folder / "data.jsonl").write_text(f"{json.dumps({'text': 'to train is to wait, ' * 20})}\n" * 5)
    out, _ = example.run(QLORA, "--model-config", "model.yaml", "--data", "data.jsonl", "--output-dir", "out",
                         "--monitoring-log-dir", "elsewhere", "--steps", "12", "--sequence-length", "32")  # fmt: skip
    journal = example.journal("qlora", example.folder / "elsewhere")
    assert not example.root.exists()
    assert journal.run()["status"] == "finished" and journal.run()["config"]["lora_rank"] == 8
    assert list(journal.steps()) == list(range(1, 13))
    losses = journal.values("loss")
    adapter = json.loads((example.folder / "out/adapter/adapter_config.json").read_text())
    assert adapter["base_model_name_or_path"] == "out/base" and adapter["r"] == 8
    assert [event["path"] for event in journal.events("checkpoint")] == ["out/adapter"]
    assert "plain LoRA, the base model is not in 4 bits: " in out
    rows = summary_of(out)
    assert rows["steps"] == "12 of 12, finished"
    assert rows["loss"] == f"{losses[0]:.3f} at first, {losses[-1]:.3f} at last"
    assert re.fullmatch(r"[\d,]+ in the median step", rows["tokens/s"])
    assert re.fullmatch(r"\d+\.\d% of the time", rows["data wait"])
    assert re.match(r"[\d,]+ MiB of the ", rows["peak memory"])
    assert rows["next"].startswith("trainvitals serve --dir elsewhere")


def summary_of(out):
    rows = out.partition("\nrun ")[2].splitlines()[1:]
    return {row[:15].strip(): row[15:].strip() for row in rows}


@pytest.mark.usefixtures("peft")
def test_qlora_serves_its_loss_and_its_gpu_while_it_lives_and_takes_the_server_with_it(example):
    with fake_gpus(example.folder / "nvml", "gpus 3") as (_, environ), ExitStack() as stack:
        ways = [(signal.SIGINT, press_ctrl_c), (signal.SIGTERM, subprocess.Popen.terminate)]
        ports = [free_port() for _ in ways]
        words = ("--steps", "1000000", "--gpu-index", "1", "--enable-prometheus", "--prometheus-port")
        both = [example.running(QLORA, *words, str(port), "--name", number.name, **environ)
                for (number, _), port in zip(ways, ports, strict=True)]  # fmt: skip
        running = [stack.enter_context(one) for one in both]
        for (number, end), port, process in zip(ways, ports, running, strict=True):
            answer = wait_for_text(process, port, f'training_loss{{rank="0",run="{number.name}"}}')
            assert f'training_run_status{{run="{number.name}",status="running"}} 1.0' in answer
            assert set(re.findall(r'^gpu_utilization_percent{gpu="(\d+)"', answer, re.MULTILINE)) == {"1"}
            end(process)
            rows = summary_of(ended(process, status=128 + number)[0])
            assert not is_answered(port)
            assert rows["steps"].endswith(" of 1000000, preempted") and rows["adapter"] == "not written"
            assert example.journal(number.name).run()["status"] == "preempted"


@pytest.mark.usefixtures("peft")
def test_qlora_names_the_flag_whose_file_is_of_no_use(example):
    (example.folder / "data.jsonl").write_text('{"words": "no text"}\n')
    (example.folder / "model.json").write_text("{}")
    wrong = [example.start(QLORA, "--data", "data.jsonl"), example.start(QLORA, "--model-config", "model.json")]
    errors = [ended(process, status=1)[1].splitlines()[-1] for process in wrong]
    assert errors[0].startswith("--data data.jsonl: cannot be read: KeyError('text'); give text, or JSON lines")
    assert errors[1].startswith("--model-config model.json: has no `model_type`; write one")
