"""Hugging Face's Trainer, watched by one callback: per-step loss, data wait, token throughput, evaluation, checkpoints.

    python hf_trainer.py                        # 40 steps of a tiny Llama on the CPU, some seconds
    python hf_trainer.py --log-interval 10      # a line each ten steps, with the mean of their losses
    python hf_trainer.py --learning-rate 1e20   # diverges: the Trainer prints a loss of 0, the journal keeps the NaN

The model is built here from a configuration: nothing is downloaded.
"""

import argparse

import torch
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

import trainvitals as tv
from trainvitals.integrations.transformers import TrainVitalsCallback

VOCABULARY, LENGTH = 64, 32


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="hf-trainer", help="the run's name (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=40, help="default: %(default)s")
    parser.add_argument("--batch-size", type=int, default=8, help="default: %(default)s")
    parser.add_argument("--learning-rate", type=float, default=1e-2, help="default: %(default)s")
    parser.add_argument("--log-interval", type=int, default=1, help="steps between lines (default: %(default)s)")
    parser.add_argument("--output-dir", default="hf-trainer-output", help="default: ./%(default)s")
    return parser.parse_args()


class Counting(Dataset):
    """Sequences that count on from some number by some step: easy to learn, and made in no time."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        numbers = (index + torch.arange(LENGTH) * (1 + index % 3)) % VOCABULARY
        return {"input_ids": numbers, "labels": numbers}


def make_model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=LENGTH))  # fmt: skip


def make_trainer(arguments: argparse.Namespace, callback: TrainVitalsCallback) -> Trainer:
    settings = TrainingArguments(
        output_dir=arguments.output_dir, max_steps=arguments.steps, learning_rate=arguments.learning_rate,
        per_device_train_batch_size=arguments.batch_size, logging_steps=10, eval_strategy="steps", eval_steps=20,
        save_steps=20, report_to=[], disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available())  # fmt: skip
    return Trainer(make_model(), settings, train_dataset=Counting(1024), eval_dataset=Counting(32),
                   callbacks=[callback])  # fmt: skip


def say_where(run: tv.Run) -> None:
    if not run:  # TRAINVITALS=off
        print("nothing was recorded")
        return
    print(f"run {run.id}: {run.number} steps, {run.status}")
    print(f"journal  {run.folder}")
    print("next     trainvitals serve     # its page shows this run")
    print(f"         trainvitals sync {run.id} --to tensorboard=tensorboard")


def main() -> None:
    arguments = parse_arguments()
    # The callback starts the run as training begins and ends it with it; what `tv.start` takes can be given here.
    callback = TrainVitalsCallback(arguments.name, log_interval=arguments.log_interval, tags=["example"])
    make_trainer(arguments, callback).train()
    say_where(callback.run)


if __name__ == "__main__":
    main()
