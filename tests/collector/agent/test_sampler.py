"""The tick: all devices together, one that hangs alone, nothing stale, and devices that come and go."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.collector.agent.fakes import FakeEventSource, FakeGpu, FakeSource
from tests.collector.support import wait_for
from trainvitals.agent import sampler as module
from trainvitals.agent import worker
from trainvitals.agent.sampler import Sample, Sampler, merged
from trainvitals.errors import DeviceLost, SourceAbsent, SourceError
from trainvitals.model import Event, Reading, Tier


class Watcher:
    """Keeps what a sampler publishes."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.events: list[Event] = []

    @property
    def last(self) -> Sample:
        return self.samples[-1]

    def gpus(self) -> list[str]:
        return [reading.label("gpu") for reading in self.last.readings] if self.samples else []

    def value(self, gpu: int, name: str = "temperature_celsius") -> object:
        readings = self.last.readings if self.samples else []
        of_gpu = [reading for reading in readings if reading.label("gpu") == str(gpu)]
        return of_gpu[0].values.get(name) if of_gpu else None


@contextmanager
def sampling(*sources: FakeSource, interval: float = 0.05) -> Iterator[tuple[Sampler, Watcher]]:
    watcher = Watcher()
    sampler = Sampler(sources, interval, watcher.samples.append, watcher.events.append)
    sampler.start()
    try:
        yield sampler, watcher
    finally:
        sampler.stop()


def test_the_first_sample_has_every_device_and_tier() -> None:
    with sampling(FakeSource([FakeGpu(0), FakeGpu(1)])) as (_, watcher):
        wait_for(lambda: watcher.samples)
        assert [r.label("gpu") for r in watcher.samples[0].readings] == ["0", "1"]
        wait_for(lambda: watcher.value(0, "pcie_width_rare") == 1.0)
        assert watcher.value(0, "temperature_celsius") == 50.0


def test_a_device_that_hangs_holds_up_no_other_and_does_not_look_live() -> None:
    hung, well = FakeGpu(0), FakeGpu(1)
    with sampling(FakeSource([hung, well])) as (_, watcher):
        wait_for(lambda: watcher.gpus() == ["0", "1"])
        hung.delay = 60
        well.values = {"temperature_celsius": 77.0}
        wait_for(lambda: watcher.value(1) == 77.0, 3)
        wait_for(lambda: watcher.gpus() == ["1"], 15)
        assert watcher.last.sources["nvml"].up


def test_a_slow_device_is_still_told_of() -> None:
    with sampling(FakeSource([FakeGpu(0, delay=0.2)])) as (_, watcher):
        wait_for(lambda: watcher.value(0) == 50.0)


def test_a_lost_device_vanishes_at_once_and_comes_back() -> None:
    gpu = FakeGpu(0)
    with sampling(FakeSource([gpu, FakeGpu(1)])) as (_, watcher):
        wait_for(lambda: watcher.gpus() == ["0", "1"])
        gpu.error = DeviceLost("nvml", "GPU 0 does not answer")
        wait_for(lambda: watcher.gpus() == ["1"], 2)
        assert watcher.last.sources["nvml"].up
        gpu.error = None
        wait_for(lambda: watcher.gpus() == ["0", "1"], 2)


def test_a_bug_in_one_device_is_counted_and_the_rest_goes_on() -> None:
    gpu = FakeGpu(0, error=ZeroDivisionError("boom"))
    with sampling(FakeSource([gpu, FakeGpu(1)])) as (_, watcher):
        wait_for(lambda: watcher.samples and watcher.last.sources["nvml"].errors >= 3)
        assert watcher.gpus() == ["1"]


def test_a_source_that_went_is_down_with_its_reason_and_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DISCOVER_SECONDS", 0.05)
    gpu = FakeGpu(0)
    source = FakeSource([gpu])
    with sampling(source) as (_, watcher):
        wait_for(lambda: watcher.gpus() == ["0"])
        source.error = gpu.error = SourceError("nvml", "Driver Not Loaded", "modprobe")
        wait_for(lambda: watcher.last.sources["nvml"].up is False)
        assert "modprobe" in watcher.last.sources["nvml"].problem
        assert watcher.gpus() == []
        source.error = gpu.error = None
        wait_for(lambda: watcher.gpus() == ["0"])
        assert watcher.last.sources["nvml"].problem == ""


def test_a_source_with_nothing_to_read_is_neither_up_nor_down() -> None:
    with sampling(FakeSource([], error=SourceAbsent("nvml", "no NVIDIA GPU"))) as (_, watcher):
        wait_for(lambda: watcher.samples)
        assert watcher.last.sources["nvml"].up is None
        assert "no NVIDIA GPU" in watcher.last.sources["nvml"].problem


