"""Fine-tuning with QLoRA, monitored: the run, its GPU, /metrics if asked for, and a summary at the end.

    python qlora_finetune_monitored.py                      # a tiny model and text, a few seconds on the CPU
    python qlora_finetune_monitored.py --enable-prometheus --prometheus-port 9101 --steps 2000
    python qlora_finetune_monitored.py --model-config ./my-model --data train.jsonl --output-dir out \\
        --gpu-index 0 --monitoring-log-dir /data/trainvitals --enable-prometheus

--model-config is a model's folder, or a JSON or YAML file of a configuration, from which an untrained model is
made. --data is text, or JSON lines with a "text" in each. The base model is held in 4 bits where CUDA and bitsandbytes
are there; elsewhere this is plain LoRA.
"""

import argparse
import importlib.util
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import torch
import yaml
from peft import LoraConfig, PeftModel, get_peft_model, prepare_model_for_kbit_training
from torch.utils.data import DataLoader
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

import trainvitals as tv

TINY = {"model_type": "llama", "vocab_size": 256, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2}  # fmt: skip
TEXT = "A step that waits for data trains nothing. A GPU that is hot is slow. What is not measured is guessed. " * 40


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--model-config", type=Path, metavar="PATH", help="model folder, or .json/.yaml file (default: a tiny Llama)")
    add("--data", type=Path, metavar="FILE", help="text or JSON lines (default: a few sentences)")
    add("--output-dir", type=Path, default=Path("qlora-output"), help="for the adapter (default: ./%(default)s)")
    add("--gpu-index", type=int, default=0, metavar="N", help="GPU to train on, of those torch sees (default: 0)")
    add("--monitoring-log-dir", type=Path, metavar="DIR", help="the journal (default: TRAINVITALS_DIR, or the usual)")
    add("--enable-prometheus", action="store_true", help="serve /metrics for as long as this runs")
    add("--prometheus-port", type=int, default=9101, metavar="PORT", help="default: %(default)s")
    add("--name", default="qlora", help="the run's name (default: %(default)s)")
    add("--steps", type=int, default=40, help="default: %(default)s")
    add("--batch-size", type=int, default=4, help="default: %(default)s")
    add("--sequence-length", type=int, default=64, metavar="TOKENS", help="default: %(default)s")
    add("--learning-rate", type=float, default=5e-3, help="default: %(default)s")
    add("--lora-rank", type=int, default=8, help="default: %(default)s")
    return parser.parse_args()


def refuse(flag: str, value: object, fix: str) -> NoReturn:
    sys.exit(f"{flag} {value}: {fix}")


# --- The model -------------------------------------------------------------------------------------------------------


def choose_device(index: int) -> torch.device:
    if not torch.cuda.is_available():
        return torch.device("cpu")
    if index not in range(torch.cuda.device_count()):
        refuse("--gpu-index", index, f"torch sees GPUs 0 to {torch.cuda.device_count() - 1}")
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


def base_folder(arguments: argparse.Namespace) -> Path:
    """The base model's folder; written here where only its configuration was given."""
    given = arguments.model_config
    if given is not None and given.is_dir():
        return given
    settings = TINY if given is None else read_settings(given)
    folder = arguments.output_dir / "base"
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(AutoConfig.for_model(**settings)).save_pretrained(folder)
    return folder


def read_settings(path: Path) -> dict[str, Any]:
    try:
        settings = yaml.safe_load(path.read_text())  # JSON is YAML too
    except (OSError, yaml.YAMLError) as error:
        refuse("--model-config", path, f"cannot be read: {error}")
    if not isinstance(settings, dict) or "model_type" not in settings:
        refuse("--model-config", path, "has no `model_type`; write one, as `model_type: llama`")
    return settings


