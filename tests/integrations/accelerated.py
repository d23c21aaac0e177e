"""A loop with Accelerate as its users write it, for the tests: `python accelerated.py FOLDER FLAGS...`."""

import sys
import time

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __init__(self, seconds):
        self.values = torch.randn(16, 4, generator=torch.Generator().manual_seed(1))
        self.seconds = seconds

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return self.values[index]


def train(log_with, run=None, seconds=0.0, poison=-1, **init):
    """Gives the weights. `run` times the steps and the data."""
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    accelerator = Accelerator(log_with=log_with, cpu=True, gradient_accumulation_steps=2)
    accelerator.init_trackers("project", config={"rate": 0.1}, **init)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(Numbers(seconds), batch_size=2))
    batches = loader if run is None else run().data(loader)
    for number, batch in enumerate(batches, 1):
        if run is not None and number % 2:
            run().begin_step()
        with accelerator.accumulate(model):
            loss = model(batch).square().mean()
            if number == poison:
                loss = loss * float("nan")
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            time.sleep(0.01)
        if accelerator.sync_gradients:
            if run is not None:
                run().end_step()
                run().log(own_loss=loss)
            accelerator.log({"loss": loss, "lr": 0.1, "losses": {"head": float(loss.detach())}})
    accelerator.end_training()
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


if __name__ == "__main__":
    import trainvitals as tv
    from trainvitals.integrations.accelerate import TrainVitalsTracker

    if "named" in sys.argv:
        train("trainvitals", tv.current)
    elif "started" in sys.argv:
        with tv.start("ranks") as run:
            train("trainvitals", lambda: run)
    else:
        tracker = TrainVitalsTracker("ranks", main_process_only="main" in sys.argv)
        train([tracker], lambda: tracker.run)
