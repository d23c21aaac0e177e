"""What to do first about each kind of finding, in one sentence. The runbooks say more."""

RUNBOOKS = "https://github.com/trainvitals/trainvitals/blob/main/docs/runbooks/"

ADVICE = {
    "TrainingNonFinite": "Stop the run and go back to the last good checkpoint; lower the learning rate, or look at "
                         "the batch before.",
    "TrainingLossSpike": "Watch whether it comes down again; if not, go back to a checkpoint and skip the batches in "
                         "between.",
    "TrainingLossDiverging": "Stop the run, go back to a checkpoint and lower the learning rate.",
    "TrainingLossNotDecreasing": "Look at learning rate and data; a run that has converged may be ended.",
    "TrainingLossPlateau": "Compare the learning rate with that of a run that went on falling.",
    "TrainingGradientExplosion": "Clip gradients or lower the learning rate, from a checkpoint before it began.",
    "TrainingGradientNormHigh": "If clipping is on it only says that clipping works; otherwise clip, or lower the "
                                "learning rate.",
    "TrainingGradientVanishing": "Look for frozen layers, a detached graph, a loss scale that fell to nothing.",
    "TrainingLearningRateTooLow": "Look at the scheduler: total steps counted per device, or a resume that began it "
                                  "at its end.",
    "TrainingLearningRateTooHigh": "Go back to a checkpoint from before it grew, and let it grow slower or less.",
    "TrainingStalled": "`py-spy dump --pid` of a rank shows where it waits; look at storage and at the other ranks "
                       "before you end it.",
    "TrainingHangSuspected": "One rank is not where the others wait: `py-spy dump` all ranks, look for an Xid, then "
                             "restart from the last checkpoint.",
    "TrainingCrashed": "Read the exception in the run's events, mend it, and resume from the last checkpoint.",
    "TrainingKilled": "Look for the kernel's out-of-memory killer (`journalctl -k`), a scheduler's time limit, a "
                      "reboot; then resume from the last checkpoint.",
    "TrainingCheckpointOverdue": "See whether its disk has room: a crash now costs all since the last one.",
    "TrainingThroughputRegression": "Compare data wait, clocks and ranks before and after; a neighbour on host or "
                                    "storage is a usual cause.",
    "TrainingStepTimeOutlier": "Single slow steps cost little; many of them want a look at data loading and storage.",
    "TrainingDataStarved": "Look at storage first, then give the loader more workers or prefetching.",
    "TrainingStraggler": "Look at its GPU's clocks and temperature, its host's load and its data; leave the node out "
                         "if it stays.",
    "HostMemoryLeak": "Suspect lists that keep tensors, loader workers and caches; resume from a checkpoint before "
                      "memory is full.",
    "GpuMemoryLeak": "Suspect losses or outputs that are kept with their graph: `.item()` or `.detach()` them.",
    "GpuOutOfMemorySoon": "Save a checkpoint now; then a smaller batch, or "
                          "`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` against fragments.",
    "GpuMissing": "`nvidia-smi -L` and `dmesg | grep -i xid` say which is gone and why; one off the bus comes back by "
                  "a reboot at best.",
    "GpuXidFatal": "Take the GPU out of service, then reset it or reboot; what ran on it is lost.",
    "GpuXidWarning": "The GPU goes on: reset it when the run is over.",
    "GpuEccUncorrectable": "Results since then are suspect: stop, go back to the last checkpoint, reset the GPU.",
    "GpuEccCorrectedRate": "Nothing is lost yet: plan a reset, and watch for row remapping.",
    "GpuRowRemapFailed": "Take the GPU out of service: it has to be replaced.",
    "GpuRowRemapPending": "Reset the GPU when the run is over: only then are the bad rows put aside.",
    "GpuRecoveryActionNeeded": "Drain the node, do what the driver asks for, then watch for Xids.",
    "GpuNvlinkDown": "`nvidia-smi nvlink -s` shows which link; collectives hang or crawl until a reset or a repair.",
    "GpuNvlinkErrors": "`nvidia-smi nvlink -e` says which link; reseat or replace what it goes through.",
    "GpuPcieDegraded": "Reseat the card and look at the BIOS: its link is below what card and slot allow.",
    "GpuPcieReplays": "Reseat the card, look at riser and slot; `lspci -vv` shows the link's errors.",
    "GpuHardwareSlowdown": "Look at temperature and fans first, then at power.",
    "GpuPowerBrake": "Look at the server's power supplies and limits: they ask for less.",
    "GpuThermalMargin": "Look at air flow, fans and neighbours; `nvidia-smi -pl` lowers the power limit and wins time.",
    "GpuTemperatureHigh": "Compare its neighbours: one alone has a fan or dust problem, all of them a room problem.",
    "GpuMemoryTemperatureHigh": "Look at air flow and thermal pads: memory slows down before the die does.",
    "GpuMemoryHigh": "Watch the run's allocated memory: frameworks keep what they once got, so this alone is no fault.",
    "GpuIdleAllocated": "`nvidia-smi` shows whose process holds it: ask, or end it.",
    "GpuSharedByOthers": "Ask whose process it is: both are slower for it.",
    "HostCpuHigh": "Look at what runs (`top`); loaders that starve GPUs show as data wait.",
    "HostMemoryHigh": "Find who holds it (`ps aux --sort=-rss | head`) before the kernel ends a process.",
    "HostIowaitHigh": "See which disk (`iostat -x 5`); move the data set to a local one, or save less often.",
    "HostSwapThrash": "End or move what holds the memory: everything on this machine is slow.",
    "HostOomKill": "`journalctl -k | grep -i 'out of memory'` names it; a killed loader ends the run with it.",
    "HostDiskFillingUp": "See what grows (`du -xh --max-depth=2`); old checkpoints are the usual find.",
    "HostDiskFull": "Delete or move now: the next checkpoint fails, and the journal loses records.",
    "SourceDown": "`trainvitals doctor` says what it lacks.",
    "JournalErrors": "See whether the journal's disk is full or read-only (`df`, `mount`).",
}  # fmt: skip

# Those that the agent alone sees: of all others Prometheus has a rule, under the same name.
WITHOUT_RULE = frozenset(("TrainingGradientExplosion", "TrainingLearningRateTooHigh", "TrainingLossPlateau",
                          "TrainingStepTimeOutlier", "GpuSharedByOthers"))  # fmt: skip


def has_rule(kind: str) -> bool:
    """Of a user's own there is none."""
    return kind in ADVICE and kind not in WITHOUT_RULE


def runbook(kind: str) -> str:
    """Of a kind that is not ours, a user's own rule, there is none."""
    return f"{RUNBOOKS}{kind}.md" if kind in ADVICE else ""