def test_a_source_that_hangs_at_the_start_is_not_waited_for() -> None:
    hang = threading.Event()
    with sampling(FakeSource([FakeGpu(0)], hang=hang), FakeSource([FakeGpu(1)], name="other")) as (_, watcher):
        wait_for(lambda: watcher.gpus() == ["1"], 8)
        hang.set()
        wait_for(lambda: watcher.gpus() == ["0", "1"])


def test_devices_come_and_go_between_discoveries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DISCOVER_SECONDS", 0.05)
    source = FakeSource([FakeGpu(0)])
    with sampling(source) as (_, watcher):
        wait_for(lambda: watcher.gpus() == ["0"])
        source.devices = [*source.devices, FakeGpu(1)]
        wait_for(lambda: watcher.gpus() == ["0", "1"])
        source.devices = source.devices[1:]
        wait_for(lambda: watcher.gpus() == ["1"])


def test_slow_tiers_are_read_seldom() -> None:
    gpu = FakeGpu(0)
    with sampling(FakeSource([gpu]), interval=0.02) as (_, watcher):
        wait_for(lambda: len(watcher.samples) > 20)
        assert gpu.reads <= len(watcher.samples) + 4


def test_events_are_handed_on() -> None:
    source = FakeEventSource([FakeGpu(0)])
    event = Event("xid", (("gpu", "0"),), {"xid": 79}, time.time())
    with sampling(source) as (_, watcher):
        source.events = [event]
        wait_for(lambda: watcher.events == [event])


def test_a_listener_that_fails_does_not_end_the_ticks() -> None:
    seen: list[Sample] = []

    def publish(sample: Sample) -> None:
        seen.append(sample)
        raise RuntimeError("a bug")

    sampler = Sampler([FakeSource([FakeGpu(0)])], 0.02, publish, lambda event: None)
    sampler.start()
    wait_for(lambda: len(seen) > 3)
    sampler.stop()


def test_fresh_holds_each_reading_once() -> None:
    gpu = FakeGpu(0)
    with sampling(FakeSource([gpu]), interval=0.02) as (_, watcher):
        wait_for(lambda: len(watcher.samples) > 10)
    taken = [r for sample in watcher.samples for r in sample.fresh if "temperature_celsius" in r.values]
    assert len(taken) == len({r.timestamp for r in taken})


def test_stopping_ends_the_sources_and_the_ticks() -> None:
    source = FakeSource([FakeGpu(0)])
    with sampling(source) as (_, watcher):
        wait_for(lambda: watcher.samples)
    assert source.closed
    wait_for(lambda: _stands_still(watcher))


def _stands_still(watcher: Watcher) -> bool:
    before = len(watcher.samples)
    time.sleep(0.3)
    return len(watcher.samples) == before


def test_a_sampler_that_no_longer_ticks_is_stuck() -> None:
    sampler = Sampler([], 1.0, lambda sample: None, lambda event: None)
    assert not sampler.is_stuck()
    sampler.last_published -= 60
    assert sampler.is_stuck()


def test_merging_keeps_one_reading_a_thing_and_the_later_value() -> None:
    labels = (("gpu", "0"),)
    readings = [Reading("gpu", labels, {"a": 1.0, "b": 1.0}, 1.0), Reading("gpu", labels, {"b": 2.0}, 2.0)]
    assert merged(readings) == [Reading("gpu", labels, {"a": 1.0, "b": 2.0}, 2.0)]


def test_dear_fields_that_take_long_do_not_hold_up_the_cheap_ones() -> None:
    class SlowOnce(FakeGpu):
        def read(self, tier: Tier) -> Sequence[Reading]:
            if tier == "slow":
                time.sleep(30)
            return super().read(tier)

    with sampling(FakeSource([SlowOnce(0)])) as (_, watcher):
        wait_for(lambda: watcher.value(0) == 50.0)
        begun = {sample.readings[0].timestamp for sample in watcher.samples if sample.readings}
        wait_for(lambda: len({s.readings[0].timestamp for s in watcher.samples if s.readings} - begun) > 5, 5)


def test_a_reading_is_as_old_as_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "STALE_SECONDS", 0.5)
    gpu = FakeGpu(0)
    with sampling(FakeSource([gpu])) as (_, watcher):
        wait_for(lambda: watcher.gpus() == ["0"])
        gpu.delay = 1.5
        gpu.values = {"temperature_celsius": 99.0}
        wait_for(lambda: watcher.gpus() == [])
        reads = gpu.reads
        wait_for(lambda: gpu.reads > reads + 1)
        assert 99.0 not in [watcher.value(0)]
