"""What each kind of finding is, without a number: the heading of an alert, in the words of the rule of that name.

summary("GpuMissing", Place(), "gpu1")   ->   "gpu1 has fewer GPUs than it should"
"""

from trainvitals.detect.finding import Place

SUMMARIES = {
    "TrainingNonFinite": "Loss or gradient norm of run {run} is not a number",
    "TrainingLossSpike": "The loss of run {run} jumped",
    "TrainingLossDiverging": "The loss of run {run} runs away",
    "TrainingLossNotDecreasing": "The loss of run {run} does not fall",
    "TrainingLossPlateau": "The loss of run {run} lies flat",
    "TrainingGradientExplosion": "The gradients of run {run} explode",
    "TrainingGradientNormHigh": "The gradient norm of run {run} is high",
    "TrainingGradientVanishing": "The gradients of run {run} vanish",
    "TrainingLearningRateTooLow": "The learning rate of run {run} is next to nothing",
    "TrainingLearningRateTooHigh": "The learning rate of run {run} grew, and its loss with it",
    "TrainingStalled": "Run {run} makes no steps",
    "TrainingHangSuspected": "Run {run} hangs in a collective, it seems",
    "TrainingCrashed": "Run {run} ended by an exception",
    "TrainingKilled": "Run {run} is gone without having ended",
    "TrainingCheckpointOverdue": "Run {run} saved no checkpoint for long",
    "TrainingThroughputRegression": "Run {run} became slower",
    "TrainingStepTimeOutlier": "Single steps of run {run} are slow",
    "TrainingDataStarved": "Run {run} waits for data",
    "TrainingStraggler": "A rank of run {run} is slower than its peers",
    "HostMemoryLeak": "Memory of a training process grows without end",
    "GpuMemoryLeak": "Memory of a GPU of {host} grows without end",
    "GpuOutOfMemorySoon": "A GPU of {host} is about to run out of memory",
    "GpuMissing": "{host} has fewer GPUs than it should",
    "GpuXidFatal": "A GPU of {host} reports a fatal error",
    "GpuXidWarning": "A GPU of {host} reports an error",
    "GpuEccUncorrectable": "A GPU of {host} lost data to a memory error",
    "GpuEccCorrectedRate": "Memory errors of a GPU of {host} become more",
    "GpuRowRemapFailed": "A GPU of {host} cannot repair its memory any more",
    "GpuRowRemapPending": "A GPU of {host} waits for a reset to repair its memory",
    "GpuRecoveryActionNeeded": "The driver asks for a GPU of {host} to be reset, or the node rebooted",
    "GpuNvlinkDown": "An NVLink of a GPU of {host} is down",
    "GpuNvlinkErrors": "NVLinks of a GPU of {host} make errors",
    "GpuPcieDegraded": "The PCIe link of a GPU of {host} is slower than it should be",
    "GpuPcieReplays": "The PCIe link of a GPU of {host} repeats packets",
    "GpuHardwareSlowdown": "A GPU of {host} is slowed down by its hardware",
    "GpuPowerBrake": "The power supply of {host} holds a GPU back",
    "GpuThermalMargin": "A GPU of {host} is close to slowing itself down",
    "GpuTemperatureHigh": "A GPU of {host} is hot",
    "GpuMemoryTemperatureHigh": "The memory of a GPU of {host} is hot",
    "GpuMemoryHigh": "Memory of a GPU of {host} is nearly full",
    "GpuIdleAllocated": "A GPU of {host} idles while its memory is held",
    "GpuSharedByOthers": "Others use a GPU of {host} that a run is on",
    "HostCpuHigh": "The processors of {host} are busy",
    "HostMemoryHigh": "Memory of {host} runs short",
    "HostIowaitHigh": "Processes of {host} wait for disks",
    "HostSwapThrash": "{host} moves memory in and out of swap",
    "HostOomKill": "The kernel of {host} killed a process for want of memory",
    "HostDiskFillingUp": "A disk of {host} is full within a day",
    "HostDiskFull": "A disk of {host} is full, or will be within hours",
    "SourceDown": "A source of readings on {host} does not answer",
    "JournalErrors": "Records of the journal on {host} are lost or cannot be read",
}


def summary(kind: str, place: Place, host: str) -> str:
    """Of a rule of the user's own there is the name alone."""
    words = SUMMARIES.get(kind, "The rule {kind} of your own is met")
    return words.format(run=place.run or "(unnamed)", host=host, kind=kind)
