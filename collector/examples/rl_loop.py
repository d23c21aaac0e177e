"""A reinforcement learning loop: rewards, KL, entropy, and how long generation and training take.

    python rl_loop.py                     # 80 steps on the CPU, a second or two
    python rl_loop.py --slow-generation   # generation takes most of each step, as it often does with language models
    python rl_loop.py --kl-weight 1.0     # the policy stays close to where it began, and learns little

The task is made here: eight prompts, four answers, one of them right. The policy learns it by policy gradients with a
group of answers per prompt. A large model's loop has the same two phases; what verl and NeMo RL call their values is
told under these names too, by the loggers in `trainvitals.integrations`.
"""

import argparse
import time

import torch
from torch import nn
from torch.distributions import Categorical, kl_divergence

import trainvitals as tv

PROMPTS, ANSWERS, GROUP = 8, 4, 16


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="rl-loop", help="the run's name (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=80, help="default: %(default)s")
    parser.add_argument("--learning-rate", type=float, default=0.05, help="default: %(default)s")
    parser.add_argument("--kl-weight", type=float, default=0.01, help="default: %(default)s")
    parser.add_argument("--slow-generation", action="store_true", help="20 ms more for each generation")
    return parser.parse_args()


class Task:
    def __init__(self) -> None:
        self.prompts = torch.eye(PROMPTS)
        self._right = torch.randint(ANSWERS, (PROMPTS,))

    def rewards(self, answers: torch.Tensor) -> torch.Tensor:
        """Of each answer in each prompt's group."""
        return (answers == self._right).float()


def generate(policy: nn.Module, task: Task, slow: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """A group of answers for each prompt, and what they are worth."""
    with torch.no_grad():
        answers = Categorical(logits=policy(task.prompts)).sample((GROUP,))
    time.sleep(0.02 if slow else 0.0)
    return answers, task.rewards(answers)


def update(policy: nn.Module, reference: nn.Module, optimizer: torch.optim.Optimizer, task: Task,
           answers: torch.Tensor, rewards: torch.Tensor, kl_weight: float) -> dict[str, torch.Tensor]:  # fmt: skip
    """One policy gradient step. The values are tensors still: on a GPU nobody waits for them."""
    policy_now = Categorical(logits=policy(task.prompts))
    with torch.no_grad():
        policy_before = Categorical(logits=reference(task.prompts))
    advantages = rewards - rewards.mean(dim=0)
    kl = kl_divergence(policy_now, policy_before).mean()
    loss = -(advantages * policy_now.log_prob(answers)).mean() + kl_weight * kl
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
    optimizer.step()
    return {"loss": loss, "kl": kl, "entropy": policy_now.entropy().mean(), "grad_norm": norm}


def train(run: tv.Run, arguments: argparse.Namespace) -> float:
    """The mean reward of the last step."""
    torch.manual_seed(0)
    task, policy, reference = Task(), nn.Linear(PROMPTS, ANSWERS), nn.Linear(PROMPTS, ANSWERS)
    reference.load_state_dict(policy.state_dict())
    optimizer = torch.optim.Adam(policy.parameters(), lr=arguments.learning_rate)
    rewards = torch.zeros(1)
    for _ in range(arguments.steps):
        with run.step():
            with run.phase("generation"):  # becomes generation_seconds
                answers, rewards = generate(policy, task, arguments.slow_generation)
            with run.phase("training"):
                values = update(policy, reference, optimizer, task, answers, rewards, arguments.kl_weight)
        run.log(values, reward_mean=rewards.mean(), reward_min=rewards.min(), reward_max=rewards.max())
    return rewards.mean().item()


def say_where(run: tv.Run, reward: float) -> None:
    print(f"mean reward {reward:.2f} (by chance {1 / ANSWERS})")
    if not run:  # TRAINVITALS=off
        print("nothing was recorded")
        return
    print(f"run {run.id}: {run.number} steps, {run.status}")
    print(f"journal  {run.folder}")
    print("next     trainvitals serve     # its page shows this run")
    print(f"         trainvitals sync {run.id} --to tensorboard=tensorboard   # reward, KL and entropy as curves")


def main() -> None:
    arguments = parse_arguments()
    with tv.start(arguments.name, config=arguments, framework="pytorch", planned_steps=arguments.steps) as run:
        # Asked at each `log`; an event in the journal, once in five minutes.
        run.alert_when("certain policy", lambda metrics: metrics["entropy"] < 0.2,
                       message="entropy is {entropy:.3f}: it explores no more")  # fmt: skip
        reward = train(run, arguments)
    say_where(run, reward)


if __name__ == "__main__":
    main()
