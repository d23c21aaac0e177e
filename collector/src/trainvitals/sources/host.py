"""The machine itself: processors, memory, disks, network; and the process trees of runs on it.

Only local file systems are asked for their space, a dead network mount would hang the read; and that of the journal. In
a container the host's /proc is mounted elsewhere, and `HostSource(proc=Path("/host/proc"))` reads it there.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from trainvitals.model import Reading, Tier, Value
from trainvitals.sources.journal_disk import JournalDisk, Space, space

Values = dict[str, Value]
_REAL_DISK = ("sd", "nvme", "vd", "xvd", "mmcblk", "md", "dm-")
_VIRTUAL_INTERFACE = ("lo", "veth", "docker", "br-", "cali", "flannel", "cni")
_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Host:
    key = "host"

    def __init__(self, per_core: bool = False, journal: Path | None = None) -> None:
        self.errors = 0
        self._journal = None if journal is None else JournalDisk(journal)
        self._per_core = per_core
        self._cpu = psutil.cpu_times()
        self._cores = psutil.cpu_times(percpu=True) if per_core else []

    def read(self, tier: Tier) -> Sequence[Reading]:
        now = time.time()
        values: Values = {}
        for probe in self._probes(tier):
            values.update(self._ask(probe, {}))
        readings = [Reading("host", (), values, now)]
        if tier == "slow":
            for listing in (self._filesystems, _disks, _networks):
                readings += self._ask(listing, [])
        return readings + (self._core_readings(now) if tier == "fast" and self._per_core else [])

    def _probes(self, tier: Tier) -> Iterable[Callable[[], Values]]:
        if tier == "fast":
            return (self._cpu_share, _memory)
        return (_swap, _load, _descriptors, _oom_kills) if tier == "slow" else (_constants,)

    def _ask(self, probe: Callable[[], Any], nothing: Any) -> Any:
        try:
            return probe()
        except (OSError, psutil.Error, ValueError, IndexError, AttributeError):
            self.errors += 1
            return nothing

    def _cpu_share(self) -> Values:
        before, self._cpu = self._cpu, psutil.cpu_times()
        total, busy = _spent(before, self._cpu)
        if total <= 0:
            return {}
        spent = self._cpu
        return {"cpu_usage_percent": 100 * busy / total,
                "cpu_iowait_ratio": max(0.0, spent.iowait - before.iowait) / total,
                "cpu_steal_ratio": max(0.0, spent.steal - before.steal) / total}  # fmt: skip

    def _filesystems(self) -> list[Reading]:
        disks = _local_disks()
        journal = None if self._journal is None else self._journal.ask()
        if journal and not any({journal.mountpoint, journal.device} & {*disk[:2]} for disk in disks):
            disks.append(journal)
        return [Reading("filesystem", (("mountpoint", disk.mountpoint),),
                        {"size_bytes": disk.size_bytes, "free_bytes": disk.free_bytes}, time.time())
                for disk in disks]  # fmt: skip

    def _core_readings(self, now: float) -> list[Reading]:
        before, self._cores = self._cores, psutil.cpu_times(percpu=True)
        shares = [_spent(old, new) for old, new in zip(before, self._cores, strict=False)]
        return [
            Reading("core", (("cpu", str(number)),), {"cpu_core_usage_percent": 100 * busy / total}, now)
            for number, (total, busy) in enumerate(shares)
            if total > 0
        ]


class HostSource:
    name = "host"
    gpu_count = 0

    def __init__(self, per_core: bool = False, proc: Path = _PROC, journal: Path | None = None) -> None:
        """`journal`: its folder, the room of which is told whatever it lies on."""
        psutil.PROCFS_PATH = str(proc)
        self._hosts = [Host(per_core, journal)]

    def discover(self) -> Sequence[Host]:
        return self._hosts

    def close(self) -> None:
        pass


def _proc(name: str = "") -> Path:
    return Path(psutil.PROCFS_PATH, name)


def _spent(before: Any, after: Any) -> tuple[float, float]:
    """Processor seconds in all and busy ones; guest time is in user time already."""
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    passed = {name: max(0.0, getattr(after, name) - getattr(before, name)) for name in names}
    total = sum(passed.values())
    return total, total - passed["idle"] - passed["iowait"]


def _memory() -> Values:
    memory = psutil.virtual_memory()
    return {"memory_total_bytes": float(memory.total), "memory_available_bytes": float(memory.available),
            "memory_used_bytes": float(memory.total - memory.available)}  # fmt: skip


def _swap() -> Values:
    swap = psutil.swap_memory()
    return {"swap_total_bytes": float(swap.total), "swap_used_bytes": float(swap.used),
            "swap_bytes_total_in": float(swap.sin), "swap_bytes_total_out": float(swap.sout)}  # fmt: skip


def _load() -> Values:
    return {f"load_average_{window}": load for window, load in zip(("1m", "5m", "15m"), os.getloadavg(), strict=True)}


def _descriptors() -> Values:
    used, _, most = _proc("sys/fs/file-nr").read_text(encoding="ascii").split()
    return {"file_descriptors_used": float(used), "file_descriptors_max": float(most)}


def _oom_kills() -> Values:
    for line in _proc("vmstat").read_text(encoding="ascii").splitlines():
        if line.startswith("oom_kill "):
            return {"oom_kills_total": float(line.split()[1])}
    return {}


def _constants() -> Values:
    return {"cpu_count": float(os.cpu_count() or 1), "boot_timestamp_seconds": psutil.boot_time()}


def _local_disks() -> list[Space]:
    disks, seen = [], set()
    for partition in psutil.disk_partitions(all=False):
        # What a container is given of its host's in /etc is on a disk that has another name.
        if partition.device in seen or partition.fstype == "squashfs" or partition.mountpoint.startswith("/etc/"):
            continue
        seen.add(partition.device)
        with suppress(OSError):
            disks.append(space(partition.mountpoint, partition.device, partition.mountpoint))
    return disks


def _disks() -> list[Reading]:
    counters = psutil.disk_io_counters(perdisk=True) or {}
    return [
        Reading("disk", (("device", name),),
                {"read_bytes_total": float(count.read_bytes), "written_bytes_total": float(count.write_bytes),
                 "busy_seconds_total": count.busy_time / 1000}, time.time())
        for name, count in counters.items()
        if name.startswith(_REAL_DISK) and Path("/sys/block", name).exists()
    ]  # fmt: skip


def _networks() -> list[Reading]:
    """Errors alone: the kernel counts as dropped what it knows no protocol for, which on most networks never ends."""
    return [
        Reading("network", (("interface", name),),
                {"receive_bytes_total": count[0], "receive_errors_total": count[2],
                 "transmit_bytes_total": count[8], "transmit_errors_total": count[10]}, time.time())
        for name, count in _network_counters()
        if not name.startswith(_VIRTUAL_INTERFACE)
    ]  # fmt: skip


def _network_counters() -> Iterable[tuple[str, list[float]]]:
    """The host's: a container that has processes in common with it still has a network of its own."""
    process = "self" if _proc() == _PROC else "1"
    for line in _proc(f"{process}/net/dev").read_text(encoding="utf-8", errors="replace").splitlines()[2:]:
        name, _, counts = line.rpartition(":")
        yield name.strip(), [float(count) for count in counts.split()]


