"""The NVML source on the stand-in: right values, fields that fail alone, and a driver that comes and goes."""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pynvml
import pytest

from tests.collector.support import wait_for
from tests.fakenvml import Scenario
from trainvitals import catalog
from trainvitals.errors import DeviceLost, SourceAbsent, SourceError
from trainvitals.model import Event, Reading
from trainvitals.sources import nvml
from trainvitals.sources.nvml import NvmlSource


def gpu(source: NvmlSource, index: int = 0) -> nvml.Gpu:
    return source.discover()[index]


def values(source: NvmlSource, tier: str, index: int = 0) -> dict[str, object]:
    """All that the tier's readings say of the GPU."""
    readings = [one for one in gpu(source, index).read(tier) if one.scope == "gpu"]  # type: ignore[arg-type]
    return {name: value for one in readings for name, value in one.values.items()}


def test_fast_fields_of_the_right_gpu_in_the_catalogues_units(source: NvmlSource, scenario: Scenario) -> None:
    scenario.write("gpus 2\ngpu 1 temperature 91\ngpu 1 power_usage 512345\ngpu 1 memory_used 81920\n")
    read = values(source, "fast", 1)
    assert read["temperature_celsius"] == 91
    assert read["power_draw_watts"] == pytest.approx(512.345)
    assert read["clock_hertz_sm"] == 1740e6
    assert values(source, "fast", 0)["temperature_celsius"] == 58


def test_every_field_that_is_read_is_in_the_catalogue_under_its_tier(source: NvmlSource, scenario: Scenario) -> None:
    scenario.write("gpus 1\ngpu 0 processes 100:512,200:256\n")
    for tier in ("fast", "slow", "rare"):
        for name in values(source, tier):
            assert name in catalog.fields("gpu", tier), f"{name} is no {tier} field"  # type: ignore[arg-type]


def test_a_full_device_fills_every_gpu_field_of_the_catalogue(source: NvmlSource, scenario: Scenario) -> None:
    scenario.write("gpus 1\ngpu 0 mig 2\n")
    read = {name for tier in ("fast", "slow", "rare") for name in values(source, tier)}
    read |= {name for reading in gpu(source).read("slow") if reading.scope == "gpu" for name in reading.values}
    assert set(catalog.fields("gpu")) - read <= {"utilization_percent", "memory_controller_utilization_ratio",
                                                 "encoder_utilization_ratio", "decoder_utilization_ratio"}  # fmt: skip


@pytest.mark.parametrize(("call", "field"), [
    ("fan_speed", "fan_speed_percent"), ("power_usage", "power_draw_watts"), ("temperature", "temperature_celsius"),
    ("total_energy_consumption", "energy_joules_total"), ("performance_state", "performance_state"),
])  # fmt: skip
@pytest.mark.parametrize("how", ["unsupported {}", "error {} UNKNOWN"])
def test_a_field_fails_alone_and_is_absent(
    source: NvmlSource, scenario: Scenario, call: str, field: str, how: str
) -> None:
    before = values(source, "fast")
    scenario.add(f"gpu 0 {how.format(call)}")
    assert before.keys() - values(source, "fast").keys() == {field}


def test_an_unsupported_field_is_not_asked_again_and_a_failing_one_is(source: NvmlSource, scenario: Scenario) -> None:
    scenario.add("gpu 0 unsupported fan_speed")
    scenario.add("gpu 0 error power_usage UNKNOWN")
    device = gpu(source)
    device.read("fast")
    scenario.write("gpus 2")
    again = device.read("fast")[0].values
    assert "fan_speed_percent" not in again
    assert "power_draw_watts" in again
    assert device.errors == 1


def test_old_drivers_are_asked_by_the_old_calls(source: NvmlSource, scenario: Scenario) -> None:
    scenario.add("gpu 0 error clocks_event_reasons FUNCTION_NOT_FOUND")
    scenario.add("gpu 0 error memory_info_v2 FUNCTION_NOT_FOUND")
    read = values(source, "fast")
    assert {"throttle_active", "memory_used_mb"} <= read.keys()


