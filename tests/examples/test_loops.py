"""The examples that are loops in plain PyTorch: one process, two ranks, reinforcement learning."""

from statistics import median

from tests.examples.support import needed

needed("torch")


def test_the_plain_loop_journals_its_steps_phases_and_checkpoints(example):
    out, _ = example.run("plain_loop.py")
    journal = example.journal("plain-loop")
    assert "run plain-loop: 60 steps, finished" in out and f"journal  {journal.folder}" in out
    assert journal.run()["status"] == "finished" and journal.run()["planned_steps"] == 60
    assert list(journal.steps()) == list(range(1, 61))
    losses = journal.values("loss")
    assert len(losses) == 60 and losses[-1] < losses[0] / 2
    for name in ("step_duration_seconds", "data_wait_seconds", "forward_seconds", "backward_seconds",
                 "optimizer_seconds", "learning_rate", "gradient_norm", "throughput_samples_per_sec"):  # fmt: skip
        assert len(journal.values(name)) == 60, name
    assert len(journal.values("validation_loss")) == 3
    assert [event["step"] for event in journal.events("checkpoint")] == [20, 40, 60]
    assert [event["phase"] for event in journal.events("phase") if event["open"]] == ["evaluation", "checkpoint"] * 3


def test_a_plain_loop_that_failed_goes_on_from_its_checkpoint_in_the_same_run(example):
    out, errors = example.run("plain_loop.py", "--fail-in-epoch", "3", status=1)
    journal = example.journal("plain-loop")
    assert "40 steps, crashed" in out and "RuntimeError: epoch 3 was asked to fail" in errors
    assert journal.run()["status"] == "crashed"
    assert journal.run()["error"] == "RuntimeError: epoch 3 was asked to fail"
    out, _ = example.run("plain_loop.py", "--resume")
    assert "run plain-loop: 60 steps, finished" in out
    assert [path.name for path in journal.folder.parent.glob("plain*")] == ["plain-loop"]
    assert journal.run()["status"] == "finished" and len(journal.run()["resumed"]) == 1
    assert list(journal.steps()) == list(range(1, 61))
    assert journal.events("note")[-1]["text"] == "training begins after epoch 2"


def test_of_several_runs_of_one_name_the_one_goes_on_that_wrote_the_checkpoint(example):
    example.run("plain_loop.py", "--epochs", "1")
    example.run("plain_loop.py", "--fail-in-epoch", "2", status=1)
    out, _ = example.run("plain_loop.py", "--resume", "--epochs", "2")
    assert "goes on with run plain-loop-2 after epoch 1" in out and "run plain-loop-2: 40 steps, finished" in out
    assert example.journal("plain-loop-2").run()["status"] == "finished"
    assert "resumed" not in example.journal("plain-loop").run()


def test_a_resume_without_a_checkpoint_says_so_and_begins_a_run(example):
    out, _ = example.run("plain_loop.py", "--epochs", "1", "--resume")
    assert "no checkpoint in plain-loop-output: a new run begins" in out and "run plain-loop: 20 steps" in out


def test_each_rank_journals_and_the_slow_one_is_told_by_its_data_wait(example):
    torchrun = ("-m", "torch.distributed.run", "--nproc-per-node", "2")
    out, _ = example.run("ddp.py", "--steps", "10", "--slow-rank", "1", "--slow-seconds", "0.08", launcher=torchrun)
    # torchrun may name the run by its own launch.
    (folder,) = example.root.glob("runs/ddp*")
    journal = example.journal(folder.name)
    assert f"run {folder.name}: 2 ranks, 10 steps, finished" in out and f"journal  {folder}" in out
    assert journal.run()["status"] == "finished" and journal.run()["world_size"] == 2
    for rank in (0, 1):
        assert list(journal.steps(rank)) == list(range(1, 11))
        assert len(journal.values("loss", rank)) == 10
        assert journal.events("end", rank)[0]["status"] == "finished"
    assert min(journal.values("data_wait_seconds", 1)) >= 0.08
    # The other waits for it in the exchange of gradients.
    assert median(journal.values("data_wait_seconds", 0)) < 0.04 < median(journal.values("backward_seconds", 0))


def test_the_loop_of_reinforcement_learning_journals_rewards_and_both_phases(example):
    out, _ = example.run("rl_loop.py", "--slow-generation")
    journal = example.journal("rl-loop")
    assert "run rl-loop: 80 steps, finished" in out and f"journal  {journal.folder}" in out
    assert journal.run()["status"] == "finished" and list(journal.steps()) == list(range(1, 81))
    for name in ("loss", "reward_mean", "reward_min", "reward_max", "kl", "entropy", "gradient_norm"):
        assert len(journal.values(name)) == 80, name
    rewards = journal.values("reward_mean")
    assert rewards[0] < 0.5 and rewards[-1] > 0.9
    assert journal.values("entropy")[-1] < journal.values("entropy")[0]
    assert min(journal.values("generation_seconds")) >= 0.02 > median(journal.values("training_seconds"))
    assert [event["name"] for event in journal.events("alert")] == ["certain policy"]
