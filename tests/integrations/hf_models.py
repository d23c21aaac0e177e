"""A model of a few parameters, and the data it learns from, for the tests of the Trainer."""

import time

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainingArguments

TOKENS = 6


class TinyConfig(PretrainedConfig):
    model_type = "tiny"

    def __init__(self, width=4, **more):
        super().__init__(**more)
        self.width = width


class Tiny(PreTrainedModel):
    """`poison`: the loss of that forward pass in training is NaN, counted from 1. `seconds`: what a pass takes."""

    config_class = TinyConfig

    def __init__(self, config, poison=0, as_tuple=False, seconds=0.0):
        super().__init__(config)
        self.embed = nn.Embedding(10, config.width)
        self.head = nn.Linear(config.width, 10)
        self.poison, self.as_tuple, self.seconds, self.calls = poison, as_tuple, seconds, 0
        self.post_init()

    def forward(self, input_ids, labels=None):
        time.sleep(self.seconds)
        logits = self.head(self.embed(input_ids))
        if labels is None:
            return {"logits": logits}
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        if self.training:
            self.calls += 1
            if self.calls == self.poison:
                loss = loss + (torch.tensor(float("nan")) - loss).detach()
        return (loss, logits) if self.as_tuple else {"loss": loss, "logits": logits}


class Texts(Dataset):
    def __init__(self, count=32, seconds=0.0):
        self.texts = torch.randint(0, 10, (count, TOKENS), generator=torch.Generator().manual_seed(1))
        self.seconds = seconds

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return {"input_ids": self.texts[index], "labels": self.texts[index]}


def arguments(folder, **more):
    given = {"output_dir": str(folder / "out"), "max_steps": 6, "per_device_train_batch_size": 2, "report_to": [],
             "logging_steps": 2, "save_strategy": "no", "disable_tqdm": True, "use_cpu": True, "seed": 3}  # fmt: skip
    return TrainingArguments(**given | more)


def trainer(folder, *callbacks, kind=Trainer, model=None, data=None, more=None, **settings):
    if model is None:
        torch.manual_seed(0)
        model = Tiny(TinyConfig())
    data = data or Texts()
    return kind(model=model, args=arguments(folder, **settings), train_dataset=data, callbacks=list(callbacks),
                **{"eval_dataset": Texts(8), **(more or {})})  # fmt: skip


def tiny(**more):
    torch.manual_seed(0)
    return Tiny(TinyConfig(), **more)


def weights(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