def test_throttle_reasons_have_the_catalogues_names(source: NvmlSource, scenario: Scenario) -> None:
    scenario.add(f"gpu 0 clocks_event_reasons {0x08 | 0x40}")
    assert values(source, "fast")["throttle_active"] == ("hw_slowdown", "hw_thermal_slowdown")


def test_a_lost_gpu_says_so_and_the_other_goes_on(source: NvmlSource, scenario: Scenario) -> None:
    first, second = source.discover()
    scenario.add("gpu 0 lost")
    with pytest.raises(DeviceLost, match="GPU 0"):
        first.read("fast")
    assert second.read("fast")
    assert [device.key for device in source.discover()] == [second.key]


@pytest.mark.parametrize(("answer", "fix"), [
    ("DRIVER_NOT_LOADED", "modprobe nvidia"), ("LIB_RM_VERSION_MISMATCH", "restart"),
    ("NO_PERMISSION", "--gpus all"), ("UNKNOWN", "nvidia-smi"),
])  # fmt: skip
def test_a_driver_that_does_not_answer_is_an_error_with_its_fix(
    source: NvmlSource, scenario: Scenario, answer: str, fix: str
) -> None:
    scenario.write(f"init {answer}")
    with pytest.raises(SourceError, match=fix):
        source.discover()


def test_no_driver_is_an_error_only_where_there_is_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    monkeypatch.setattr(nvml, "has_hardware", lambda: False)
    assert isinstance(nvml.explained(missing), SourceAbsent)
    monkeypatch.setattr(nvml, "has_hardware", lambda: True)
    assert not isinstance(nvml.explained(missing), SourceAbsent)
    assert "install the NVIDIA driver" in str(nvml.explained(missing))


def test_hardware_is_seen_on_the_pci_bus(tmp_path: object) -> None:
    folder = tmp_path / "0000:01:00.0"  # type: ignore[operator]
    folder.mkdir()
    (folder / "vendor").write_text("0x10de\n")
    (folder / "class").write_text("0x040300\n")
    assert nvml.has_hardware(tmp_path) is False  # type: ignore[arg-type]  # the sound device of a graphics card
    (folder / "class").write_text("0x030200\n")
    assert nvml.has_hardware(tmp_path) is True  # type: ignore[arg-type]


def test_a_driver_reload_keeps_devices_and_their_objects(source: NvmlSource, scenario: Scenario) -> None:
    before = source.discover()
    scenario.add("reload 2")
    assert not [r for r in _readings_or_none(before[0]) if r.scope == "gpu"]
    after = source.discover()
    assert [id(device) for device in after] == [id(device) for device in before]
    assert after[0].read("fast")


def _readings_or_none(device: nvml.Gpu) -> list[Reading]:
    try:
        return device.read("fast")
    except SourceError:
        return []


@pytest.mark.parametrize("count", [0, 1, 64])
def test_from_no_gpu_to_64(source: NvmlSource, scenario: Scenario, count: int) -> None:
    scenario.write(f"gpus {count}")
    devices = source.discover()
    assert len({device.key for device in devices}) == count
    assert all(device.read("fast") for device in devices)


def test_gpus_that_come_and_go(source: NvmlSource, scenario: Scenario) -> None:
    two = source.discover()
    scenario.write("gpus 3")
    three = source.discover()
    scenario.write("gpus 1")
    one = source.discover()
    assert [len(two), len(three), len(one)] == [2, 3, 1]
    assert one[0] is three[0] is two[0]


def test_mig_instances_are_told_and_what_mig_hides_is_absent(source: NvmlSource, scenario: Scenario) -> None:
    scenario.add("gpu 0 mig 2")
    device = gpu(source)
    slow = device.read("slow")
    instances = [reading for reading in slow if reading.scope == "mig"]
    assert len({reading.label("mig") for reading in instances}) == 2
    assert all(reading.values["memory_total_bytes"] for reading in instances)
    assert {"mig_instances": 2.0} in [dict(reading.values) for reading in slow]
    assert "utilization_percent" not in device.read("fast")[0].values