def load_model(folder: Path, device: torch.device, lora_rank: int) -> PeftModel:
    if device.type == "cuda" and importlib.util.find_spec("bitsandbytes"):
        print("QLoRA: the base model is held in 4 bits")
        bits = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
                                  bnb_4bit_compute_dtype=torch.bfloat16)  # fmt: skip
        model = AutoModelForCausalLM.from_pretrained(folder, quantization_config=bits, device_map={"": device})
        model = prepare_model_for_kbit_training(model)
    else:
        missing = "bitsandbytes is not installed" if device.type == "cuda" else "there is no CUDA here"
        print(f"plain LoRA, the base model is not in 4 bits: {missing}")
        model = AutoModelForCausalLM.from_pretrained(folder).to(device)
    lora = LoraConfig(r=lora_rank, lora_alpha=2 * lora_rank, target_modules="all-linear", task_type="CAUSAL_LM")
    return get_peft_model(model, lora)


# --- The data --------------------------------------------------------------------------------------------------------


def read_text(path: Path | None) -> str:
    if path is None:
        return TEXT
    try:
        content = path.read_text(encoding="utf-8")
        if path.suffix not in (".jsonl", ".json"):
            return content
        return "\n".join(json.loads(line)["text"] for line in content.splitlines() if line.strip())
    except (OSError, ValueError, KeyError, TypeError) as error:
        refuse("--data", path, f'cannot be read: {error!r}; give text, or JSON lines such as {{"text": "…"}}')


def tokens_of(text: str, folder: Path, vocabulary: int) -> torch.Tensor:
    """By the model's own tokenizer; a model without one learns bytes."""
    if any(folder.glob("tokenizer*")):
        return torch.tensor(AutoTokenizer.from_pretrained(folder)(text)["input_ids"])
    if vocabulary < 256:
        refuse("--model-config", folder, f"vocab_size is {vocabulary}; without a tokenizer it must be 256 or more")
    return torch.tensor(list(text.encode()))


def make_batches(tokens: torch.Tensor, arguments: argparse.Namespace) -> DataLoader:
    length = arguments.sequence_length
    if len(tokens) < length:
        refuse("--sequence-length", length, f"the data has {len(tokens)} tokens; give fewer, or more --data")
    sequences = tokens[: len(tokens) // length * length].view(-1, length)
    return DataLoader(sequences, batch_size=arguments.batch_size, shuffle=True)  # type: ignore[arg-type]


# --- Training --------------------------------------------------------------------------------------------------------


def train(run: tv.Run, model: PeftModel, batches: DataLoader, device: torch.device,
          arguments: argparse.Namespace) -> None:  # fmt: skip
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=arguments.learning_rate)
    model.train()
    began = time.perf_counter()
    for batch in run.data(islice(endless(batches), arguments.steps)):
        values = train_step(run, model, optimizer, batch.to(device))
        now = time.perf_counter()
        speed = batch.numel() / (now - began)  # with the wait for data
        # The loss and the norm are tensors still: on a GPU nobody waits for them.
        run.log(values, lr=arguments.learning_rate, tokens_per_second=speed, **memory(device))
        began = now


def endless(batches: DataLoader) -> Iterator[torch.Tensor]:
    while True:
        yield from batches


def train_step(run: tv.Run, model: PeftModel, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> dict[str, Any]:
    with run.step():
        with run.phase("forward"):
            loss = model(input_ids=batch, labels=batch).loss
        with run.phase("backward"):
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with run.phase("optimizer"):
            optimizer.step()
    return {"loss": loss, "grad_norm": norm}


def memory(device: torch.device) -> dict[str, float]:
    """Of torch's allocator, in MiB. The driver's view of the GPU is the monitor's to tell."""
    if device.type != "cuda":
        return {}
    allocated, reserved = torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device)
    return {"memory_allocated_mb": allocated / 2**20, "memory_reserved_mb": reserved / 2**20}


def save(run: tv.Run, model: PeftModel, folder: Path) -> None:
    with run.phase("checkpoint"):
        model.save_pretrained(folder)
    run.checkpoint(folder)


