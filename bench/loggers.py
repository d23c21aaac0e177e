"""The loggers that training code calls, each in a process of its own.

python -m bench.loggers NAME FOLDER CALLS PAUSE

Prints the nanoseconds that each call took, as a JSON list. Ten fields a call, as a training step would have them.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

FIELDS = {"loss": 1 / 3, "learning_rate": 1 / 4, "gradient_norm": 1 / 7, "tokens_per_second": 1e4 / 9,
          "epoch": 1 / 11, "accuracy": 1 / 13, "perplexity": 100 / 17, "memory_allocated_mb": 1e5 / 19,
          "grad_scale": 1e4 / 23, "momentum": 1 / 29}  # fmt: skip
WARM_UP = 50
Log = Callable[[int], object]


def ours(folder: Path) -> Log:
    import trainvitals

    run = trainvitals.start("bench", dir=folder)
    return lambda step: run.log(FIELDS, step=step)


def floor(folder: Path) -> Log:
    import orjson

    fd = os.open(folder / "floor.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    return lambda step: os.write(fd, orjson.dumps({"step": step, **FIELDS}, option=orjson.OPT_APPEND_NEWLINE))


def trackio(folder: Path) -> Log:
    os.environ["TRACKIO_DIR"] = str(folder)
    import trackio as library

    library.init(project="bench", embed=False)
    return lambda step: library.log(FIELDS, step=step)


def tensorboard(folder: Path) -> Log:
    from torch.utils.tensorboard import SummaryWriter

    return _scalars(SummaryWriter(str(folder)))


def tensorboardx(folder: Path) -> Log:
    from tensorboardX import SummaryWriter

    return _scalars(SummaryWriter(str(folder)))


def _scalars(writer: Any) -> Log:
    def log(step: int) -> None:
        for name, value in FIELDS.items():
            writer.add_scalar(name, value, step)

    return log


def wandb(folder: Path) -> Log:
    import wandb as library

    settings = library.Settings(x_disable_stats=True, console="off", silent=True)
    run = library.init(project="bench", mode="offline", dir=str(folder), settings=settings)
    return lambda step: run.log(FIELDS, step=step)


def aim(folder: Path) -> Log:
    from aim import Run

    run = Run(repo=str(folder), system_tracking_interval=None, log_system_params=False, capture_terminal_logs=False)

    def log(step: int) -> None:
        for name, value in FIELDS.items():
            run.track(value, name=name, step=step)

    return log


def mlflow(folder: Path) -> Log:
    import mlflow as library

    library.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    library.set_experiment("bench")
    library.start_run()
    return lambda step: library.log_metrics(FIELDS, step=step)


LOGGERS = {"ours": ours, "floor": floor, "trackio": trackio, "TensorBoard": tensorboard, "tensorboardX": tensorboardx,
           "W&B offline": wandb, "aim": aim, "MLflow on SQLite": mlflow}  # fmt: skip


def timed(log: Log, calls: int, pause: float) -> list[int]:
    clock, taken = time.perf_counter_ns, []
    for step in range(1, calls + WARM_UP + 1):
        if pause:
            time.sleep(pause)
        began = clock()
        log(step)
        taken.append(clock() - began)
    return taken[WARM_UP:]


def main(name: str, folder: str, calls: str, pause: str) -> None:
    """What a library prints must not stand among the figures."""
    with redirect_stdout(sys.stderr):
        taken = timed(LOGGERS[name](Path(folder)), int(calls), float(pause))
    print(json.dumps(taken), flush=True)
    # What a library does at its end is no part of a call's time, and may take long.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
