"""A training process for the tests: `python -m tests.collector.agent.trainer ROOT NAME RANK WORLD MODE`.

It claims the run, writes a few steps, prints the run's id and then does as told, one word a line:
`step`, `finish`, `crash`, `checkpoint`, `evaluate` … `evaluated`, `save` … `saved`; closing its input leaves it waiting
to be killed.
"""

import os
import sys
import time
from pathlib import Path

from trainvitals.journal import runs
from trainvitals.journal.run_files import RunFiles

PHASES = {"evaluate": ("evaluation", True), "evaluated": ("evaluation", False),
          "save": ("checkpoint", True), "saved": ("checkpoint", False)}  # fmt: skip


def main(root: str, name: str, rank: str, world: str, run_id: str = "") -> None:
    facts = {"gpus": [{"gpu": rank, "uuid": f"GPU-{rank}"}]}
    claimed = runs.claim(Path(root), name, rank=int(rank), world_size=int(world), run_id=run_id, facts=facts)
    files = RunFiles(claimed, name, framework="plain", planned_steps=100)
    step = 0
    print(claimed.run, os.getpid(), flush=True)
    for word in map(str.strip, sys.stdin):
        if word == "step":
            step += 1
            files.metrics.append({"step": step, "loss": 2.0 / step, "step_duration_seconds": 0.2, "my_metric": step})
        elif word == "checkpoint":
            files.events.append({"event": "checkpoint", "step": step})
        elif word in PHASES:
            phase, is_open = PHASES[word]
            files.events.append({"event": "phase", "step": step, "phase": phase, "open": is_open})
        else:
            files.end({"finish": "finished", "crash": "crashed"}[word])
        print(word, flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
