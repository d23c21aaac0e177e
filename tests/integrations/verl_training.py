"""The part of verl's trainers that tracks, in a process of its own: python verl_training.py EXIT_CODE [LINES]

It trains until the agent has written so many lines.
"""

import os
import sys
import time
from pathlib import Path

import verl  # noqa: F401 - imports what VERL_USE_EXTERNAL_MODULES names
from omegaconf import OmegaConf

config = OmegaConf.create(
    {
        "trainer": {
            "project_name": "math",
            "experiment_name": "grpo",
            "logger": ["console", "trainvitals"],
            "total_training_steps": 2,
            "enable_gpu_monitoring": True,
            "gpu_monitor_interval": 0.2,
        },
        "actor": {"lr": 1e-6, "name": "${trainer.experiment_name}"},
    }
)


def fit():
    from verl.utils.tracking import Tracking

    logger = Tracking(
        project_name=config.trainer.project_name,
        experiment_name=config.trainer.experiment_name,
        default_backend=config.trainer.logger,
        config=OmegaConf.to_container(config, resolve=True),
    )
    logger.log(data={"val-core/acc": 0.25}, step=0)
    for step in (1, 2):
        metrics = {"actor/grad_norm": 0.5 * step, "actor/lr": 1e-6, "actor/entropy": 0.3, "actor/ppo_kl": 0.01,
                   "critic/rewards/mean": 0.6, "timing_s/step": 10.0, "timing_s/gen": 6.0, "timing_s/update_actor": 2.0,
                   "perf/total_num_tokens": 64000, "perf/time_per_step": 10.0, "perf/throughput": 800.0,
                   "perf/mfu/actor": 0.4}  # fmt: skip
        logger.log(data=metrics, step=step)
    return logger


def lines():
    files = Path(os.environ["TRAINVITALS_DIR"]).glob("gpu/*/host_metrics_*.jsonl")
    return sum(len(path.read_text().splitlines()) for path in files)


tracked = fit()
deadline = time.monotonic() + 30
while lines() < int((sys.argv[2:] or [0])[0]) and time.monotonic() < deadline:
    time.sleep(0.05)
tracked.finish(exit_code=int(sys.argv[1]))
