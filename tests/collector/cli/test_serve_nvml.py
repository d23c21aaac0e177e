"""`trainvitals serve` on the stand-in for NVML: the values of eight GPUs, and drivers that do not answer."""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.collector.cli.test_serve import ends_in_time, rest_of_words
from tests.collector.support import Served, run, serving, wait_for
from tests.fakenvml import Scenario, environment


@contextmanager
def serving_gpus(library: Path, folder: Path, text: str, *flags: str) -> Iterator[tuple[Served, Scenario]]:
    scenario = Scenario(folder / "scenario", text)
    with serving(folder / "journal", *flags, env=environment(library, scenario.path)) as agent:
        yield agent, scenario


def by_gpu(agent: Served, name: str) -> dict[str, float]:
    families = text_string_to_metric_families(agent.get("/metrics"))
    return {sample.labels["gpu"]: sample.value for family in families for sample in family.samples
            if sample.name == name}  # fmt: skip


def test_the_values_of_eight_gpus(nvml_folder: Path, tmp_path: Path) -> None:
    lines = [f"gpu {gpu} temperature {40 + gpu}\ngpu {gpu} power_usage {100_000 * (gpu + 1)}\n"
             f"gpu {gpu} memory_used {gpu * 2**30}\n" for gpu in range(8)]  # fmt: skip
    whole = f"gpu * utilization_gpu 97\ngpu * memory_total {80 * 2**30}\ngpu 3 unsupported fan_speed\n"
    text = "gpus 8\n" + "".join(lines) + whole
    with serving_gpus(nvml_folder, tmp_path, text) as (agent, _):
        wait_for(lambda: len(by_gpu(agent, "gpu_temperature_celsius")) == 8)
        assert by_gpu(agent, "gpu_temperature_celsius") == {str(gpu): 40.0 + gpu for gpu in range(8)}
        assert by_gpu(agent, "gpu_power_draw_watts") == {str(gpu): 100.0 * (gpu + 1) for gpu in range(8)}
        assert by_gpu(agent, "gpu_memory_used_mb") == {str(gpu): gpu * 1024.0 for gpu in range(8)}
        assert by_gpu(agent, "gpu_memory_total_mb") == {str(gpu): 80 * 1024.0 for gpu in range(8)}
        assert set(by_gpu(agent, "gpu_utilization_percent").values()) == {97.0}
        assert by_gpu(agent, "gpu_fan_speed_percent").keys() == {"0", "1", "2", "4", "5", "6", "7"}
        assert "8 x " in rest_of_words(agent)


@pytest.mark.parametrize(
    ("error", "fix"),
    [("DRIVER_NOT_LOADED", "sudo modprobe nvidia"), ("LIB_RM_VERSION_MISMATCH", "restart"),
     ("NO_PERMISSION", "/dev/nvidia*"), ("UNKNOWN", "nvidia-smi")],
)  # fmt: skip
def test_a_driver_that_does_not_answer_is_named_with_its_fix(
    nvml_folder: Path, tmp_path: Path, error: str, fix: str
) -> None:
    with serving_gpus(nvml_folder, tmp_path, f"gpus 2\ninit {error}\n") as (agent, scenario):
        words = rest_of_words(agent)
        assert fix in next(line for line in words.splitlines() if line.startswith("  GPUs"))
        assert 'trainvitals_source_up{source="nvml"} 0.0' in agent.get("/metrics")
        assert by_gpu(agent, "gpu_temperature_celsius") == {}
        doctor = run("doctor", "--dir", str(tmp_path / "journal"), env=environment(nvml_folder, scenario.path))
        assert doctor.returncode == 1
        assert fix in next(line for line in doctor.stdout.splitlines() if line.startswith("problem  GPUs"))


def test_an_xid_is_counted_and_kept(nvml_folder: Path, tmp_path: Path) -> None:
    with serving_gpus(nvml_folder, tmp_path, "gpus 2", "--interval", "0.1") as (agent, scenario):
        wait_for(lambda: len(by_gpu(agent, "gpu_temperature_celsius")) == 2)
        # Events count from when the agent listens, which is a moment after its first reading.
        wait_for(lambda: scenario.xid(1, 79) and by_gpu(agent, "gpu_xid_errors_total"), pause=0.3)
        assert by_gpu(agent, "gpu_xid_errors_total").keys() == {"1"}
        events = next((tmp_path / "journal" / "gpu").glob("*/events.jsonl"))
        event = json.loads(events.read_text().splitlines()[0])
        assert (event["event"], event["gpu"], event["xid"]) == ("xid", "1", 79)
        assert event["uuid"].startswith("GPU-")
        assert agent.snapshot()["xids"][0]["xid"] == "79"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_gpu_that_hangs_holds_up_neither_the_others_nor_the_end(
    nvml_folder: Path, tmp_path: Path, number: int
) -> None:
    with serving_gpus(nvml_folder, tmp_path, "gpus 3", "--interval", "0.1") as (agent, scenario):
        wait_for(lambda: len(by_gpu(agent, "gpu_temperature_celsius")) == 3)
        scenario.set(1, "delay_ms", 60_000)
        scenario.set(2, "temperature", 91)
        wait_for(lambda: by_gpu(agent, "gpu_temperature_celsius").get("2") == 91.0)
        ends_in_time(agent.process, number)


def test_a_driver_that_hangs_at_the_start_does_not_keep_the_page(nvml_folder: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    with serving_gpus(nvml_folder, tmp_path, "gpus 2\ninit_delay_ms 60000") as (agent, _):
        wait_for(lambda: agent.snapshot()["host"])
        print(f"first reading after {time.monotonic() - began:.2f} s")
        assert "cpu_usage_percent" in agent.get("/metrics")
        ends_in_time(agent.process, signal.SIGTERM)
