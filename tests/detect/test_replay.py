"""`trainvitals replay`: recorded runs judged on the recorded clock, by the command that people type."""

import math
from pathlib import Path
from typing import Any

import pytest

from tests.detect.support import BEGAN, line, lines, parsed, write
from trainvitals.agent.rank_index import RankIndex
from trainvitals.cli import main
from trainvitals.journal.record import encode, timestamp_at


def replayed(capsys: pytest.CaptureFixture[str], *words: object) -> list[dict[str, Any]]:
    assert main(["replay", "--json", *map(str, words)]) == 0
    return parsed(capsys.readouterr().out)


def nan_at(step: int) -> list[dict[str, Any]]:
    return lines(200, loss=lambda at: math.nan if at >= step else 3.0 - at / 1000)


def test_a_folder_of_metrics_alone_is_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "gemma", nan_at(120))
    (found,) = replayed(capsys, folder)
    wanted = {"kind": "TrainingNonFinite", "severity": "page", "run": "gemma", "rank": 0, "gpu": None, "step": 120}
    assert {name: found[name] for name in wanted} == wanted
    assert found["first_timestamp"] == timestamp_at(BEGAN + 120)
    assert found["last_timestamp"] == timestamp_at(BEGAN + 200)
    assert found["escalated_timestamp"] is None
    assert found["value"] == "NaN"


def test_for_people_it_says_how_many_would_have_been_woken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "gemma", nan_at(120))
    assert main(["replay", str(tmp_path / "gemma")]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("page   2025-07-30T12:02:00.000Z  TrainingNonFinite  run gemma rank 0 step 120: ")
    assert told[-1] == "1 finding, 1 page among them."


def test_of_a_healthy_run_there_is_nothing_to_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "gemma", lines(300, loss=lambda at: 3.0 - at / 1000))
    assert main(["replay", str(tmp_path / "gemma")]) == 0
    assert capsys.readouterr().out == "Nothing would have been told.\n"


def test_a_journal_stands_for_all_of_its_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("gemma", "llama"):
        write(tmp_path / "runs" / name, nan_at(120))
    assert [found["run"] for found in replayed(capsys, tmp_path)] == ["gemma", "llama"]


def test_ranks_are_judged_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in range(4):
        slow = 1.5 if rank == 2 else 1.0
        told = lines(300, 2.0, step_duration_seconds=lambda at: 1.5, forward_seconds=lambda at, of=slow: 0.5 * of)
        write(tmp_path / "gemma", told, f"training_metrics_20250730_120000.rank{rank}.jsonl")
    (found,) = replayed(capsys, tmp_path / "gemma")
    assert (found["kind"], found["rank"], found["severity"]) == ("TrainingStraggler", 2, "page")


def test_what_happens_between_two_lives_is_no_stall(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "gemma", lines(100, loss=lambda at: 3.0))
    again = [line(step + 7200, loss=3.0) | {"step": step} for step in range(90, 200)]
    write(folder, again, "training_metrics_20250730_140130.jsonl")
    assert replayed(capsys, folder) == []


def test_a_ticket_that_becomes_a_page_is_told_as_the_page_and_when_it_became_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def waits(at: int) -> float:
        return 0.15 if at < 2000 else 0.8

    told = lines(4000, step_duration_seconds=lambda at: 1.0, data_wait_seconds=waits)
    folder = write(tmp_path / "gemma", told)
    (found,) = (one for one in replayed(capsys, folder) if one["kind"] == "TrainingDataStarved")
    assert (found["severity"], found["threshold"]) == ("page", 0.3)
    assert found["value"] > 0.3 and found["step"] > 2000
    assert found["first_timestamp"] < timestamp_at(BEGAN + 1000)
    assert timestamp_at(BEGAN + 2000) < found["escalated_timestamp"] < timestamp_at(BEGAN + 2400)
    assert main(["replay", str(folder)]) == 0
    said = capsys.readouterr().out
    assert f"page   {found['escalated_timestamp']}  TrainingDataStarved" in said
    assert f"less severe since {found['first_timestamp']}" in said


