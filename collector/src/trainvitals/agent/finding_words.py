"""A finding in so few words that they fit into a line with others: `GPU 3 near its heat limit`, `gemma makes no steps`.
The same GPU is `throttled by heat` while it says so.

A kind that has none of its own, as a rule of the user's, is told by its name.
"""

from collections.abc import Collection, Mapping
from typing import Any

MAX_NAME = 40
GPU_HEAT = frozenset(("GpuThermalMargin", "GpuHardwareSlowdown", "GpuTemperatureHigh"))
_HOT = frozenset(("GpuThermalMargin", "GpuTemperatureHigh"))
# What follows the name of the run, the GPU, or nothing where it is of the machine.
WORDS = {
    "TrainingNonFinite": "has NaN or infinite values",
    "TrainingLossSpike": "has a spike in its loss",
    "TrainingLossDiverging": "diverges",
    "TrainingLossNotDecreasing": "does not learn",
    "TrainingLossPlateau": "is on a plateau",
    "TrainingGradientExplosion": "has exploding gradients",
    "TrainingGradientNormHigh": "has a high gradient norm",
    "TrainingGradientVanishing": "has vanishing gradients",
    "TrainingLearningRateTooLow": "has a learning rate near zero",
    "TrainingLearningRateTooHigh": "has too high a learning rate",
    "TrainingStalled": "makes no steps",
    "TrainingHangSuspected": "hangs, it seems",
    "TrainingCrashed": "has crashed",
    "TrainingKilled": "was killed",
    "TrainingCheckpointOverdue": "is late with a checkpoint",
    "TrainingThroughputRegression": "is slower than it was",
    "TrainingStepTimeOutlier": "has single slow steps",
    "TrainingDataStarved": "waits for data",
    "TrainingStraggler": "holds up the others",
    "HostMemoryLeak": "needs more and more memory",
    "GpuMemoryLeak": "needs more and more memory",
    "GpuOutOfMemorySoon": "runs out of memory soon",
    "GpuMissing": "missing",
    "GpuXidFatal": "has failed",
    "GpuXidWarning": "had an error",
    "GpuEccUncorrectable": "has memory errors",
    "GpuEccCorrectedRate": "corrects ever more memory errors",
    "GpuRowRemapFailed": "has memory that cannot be mended",
    "GpuRowRemapPending": "wants a reset to mend its memory",
    "GpuRecoveryActionNeeded": "wants a recovery action",
    "GpuNvlinkDown": "has lost an NVLink",
    "GpuNvlinkErrors": "has NVLink errors",
    "GpuPcieDegraded": "has a slow PCIe link",
    "GpuPcieReplays": "has PCIe errors",
    "GpuHardwareSlowdown": "slowed down by its hardware",
    "GpuPowerBrake": "slowed down for want of power",
    "GpuThermalMargin": "near its heat limit",
    "GpuTemperatureHigh": "hot",
    "GpuMemoryTemperatureHigh": "has hot memory",
    "GpuMemoryHigh": "almost out of memory",
    "GpuIdleAllocated": "held and idle",
    "GpuSharedByOthers": "used by others too",
    "HostCpuHigh": "processors are busy",
    "HostMemoryHigh": "memory is almost full",
    "HostIowaitHigh": "processors wait for disks",
    "HostSwapThrash": "the machine swaps",
    "HostOomKill": "the kernel killed a process for want of memory",
    "HostDiskFillingUp": "a disk fills up",
    "HostDiskFull": "a disk is full",
    "SourceDown": "a source of readings is down",
    "JournalErrors": "the journal loses records",
}


def finding_words(alert: Mapping[str, Any], throttled: Collection[str] = ()) -> str:
    """Of an alert as a snapshot lists it. `throttled`: the GPUs that are held down by heat now."""
    kind, labels = alert["name"], alert["labels"]
    run, rank, gpu = (str(labels.get(label) or "") for label in ("run", "rank", "gpu"))
    who = " ".join(filter(None, [short(run), rank and f"rank {rank}"])) if run else gpu and f"GPU {gpu}"
    if kind not in WORDS:
        return f"{kind} ({who})" if who else str(kind)
    who = who or ("a GPU" if kind.startswith("Gpu") else "")
    return " ".join(filter(None, [who, _words(kind, labels.get("severity"), gpu in throttled)]))


def _words(kind: str, severity: str | None, is_throttled: bool) -> str:
    if kind in _HOT and is_throttled:
        return "throttled by heat"
    return "at its heat limit" if (kind, severity) == ("GpuThermalMargin", "page") else WORDS[kind]


def short(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