# --- Monitoring ------------------------------------------------------------------------------------------------------


@contextmanager
def metrics_served(arguments: argparse.Namespace) -> Iterator[None]:
    """`trainvitals monitor` as a child: it reads the GPU and the journal, and serves both. If it fails, training
    goes on."""
    words = ["--gpu", driver_number(arguments.gpu_index), "--prometheus-port", str(arguments.prometheus_port)]
    monitor = subprocess.Popen([sys.executable, "-m", "trainvitals.cli", "monitor", "--no-console", *words,
                                *journal_flags(arguments)])  # fmt: skip
    try:
        yield
    finally:
        monitor.terminate()
        monitor.wait()


def driver_number(index: int) -> str:
    """The driver numbers all GPUs, torch those that CUDA_VISIBLE_DEVICES leaves."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    return visible[index] if index < len(visible) and visible[index].isdigit() else str(index)


def journal_flags(arguments: argparse.Namespace) -> list[str]:
    return ["--dir", str(arguments.monitoring_log_dir)] if arguments.monitoring_log_dir else []


# --- The summary -----------------------------------------------------------------------------------------------------


def summary(run: tv.Run, arguments: argparse.Namespace) -> str:
    """Read back from the journal: it knows more of the run than this script kept."""
    if run.folder is None:  # TRAINVITALS=off
        return "nothing was recorded"
    lines = [json.loads(line) for file in sorted(run.folder.glob("training_metrics_*.jsonl")) for line in file.open()]
    losses = column(lines, "loss") or [float("nan")]
    steps, waits = column(lines, "step_duration_seconds"), column(lines, "data_wait_seconds")
    seconds = sum(steps) + sum(waits) or float("nan")
    speeds = column(lines, "tokens_per_second") or [float("nan")]
    dir_flag = " ".join(["", *journal_flags(arguments)])
    rows = {
        "steps": f"{len(steps)} of {arguments.steps}, {run.status}",
        "loss": f"{losses[0]:.3f} at first, {losses[-1]:.3f} at last",
        "tokens/s": f"{statistics.median(speeds):,.0f} in the median step",
        "data wait": f"{sum(waits) / seconds:.1%} of the time",
        "peak memory": peak_memory(),
        "adapter": str(arguments.output_dir / "adapter") if run.status == "finished" else "not written",
        "journal": str(run.folder),
        "next": f"trainvitals serve{dir_flag}     # its page shows this run",
        "": f"trainvitals sync {run.id}{dir_flag} --to tensorboard=tensorboard",
    }
    return "\n".join([f"\nrun {run.id}", *(f"  {name:<12} {text}" for name, text in rows.items())])


def column(lines: list[dict[str, Any]], name: str) -> list[float]:
    return [line[name] for line in lines if name in line]


def peak_memory() -> str:
    if torch.cuda.is_available():
        return f"{torch.cuda.max_memory_allocated() / 2**20:,.0f} MiB of the GPU"
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:,.0f} MiB of the host, there is no GPU"


def main() -> int:
    arguments = parse_arguments()
    # An end that is asked for unwinds like Ctrl-C does, and takes the monitor with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    device = choose_device(arguments.gpu_index)
    folder = base_folder(arguments)
    model = load_model(folder, device, arguments.lora_rank)
    tokens = tokens_of(read_text(arguments.data), folder, model.config.vocab_size)
    batches = make_batches(tokens, arguments)
    run = tv.start(arguments.name, config=arguments, dir=arguments.monitoring_log_dir, framework="peft",
                   planned_steps=arguments.steps)  # fmt: skip
    try:
        with metrics_served(arguments) if arguments.enable_prometheus else nullcontext(), run:
            train(run, model, batches, device, arguments)
            save(run, model, arguments.output_dir / "adapter")
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        print(summary(run, arguments))
    return 0


if __name__ == "__main__":
    sys.exit(main())