def test_processes_whose_memory_the_driver_hides(source: NvmlSource, scenario: Scenario) -> None:
    scenario.add("gpu 0 processes 10:100,11:?")
    read = values(source, "slow")
    assert read["compute_processes"] == 2
    assert "compute_processes_memory_bytes" not in read


def test_each_process_is_told_by_itself_and_once(source: NvmlSource, scenario: Scenario) -> None:
    scenario.add("gpu 0 mig 2")
    scenario.add(f"gpu 0 processes {os.getpid()}:100:1,{os.getpid()}:50:2,4194999:2000,11:?")
    told = [one for one in gpu(source).read("slow") if one.scope == "process"]
    held = {int(one.label("pid")): one.number("memory_bytes") for one in told}
    assert held == {4194999: 2000 * 2**20, os.getpid(): 150 * 2**20, 11: None}
    assert told[0].labels[2:] == (("pid", "4194999"), ("user", ""), ("command", "")), (
        "the largest, of which nothing else is known"
    )


def test_links_that_are_down_are_counted(source: NvmlSource, scenario: Scenario) -> None:
    scenario.add("gpu 0 nvlink_down 5")
    read = values(source, "slow")
    assert (read["nvlink_links"], read["nvlink_links_active"]) == (18, 16)


def test_every_xid_is_an_event(source: NvmlSource, scenario: Scenario) -> None:
    device = gpu(source, 1)
    found: list[Event] = []
    scenario.xid(1, 79)
    scenario.xid(1, 79)
    scenario.xid(1, 31)
    wait_for(lambda: found.extend(source.wait_events(0.2)) or len(found) == 3)
    assert {event.kind for event in found} == {"xid"}
    assert [event.details["xid"] for event in found] == [79, 79, 31]
    assert abs(found[0].timestamp - time.time()) < 60
    assert found[0].labels == (("gpu", "1"), ("uuid", device.key))


def test_xids_come_again_after_a_driver_reload(source: NvmlSource, scenario: Scenario) -> None:
    gpu(source)
    source.wait_events(0.05)
    scenario.add("reload 2")
    source.wait_events(0.05)
    source.discover()
    scenario.xid(0, 48)
    assert wait_for(lambda: source.wait_events(0.2))[0].details == {"xid": 48}


def test_waiting_for_events_without_a_driver_just_waits(source: NvmlSource, scenario: Scenario) -> None:
    scenario.write("init DRIVER_NOT_LOADED")
    assert list(source.wait_events(0.01)) == []


def test_a_gpu_that_hangs_delays_no_other(source: NvmlSource, scenario: Scenario) -> None:
    hung, well = source.discover()
    scenario.add("gpu 0 delay_ms 60000")
    thread = threading.Thread(target=_ignoring(lambda: hung.read("fast")), daemon=True)
    thread.start()
    began = time.monotonic()
    for _ in range(20):
        assert well.read("fast")
    assert time.monotonic() - began < 30
    assert thread.is_alive()
    scenario.write("gpus 2")
    thread.join(10)


def _ignoring(call: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        with suppress(SourceError):
            call()

    return run


def test_a_gpu_that_hangs_from_the_start_hides_no_other(source: NvmlSource, scenario: Scenario) -> None:
    scenario.write("gpus 4\ngpu 2 delay_ms 60000\n")
    assert [device.index for device in source.discover()] == [0, 1, 3]
    assert source.gpu_count == 4
    scenario.write("gpus 4")
    wait_for(lambda: len(source.discover()) == 4)


def test_a_gpu_that_cannot_be_identified_hides_no_other(source: NvmlSource, scenario: Scenario) -> None:
    scenario.write("gpus 4\ngpu 3 error uuid UNKNOWN\n")
    assert [device.index for device in source.discover()] == [0, 1, 2]


def test_a_field_that_becomes_supported_is_found_in_time(source: NvmlSource, scenario: Scenario) -> None:
    scenario.add("gpu 0 unsupported fan_speed")
    device = gpu(source)
    device.read("fast")
    scenario.write("gpus 2")
    for _ in range(nvml.ASK_AGAIN_EVERY):
        device.read("rare")
    assert "fan_speed_percent" in device.read("fast")[0].values
