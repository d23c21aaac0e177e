"""Modules of a few parameters for the tests of Lightning."""

import time

import torch
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __init__(self, count=16, seconds=0.0):
        self.values = torch.randn(count, 4, generator=torch.Generator().manual_seed(1))
        self.seconds = seconds

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return self.values[index]


def loader(count=16, seconds=0.0):
    return DataLoader(Numbers(count, seconds), batch_size=2)


class Automatic(LightningModule):
    """`poison`: the loss of that batch is NaN, counted from 0. `seconds`: what a step takes at least."""

    def __init__(self, rate=0.1, poison=-1, seconds=0.0):
        super().__init__()
        self.save_hyperparameters()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(4, 1)
        self.losses = []

    def training_step(self, batch, batch_idx):
        time.sleep(self.hparams.seconds)
        loss = self.layer(batch).square().mean()
        if batch_idx == self.hparams.poison:
            loss = loss * float("nan")
        self.losses.append(float(loss))
        self.log("accuracy", 0.5 + batch_idx)
        self.log("epoch_accuracy", loss.detach(), on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self.layer(batch).square().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams.rate)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Manual(LightningModule):
    """Two optimizers, a step of each every second batch."""

    every = 2

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.one, self.two = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        loss = (self.one(batch) + self.two(batch)).square().mean()
        self.manual_backward(loss)
        if (batch_idx + 1) % self.every == 0:
            for optimizer in self.optimizers():
                optimizer.step()
                optimizer.zero_grad()
        return {"loss": loss}

    def configure_optimizers(self):
        return [torch.optim.SGD(part.parameters(), lr=rate) for part, rate in ((self.one, 0.1), (self.two, 0.2))]


class EachBatch(Manual):
    every = 1


def trainer(folder, *callbacks, kind=Trainer, **more):
    given = {"accelerator": "cpu", "devices": 1, "max_epochs": 1, "logger": False, "enable_progress_bar": False,
             "enable_model_summary": False, "enable_checkpointing": False, "log_every_n_steps": 1,
             "default_root_dir": str(folder), "use_distributed_sampler": False}  # fmt: skip
    return kind(callbacks=list(callbacks), **given | more)


def weights(module):
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])