def process_trees(roots: Iterable[int], proc: Path | None = None) -> dict[str, float]:
    """What the processes and all their descendants use together, in one pass over /proc. Time of
    children that ended is kept by their parents, so the sum of seconds does not fall."""
    stats = dict(_process_stats(proc or _proc()))
    family = {pid for pid in roots if pid in stats}
    for pid in stats:
        family.update(_line_of_descent(pid, stats, family))
    return _added_up([stats[pid] for pid in family])


def _line_of_descent(pid: int, stats: dict[int, list[str]], family: set[int]) -> list[int]:
    line: list[int] = []
    while pid in stats and pid not in family and len(line) < 64:
        line.append(pid)
        pid = int(stats[pid][1])
    return line if pid in family else []


def _process_stats(proc: Path) -> Iterable[tuple[int, list[str]]]:
    for entry in os.listdir(proc):
        if entry.isdigit():
            with suppress(OSError, IndexError):
                stat = (proc / entry / "stat").read_bytes().rpartition(b")")[2].decode("ascii").split()
                yield int(entry), stat


def _added_up(stats: list[list[str]]) -> dict[str, float]:
    if not stats:
        return {}
    return {"processes": float(len(stats)),
            "process_cpu_seconds_total": sum(sum(map(int, stat[11:15])) for stat in stats) / _TICKS,
            "process_threads": float(sum(int(stat[17]) for stat in stats)),
            "process_resident_bytes": float(sum(int(stat[21]) for stat in stats) * _PAGE)}  # fmt: skip
