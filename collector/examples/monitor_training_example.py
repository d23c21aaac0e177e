"""Three ways to look: GPUs in the terminal, a page, and a small training that brings its own agent.

    python monitor_training_example.py                     # GPUs in the terminal, for ten seconds
    python monitor_training_example.py --mode dashboard    # the page on http://127.0.0.1:8080, until Ctrl-C
    python monitor_training_example.py --mode train        # a training; its agent begins and ends with it

Where no NVIDIA GPU answers, two simulated ones are shown. Each mode prints the command that it stands for.
"""

import argparse
import shlex
import signal
import subprocess
import sys
import time

import pynvml

import trainvitals as tv
from trainvitals.journal.layout import find_root

SIMULATED = 2


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=("monitor", "dashboard", "train"), default="monitor",
                        help="default: %(default)s")  # fmt: skip
    parser.add_argument("--seconds", type=float, help="how long; 0 is until Ctrl-C (default: monitor 10, dashboard 0)")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between readings (default: 1)")
    parser.add_argument("--port", type=int, default=8080, help="of the page, in mode dashboard (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=100, help="in mode train (default: %(default)s)")
    return parser.parse_args()


def gpus_here() -> int:
    try:
        pynvml.nvmlInit()
        count = int(pynvml.nvmlDeviceGetCount())
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return 0
    return count


def trainvitals(seconds: float, *words: str) -> int:
    """A command of ours for so long, or until Ctrl-C, which reaches it too. Its exit status."""
    if not gpus_here():
        print(f"no NVIDIA GPU answers: {SIMULATED} simulated ones are shown")
        words = (*words, "--simulate", str(SIMULATED))
    print(f"$ trainvitals {shlex.join(words)}", flush=True)
    process = subprocess.Popen([sys.executable, "-m", "trainvitals.cli", *words])
    signal.signal(signal.SIGINT, lambda *_: process.send_signal(signal.SIGINT))
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        return process.wait(timeout=seconds or None)
    except subprocess.TimeoutExpired:
        process.terminate()
        return process.wait()


def monitor(arguments: argparse.Namespace) -> int:
    seconds = 10.0 if arguments.seconds is None else arguments.seconds
    status = trainvitals(seconds, "monitor", "--interval", f"{arguments.interval:g}")
    print(f"journal  {find_root() / 'gpu'}     # a line a GPU and tick")
    print("next     --mode dashboard, or --mode train")
    return status


def dashboard(arguments: argparse.Namespace) -> int:
    """The agent prints the page's address and where the journal lies."""
    return trainvitals(arguments.seconds or 0.0, "serve", "--port", str(arguments.port),
                       "--interval", f"{arguments.interval:g}")  # fmt: skip


def train(arguments: argparse.Namespace) -> int:
    """With `agent=True` an agent runs beside the training, if none does yet; it says where its page is."""
    import torch  # only here: to look at GPUs nobody needs it

    weight = torch.zeros(8, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.05)
    with tv.start("monitor-training-example", config=arguments, planned_steps=arguments.steps, agent=True) as run:
        for _ in range(arguments.steps):
            with run.step():
                loss = (weight - torch.arange(8)).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                time.sleep(0.03)  # slow enough for the page to be looked at
            run.log(loss=loss, learning_rate=0.05)
    if not run:  # TRAINVITALS=off
        print("nothing was recorded")
        return 0
    print(f"run {run.id}: {run.number} steps, {run.status}")
    print(f"journal  {run.folder}")
    print("next     trainvitals serve     # the page again, with the last ten runs that ended")
    return 0


def main() -> int:
    arguments = parse_arguments()
    return {"monitor": monitor, "dashboard": dashboard, "train": train}[arguments.mode](arguments)


if __name__ == "__main__":
    sys.exit(main())
