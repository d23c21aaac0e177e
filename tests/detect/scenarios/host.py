"""The machine: processors, memory, disks, swap; and the agent's own troubles.

Of what a host's line holds beside the host's own values: `filesystems`, `source_up_nvml`, and what the journal lost.
"""

import random
from collections.abc import Iterator
from typing import Any

from tests.detect.scenarios.node import DISK, GIB, HOST_MEMORY, HostEdit, Node
from tests.detect.scenarios.scenario import Build, Recording, Row, Scenario, family
from tests.detect.scenarios.training import T0
from tests.detect.scenarios.truth import PAGE, TICKET, Allowed
from tests.detect.scenarios.watching import LONG, Course, host, seen

BEGIN = 900.0


def _node(seed: int, *edits: HostEdit, **settings: Any) -> Node:
    return Node(seed=seed, host_edits=edits, **({"gpus": 1, "seconds": 4500.0, "tick": 10.0} | settings))


def around(value: float, spread: float, seed: int) -> Course:
    rng = random.Random(f"around/{seed}")
    return lambda since: round(value + rng.uniform(-spread, spread), 4)


# Three quarters of an hour beyond the limit: what else runs there waits, and the loaders of the run first.
def level(kind: str, name: str, value: float, spread: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        node = _node(seed, host(name, around(value, spread, seed), BEGIN))
        return Recording(nodes=(node,), expected=(seen(kind, TICKET, T0, BEGIN, 2400.0),))

    return build


def of_two(build: Build) -> Build:
    """Beside a node with which nothing is wrong."""

    def both(seed: int, rng: random.Random) -> Recording:
        recording = build(seed, rng)
        recording.nodes += (_node(seed + 1, host="node-b", seconds=recording.nodes[0].seconds),)
        return recording

    return both


def below(name: str, value: float, spread: float, burst: float) -> Build:
    """Just under the limit, or beyond it for as long as a compilation takes."""

    def build(seed: int, rng: random.Random) -> Recording:
        edit = host(name, around(value, spread, seed), BEGIN)
        if seed % 2:
            edit = host(name, lambda since: burst, BEGIN, BEGIN + 19)
        return Recording(nodes=(_node(seed, edit),))

    return build


def free_memory(used: float) -> float:
    return HOST_MEMORY * (1 - used)


# Pages go out and come back at once: the machine works for its swap, and everything on it crawls.
def swapping(per_second: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        def total(since: float) -> float:
            return 1.0e9 + per_second * max(0.0, since - BEGIN)

        edits = host("swap_bytes_total_in", total), host("swap_bytes_total_out", total)
        return Recording(nodes=(_node(seed, *edits),), expected=(seen("HostSwapThrash", TICKET, T0, BEGIN, 2400.0),))

    return build


# What nobody needs goes out once; a few pages come back.
def swapped_once(seed: int, rng: random.Random) -> Recording:
    out = host("swap_bytes_total_out", lambda since: 1.0e9 + 40e6 * max(0.0, min(since - BEGIN, 120.0)))
    back = host("swap_bytes_total_in", lambda since: 2.0e8 + 2000.0 * since)
    return Recording(nodes=(_node(seed, *((out, back)[seed % 2 :])),))


# The kernel ended a process for want of memory: a loader, or the run.
def oom_kill(before: float, after: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        node = _node(seed, host("oom_kills_total", lambda since: after if since >= BEGIN else before), seconds=2400.0)
        return Recording(nodes=(node,), expected=(seen("HostOomKill", TICKET, T0, BEGIN, 120.0),))

    return build


def old_oom_kill(seed: int, rng: random.Random) -> Recording:
    return Recording(nodes=(_node(seed, host("oom_kills_total", lambda since: 3.0 + seed), seconds=2400.0),))


def disk(free: Course, mountpoint: str = "/data") -> HostEdit:
    def edit(since: float, values: dict[str, Any]) -> None:
        values["filesystems"] = {
            "/": {"size_bytes": 400 * GIB, "free_bytes": 211 * GIB},
            mountpoint: {"size_bytes": DISK, "free_bytes": float(round(DISK * max(0.0, free(since))))},
        }

    return edit


def filling(first: float, per_hour: float, begin: float = 0.0) -> Course:
    return lambda since: first - per_hour * max(0.0, since - begin) / 3600


# Full by tomorrow: checkpoints will fail in the night. Full within hours: now. With 40 % (20 %) left it may be a copy.
def disk_case(
    kind: str, severities: tuple[str, ...], free: Course, begin: float, within: float, hours: float = 5.0
) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        node = _node(seed, disk(free, ("/data", "/scratch")[seed % 2]), seconds=3600 * hours, tick=30.0)
        also = ("HostDiskFillingUp",) if kind == "HostDiskFull" else ()
        return Recording(
            nodes=(node,), expected=(seen(kind, severities, T0, begin, within),), allowed=tuple(map(Allowed, also))
        )

    return build


# Old checkpoints are cleared as new ones come, a data set is unpacked and that is it, or it is slow as weeks.
def room_enough(seed: int, rng: random.Random) -> Recording:
    courses: tuple[Course, ...] = (
        lambda since: 0.45 - 0.04 * (since % 3600) / 3600,
        lambda since: 0.62 - 0.2 * min(1.0, max(0.0, since - 3000) / 240),
        filling(0.5, 0.004),
        lambda since: 0.06,
    )
    return Recording(nodes=(_node(seed, disk(courses[seed % 4]), seconds=5 * 3600.0, tick=30.0),))


# What a source tells is unknown from here on, and nobody would notice by looking at the rest.
def source_down(seconds: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        last = BEGIN + seconds
        node = _node(
            seed,
            host("source_up_nvml", lambda since: 0.0 if BEGIN <= since < last else 1.0),
            gpus=2,
            tick=2.0,
            seconds=2400.0,
            silent=lambda since, gpu: gpu is not None and BEGIN <= since < last,
        )
        return Recording(
            nodes=(node,), expected=(seen("SourceDown", TICKET, T0, BEGIN, 600.0),), allowed=(Allowed("GpuMissing"),)
        )

    return build


# A machine without GPUs has no source for them; an agent that is started anew tells nothing for a moment.
def source_well(seed: int, rng: random.Random) -> Recording:
    if seed % 2:
        node = _node(seed, gpus=0, has_gpu_lines=False, tick=5.0, seconds=2400.0)
    else:
        node = _node(seed, gpus=2, tick=2.0, seconds=1500.0, silent=lambda since, gpu: BEGIN <= since < BEGIN + 35)
    return Recording(nodes=(node,))


# The history has a gap, and goes on having one.
def lost_records(name: str, count: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        def total(since: float) -> float:
            return float(int(count * min(1.0, max(0.0, since - BEGIN) / 300)))

        edit = host(name, total)
        return Recording(
            nodes=(_node(seed, edit, seconds=2400.0),), expected=(seen("JournalErrors", TICKET, T0, BEGIN, 900.0),)
        )

    return build


def old_losses(seed: int, rng: random.Random) -> Recording:
    return Recording(
        nodes=(_node(seed, host("journal_records_dropped_total", lambda since: 12.0 * (seed % 2)), seconds=2400.0),)
    )


def scenarios() -> Iterator[Scenario]:
    cpu, memory, wait = "cpu_usage_percent", "memory_available_bytes", "cpu_iowait_ratio"
    yield from family(
        "host-load",
        "HostCpuHigh",
        (
            Row("clear", "all", level("HostCpuHigh", cpu, 98.0, 1.5), times=3),
            Row("clear", "of-two", of_two(level("HostCpuHigh", cpu, 98.0, 1.5)), times=2),
            Row("faint", "just-over", level("HostCpuHigh", cpu, 92.0, 1.0), times=3),
            Row("near", "below", below(cpu, 87.0, 2.0, 100.0), times=4),
        ),
    )
    yield from family(
        "host-load",
        "HostIowaitHigh",
        (
            Row("clear", "half", level("HostIowaitHigh", wait, 0.5, 0.1), times=3),
            Row("faint", "just-over", level("HostIowaitHigh", wait, 0.225, 0.015), times=3),
            Row("near", "below", below(wait, 0.165, 0.02, 0.6), times=4),
        ),
    )
    yield from family(
        "host-memory",
        "HostMemoryHigh",
        (
            Row("clear", "full", level("HostMemoryHigh", memory, free_memory(0.95), GIB), times=3),
            Row("faint", "just-over", level("HostMemoryHigh", memory, free_memory(0.865), GIB), times=3),
            Row("near", "below", below(memory, free_memory(0.825), GIB, free_memory(0.88)), times=4),
        ),
    )
    yield from family(
        "host-memory",
        "HostSwapThrash",
        (
            Row("clear", "hard", swapping(60e6), times=3),
            Row("faint", "steadily", swapping(12e6), times=3),
            Row("near", "once", swapped_once, times=4),
        ),
    )
    yield from family(
        "host-memory",
        "HostOomKill",
        (
            Row("clear", "several", oom_kill(0.0, 4.0), times=3),
            Row("clear", "of-two", of_two(oom_kill(2.0, 3.0)), times=2),
            Row("faint", "one-more", oom_kill(6.0, 7.0), times=3),
            Row("near", "old", old_oom_kill, times=3),
        ),
    )
    yield from family(
        "disk",
        "HostDiskFillingUp",
        (
            Row(
                "clear",
                "in-ten-hours",
                disk_case("HostDiskFillingUp", TICKET, filling(0.44, 0.045), 0.0, 10800.0),
                times=3,
            ),
            Row(
                "faint", "in-a-day", disk_case("HostDiskFillingUp", TICKET, filling(0.42, 0.018), 0.0, 14400.0), times=3
            ),
            Row("near", "room-enough", room_enough, times=4),
        ),
    )
    yield from family(
        "disk",
        "HostDiskFull",
        (
            Row(
                "clear",
                "in-two-hours",
                disk_case("HostDiskFull", PAGE, filling(0.32, 0.2, BEGIN), BEGIN, 3600.0, 2.1),
                times=3,
            ),
            Row(
                "clear",
                "full",
                disk_case("HostDiskFull", PAGE, lambda since: 0.5 if since < 3600 else 0.012, 3600.0, 900.0, 2.0),
                times=2,
            ),
            Row("faint", "just-under", disk_case("HostDiskFull", PAGE, lambda since: 0.026, 0.0, 1800.0, 2.0), times=3),
            Row("near", "five-per-cent", disk_steady, times=3),
        ),
    )
    yield from family(
        "agent",
        "SourceDown",
        (
            Row("clear", "for-good", source_down(LONG), times=3),
            Row("faint", "ten-minutes", source_down(600.0), times=3),
            Row("near", "well", source_well, times=4),
        ),
    )
    dropped, unread = "journal_records_dropped_total", "journal_read_errors_total"
    yield from family(
        "agent",
        "JournalErrors",
        (
            Row("clear", "dropped", lost_records(dropped, 900.0), times=3),
            Row("clear", "not-read", lost_records(unread, 40.0), times=2),
            Row("faint", "a-few", lost_records(dropped, 3.0), times=3),
            Row("near", "old", old_losses, times=4),
        ),
    )


def disk_steady(seed: int, rng: random.Random) -> Recording:
    """Little room, but no less from hour to hour."""
    free = around(0.05 + 0.01 * (seed % 3), 0.0002, seed)
    return Recording(nodes=(_node(seed, disk(free), seconds=2 * 3600.0, tick=30.0),))