def test_the_gpus_lines_of_the_time_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "runs" / "gemma", lines(100, loss=lambda at: 3.0 - at / 1000))
    (folder / "process.rank0.json").write_text('{"host": "gpu1", "gpus": [{"gpu": "0", "uuid": "GPU-0"}]}')
    values = {"gpu_index": 0, "uuid": "GPU-0", "utilization_percent": 100.0, "power_draw_watts": 90.0,
              "power_limit_watts": 700.0}  # fmt: skip
    gpu = [{"timestamp": timestamp_at(BEGAN + second), **values} for second in range(0, 400, 2)]
    write(tmp_path / "gpu" / "gpu1", gpu, "gpu_metrics_20250730_120000.jsonl")
    kinds = {found["kind"] for found in replayed(capsys, folder)}
    assert kinds == {"TrainingHangSuspected"}


def test_a_machine_without_runs_is_judged_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    xid = {"timestamp": timestamp_at(BEGAN), "event": "xid", "gpu": "3", "uuid": "GPU-3", "xid": 79}
    write(tmp_path / "gpu" / "gpu1", [xid], "events.jsonl")
    assert [found["kind"] for found in replayed(capsys, tmp_path)] == ["GpuXidFatal"]
    (tmp_path / "runs").mkdir()
    assert [found["kind"] for found in replayed(capsys, tmp_path)] == ["GpuXidFatal"]


def test_of_a_journal_in_which_nothing_lies_there_is_nothing_to_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runs").mkdir()
    assert replayed(capsys, tmp_path) == []


def test_what_is_no_run_is_passed_over_in_a_journal_and_its_machines_are_judged_long_after_it_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "runs" / "gemma", nan_at(120))
    (tmp_path / "runs" / "copied").mkdir()
    (tmp_path / "runs" / "copied" / "notes.txt").write_text("mine")
    xid = {"timestamp": timestamp_at(BEGAN + 86400), "event": "xid", "gpu": "3", "uuid": "GPU-3", "xid": 79}
    write(tmp_path / "gpu" / "gpu1", [xid], "events.jsonl")
    kinds = [found["kind"] for found in replayed(capsys, tmp_path)]
    assert (kinds[0], kinds[-1]) == ("TrainingNonFinite", "GpuXidFatal")
    assert "GpuXidFatal" not in {found["kind"] for found in replayed(capsys, tmp_path / "runs" / "gemma")}


def test_idleness_costs_what_it_costs_in_a_replay_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = {"gpu_index": 0, "uuid": "GPU-0", "utilization_percent": 0.0, "memory_used_mb": 40_000.0}
    stamps = [{"timestamp": timestamp_at(BEGAN + second)} for second in range(0, 2400, 20)]
    write(tmp_path / "gpu" / "gpu1", [one | values for one in stamps], "gpu_metrics_20250730_120000.jsonl")
    host = [one | {"node_price_dollars_per_hour": 12.0} for one in stamps]
    write(tmp_path / "gpu" / "gpu1", host, "host_metrics_20250730_120000.jsonl")
    (found,) = replayed(capsys, tmp_path)
    assert found["what"].endswith("12.00 an hour")


def test_each_machine_is_judged_by_its_own_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "runs" / "gemma", lines(900, loss=lambda at: 3.0 - at / 1000))
    for host, kills, cpu in (("gpu1", 0.0, 5.0), ("gpu2", 3.0, 99.0)):
        told = [{"timestamp": timestamp_at(BEGAN + second), "cpu_usage_percent": cpu,
                 "oom_kills_total": kills + (host == "gpu2" and second >= 300), "journal_read_errors_total": kills,
                 "filesystems": {"/": {"size_bytes": 1e12, "free_bytes": 4e11 - 1e11 * kills}}}
                for second in range(0, 900, 5)]  # fmt: skip
        write(tmp_path / "gpu" / host, told, "host_metrics_20250730_120000.jsonl")
    found = [(one["kind"], one["host"]) for one in replayed(capsys, tmp_path)]
    assert found == [("HostOomKill", "gpu2"), ("HostCpuHigh", "gpu2")]


