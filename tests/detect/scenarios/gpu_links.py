"""NVLink and PCIe: links that go down, become narrow, or make errors."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.detect.scenarios.gpu_faults import changes, nothing
from tests.detect.scenarios.node import A100, H100, RTX, GpuEdit, Node
from tests.detect.scenarios.scenario import Build, Recording, Row, Scenario, family
from tests.detect.scenarios.training import T0
from tests.detect.scenarios.truth import PAGE, TICKET
from tests.detect.scenarios.watching import counted, put, seen

BEGIN = 600.0
Edits = Callable[[int, int], tuple[GpuEdit, ...]]


# The collectives of every rank now go over fewer links, or none: the node is to be drained.
def links_left(left: Callable[[float], float]) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        gpu, model = rng.randrange(4), (H100, A100)[seed % 2]
        edit = put("nvlink_links_active", left(model.links), gpu, first=BEGIN)
        node = Node(gpus=4, seconds=1800, tick=5.0, model=model, seed=seed, gpu_edits=(edit,))
        return Recording(nodes=(node,), expected=(seen("GpuNvlinkDown", PAGE, T0, BEGIN, 60.0, gpu),))

    return build


# Links that never were up, as a bridge that nobody plugged in, and cards that have none.
def never_up(seed: int, rng: random.Random) -> Recording:
    model, edits = (
        (H100, (put("nvlink_links_active", 12.0, -1),)),
        (replace(A100, links=4.0), (put("nvlink_links_active", 0.0, -1),)),
        (RTX, ()),
    )[seed % 3]
    return Recording(nodes=(Node(gpus=2, seconds=1500, tick=5.0, model=model, seed=seed, gpu_edits=edits),))


def errors(name: str, per_minute: float) -> Edits:
    return lambda gpu, seed: (counted(name, lambda since: per_minute, gpu, BEGIN),)


# Each error is a packet sent again: bandwidth goes, and a cable or a connector will follow.
def error_rate(kind: str, name: str, per_minute: float) -> Build:
    return changes(kind, TICKET, errors(name, per_minute), 1500.0, begin=BEGIN, seconds=3600.0)


def _hourly(name: str) -> Edits:
    """One in half an hour, or an old count."""
    return lambda gpu, seed: errors(name, 0.034)(gpu, seed) if seed % 2 else (put(name, 260.0, gpu),)


def _burst(name: str) -> Edits:
    """Some hundred within a minute, as when somebody moves a cable, and then no more."""
    return lambda gpu, seed: (counted(name, lambda since: 300.0 if since < 30 + 15 * seed else 0.0, gpu, BEGIN),)


def degraded(edits: Edits) -> Build:
    return changes("GpuPcieDegraded", TICKET, edits, 1500.0, begin=BEGIN, seconds=3000.0)


def _generation(lower: float) -> Edits:
    return lambda gpu, seed: (put("pcie_generation", lower, gpu, first=BEGIN),)


def _width(lanes: float) -> Edits:
    return lambda gpu, seed: (put("pcie_width", lanes, gpu, first=BEGIN),)


# Links go down to the first generation to save power where nothing computes, and come back when something does.
def idle_link(seed: int, rng: random.Random) -> Recording:
    """Idle through, or every few minutes: a node nobody uses, one that serves single requests."""

    def busy(when: float) -> bool:
        return seed % 2 == 1 and (when - T0) % 300 < 40

    node = Node(gpus=3, seconds=3000, tick=5.0, seed=seed, busy=busy, held=lambda when: False)
    return Recording(nodes=(node,))


def scenarios() -> Iterator[Scenario]:
    replay, errors_of = "pcie_replays_total", "nvlink_errors_total_"
    yield from family(
        "nvlink",
        "GpuNvlinkDown",
        (
            Row("clear", "all", links_left(lambda links: 0.0), times=3),
            Row("clear", "some", links_left(lambda links: links - 6), times=2),
            Row("faint", "one", links_left(lambda links: links - 1), times=4),
            Row("near", "never-up", never_up, times=3),
        ),
    )
    yield from family(
        "nvlink",
        "GpuNvlinkErrors",
        (
            Row("clear", "replays", error_rate("GpuNvlinkErrors", errors_of + "replay", 900.0), times=3),
            Row("clear", "checksums", error_rate("GpuNvlinkErrors", errors_of + "crc_flit", 4000.0), times=2),
            Row("faint", "one-a-second", error_rate("GpuNvlinkErrors", errors_of + "crc_data", 60.0), times=3),
            Row("near", "few", nothing(_hourly(errors_of + "replay"), 3600.0), times=4),
            Row("near", "burst", nothing(_burst(errors_of + "crc_flit"), 3600.0), times=3),
        ),
    )
    yield from family(
        "pcie",
        "GpuPcieDegraded",
        (
            Row("clear", "first-generation", degraded(_generation(1.0)), times=3),
            Row("clear", "four-lanes", degraded(_width(4.0)), times=2),
            Row("faint", "half-the-lanes", degraded(_width(8.0)), times=3),
            Row("faint", "one-less", degraded(_generation(3.0)), times=2),
            Row("near", "idle", idle_link, times=4),
        ),
    )
    yield from family(
        "pcie",
        "GpuPcieReplays",
        (
            Row("clear", "many", error_rate("GpuPcieReplays", replay, 600.0), times=4),
            Row("faint", "one-a-second", error_rate("GpuPcieReplays", replay, 60.0), times=3),
            Row("near", "few", nothing(_hourly(replay), 3600.0), times=4),
            Row("near", "burst", nothing(_burst(replay), 3600.0), times=3),
        ),
    )
