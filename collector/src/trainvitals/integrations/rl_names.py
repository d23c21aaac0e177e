"""What trainers for reinforcement learning call their values, told under the journal's names too.

added({"actor/grad_norm": 0.4}, VERL)  ->  {"actor/grad_norm": 0.4, "gradient_norm": 0.4}
"""

from collections.abc import Mapping
from typing import Any

Names = Mapping[str, str]

# Of reinforcement learning, whoever trains: reward_mean, kl, entropy, generation_seconds, training_seconds.
VERL: Names = {
    "actor/loss": "loss",
    "actor/pg_loss": "loss",
    "actor/grad_norm": "gradient_norm",
    "actor/lr": "learning_rate",
    "actor/entropy": "entropy",
    "actor/ppo_kl": "kl",
    "critic/rewards/mean": "reward_mean",
    "training/epoch": "epoch",
    "timing_s/step": "step_duration_seconds",
    "timing_s/gen": "generation_seconds",
    "timing_s/update_actor": "training_seconds",
    "timing_s/save_checkpoint": "checkpoint_seconds",
    "timing_s/testing": "evaluation_seconds",
}
NEMO_RL: Names = {
    "train/reward": "reward_mean",
    "train/kl_penalty": "kl",
    "train/approx_entropy": "entropy",
    "timing/train/total_step_time": "step_duration_seconds",
    "timing/train/generation": "generation_seconds",
    "timing/train/policy_training": "training_seconds",
    "timing/train/checkpointing": "checkpoint_seconds",
    "timing/validation/total_validation_time": "evaluation_seconds",
    "performance/tokens_per_sec": "tokens_per_second",
    "performance/samples_per_sec": "throughput_samples_per_sec",
}


def added(values: Mapping[str, Any], names: Names) -> dict[str, Any]:
    """The trainer's own names stay; of two that mean the same, and of one given under the journal's name, the first
    counts."""
    found = {str(name): value for name, value in values.items()}
    for name, ours in names.items():
        if name in found:
            found.setdefault(ours, found[name])
    return found