def test_what_happens_on_one_machine_is_no_cause_of_what_happens_on_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for run, host in (("gemma", "gpu1"), ("llama", "gpu2")):
        folder = write(tmp_path / "runs" / run, lines(100, loss=lambda at: 3.0 - at / 1000))
        (folder / "process.rank0.json").write_text(f'{{"host": "{host}", "gpus": []}}')
        end = {"timestamp": timestamp_at(BEGAN + 101), "event": "end", "status": "crashed"}
        write(folder, [end] if run == "llama" else [], "events.rank0.jsonl")
        xid = {"timestamp": timestamp_at(BEGAN + 100), "event": "xid", "gpu": "3", "uuid": "GPU-3", "xid": 79}
        write(tmp_path / "gpu" / host, [xid] if run == "gemma" else [], "events.jsonl")
    found = {one["kind"]: one["evidence"] for one in replayed(capsys, tmp_path)}
    assert found == {"GpuXidFatal": [], "TrainingCrashed": []}


def test_rules_of_ones_own_judge_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "alerts.yml"
    rules.write_text("rules:\n- {name: Too low, when: loss < 2.9, message: 'at {loss:.2f}'}\n"
                     "thresholds: {gradient_norm: 3}\n")  # fmt: skip
    told = lines(200, loss=lambda at: 3.0 - at / 1000, gradient_norm=lambda at: 4.0)
    found = replayed(capsys, write(tmp_path / "gemma", told), "--rules", rules)
    assert {one["kind"] for one in found} == {"Too low", "TrainingGradientNormHigh"}


@pytest.mark.parametrize(("words", "said"), [
    (["/nowhere"], "RUN_DIR: '/nowhere' cannot be used"),
    (["{folder}"], "no training_metrics_*.jsonl lies there"),
])  # fmt: skip
def test_a_folder_that_is_none_is_named(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", *(word.format(folder=tmp_path) for word in words)]) == 2
    assert said in capsys.readouterr().err


def test_a_bad_rules_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "alerts.yml"
    rules.write_text("thresholds: {loss_spike: 3}\n")
    assert main(["replay", str(write(tmp_path / "gemma", nan_at(3))), "--rules", str(rules)]) == 2
    told = capsys.readouterr().err
    assert "thresholds: loss_spike" in told and "the nearest one is loss_spike_steps" in told


def test_broken_lines_and_foreign_files_do_no_harm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "gemma", nan_at(120))
    (folder / "training_metrics_20250730_130000.jsonl").write_bytes(
        b'{"step": "x", "loss": [1]}\n{"timestamp": 3, "step": NaN, "loss": 1}\nnot json\n\x00\xff\n{"loss": 1e400}\n'
    )
    (folder / "agent").write_text("no folder")
    (folder / "run.json").write_text('{"planned_steps": "many", "config": {"alert_thresholds": {"x": 1}}}')
    assert "TrainingNonFinite" in {found["kind"] for found in replayed(capsys, folder)}


def test_an_index_beside_the_run_is_no_part_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "runs" / "gemma"
    write(folder, lines(3000, loss=lambda at: math.nan if at >= 120 else 3.0 - at / 1000))
    (folder / "agent").mkdir()
    before = replayed(capsys, folder)
    assert RankIndex(folder, "gpu1", 0).advance(lambda: False)
    [path] = (folder / "agent").iterdir()
    # Even one that holds what looks like an agent's report.
    report = encode({"event": "status", "status": "killed", "timestamp": timestamp_at(BEGAN)})
    path.write_bytes(path.read_bytes() + report)
    assert replayed(capsys, folder) == before != []


def test_what_follows_from_a_finding_is_told_with_it_in_the_same_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "runs" / "gemma", lines(200, loss=lambda at: 3.0 - at / 1000))
    events = [{"timestamp": timestamp_at(BEGAN + 100 + gpu), "event": "xid", "gpu": str(gpu), "uuid": f"GPU-{gpu}",
               "xid": number} for gpu, number in ((3, 79), (3, 63))]  # fmt: skip
    write(tmp_path / "gpu" / "node-a", events, "events.jsonl")
    (found,) = replayed(capsys, tmp_path)
    (follows,) = found["evidence"]
    assert (found["kind"], found["gpu"]) == ("GpuXidFatal", 3)
    assert (follows["kind"], follows["gpu"], follows["uuid"]) == ("GpuXidWarning", 3, "GPU-3")
