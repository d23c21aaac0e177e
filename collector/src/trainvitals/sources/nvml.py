"""NVIDIA's management library: GPUs, their Xid events, and what to do when the driver does not answer.

Each field fails alone; a field that a device does not support is not asked for again. Handles belong
to one start of the library: after a driver reload it is shut down and started afresh, and the devices
go on under their UUIDs.
"""

import ctypes
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pynvml as nv

from trainvitals.errors import DeviceLost, SourceAbsent, SourceError
from trainvitals.model import Event, Labels, Reading, Tier, Value
from trainvitals.sources import nvml_fields
from trainvitals.sources.nvml_fields import PROBES, text
from trainvitals.sources.processes import process_readings

T = TypeVar("T")
Identity = Any  # a handle and a UUID, or the error in their place
log = logging.getLogger("trainvitals.nvml")

_GONE = {nv.NVML_ERROR_GPU_IS_LOST, nv.NVML_ERROR_GPU_NOT_FOUND}
_DOWN = {nv.NVML_ERROR_UNINITIALIZED, nv.NVML_ERROR_DRIVER_NOT_LOADED, nv.NVML_ERROR_LIB_RM_VERSION_MISMATCH}
_NEVER = {nv.NVML_ERROR_NOT_SUPPORTED, nv.NVML_ERROR_FUNCTION_NOT_FOUND,
          nv.NVML_ERROR_ARGUMENT_VERSION_MISMATCH, nv.NVML_ERROR_DEPRECATED}  # fmt: skip

FIXES = {
    nv.NVML_ERROR_LIBRARY_NOT_FOUND: "install the NVIDIA driver; in a container start it with `--gpus all`; "
    "on WSL install the driver in Windows and see that /usr/lib/wsl/lib is there",
    nv.NVML_ERROR_DRIVER_NOT_LOADED: "load the driver with `sudo modprobe nvidia`; after a kernel update "
    "install it again or restart",
    nv.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "the driver was updated while the old module stays loaded: "
    "restart, or `sudo rmmod nvidia_uvm nvidia` and load it again",
    nv.NVML_ERROR_NO_PERMISSION: "let this user read /dev/nvidia* (in a container: `--gpus all`)",
    nv.NVML_ERROR_UNINITIALIZED: "the driver was reloaded; it is tried again by itself",
}
ASK_AGAIN_EVERY = 5
IDENTIFY_SECONDS = 1.5
_LOOK_AT_SMI = "see what `nvidia-smi` says"


class Gpu:
    """One device, read by one thread."""

    def __init__(self, index: int, uuid: str, handle: Any) -> None:
        self.key = uuid
        self.errors = 0
        self.index = index
        self.labels: Labels = (("gpu", str(index)), ("uuid", uuid))
        self._handle = handle
        self._rare_reads = 0
        self._unsupported: set[Callable[..., object]] = set()

    def renew(self, handle: Any) -> None:
        """The same device after the library was started again."""
        if _address(handle) != _address(self._handle):
            self._handle = handle
            self._unsupported = set()

    @property
    def handle(self) -> Any:
        return self._handle

    def read(self, tier: Tier) -> list[Reading]:
        began = time.time()
        values: dict[str, Value] = {}
        for probe in PROBES[tier]:
            if probe not in self._unsupported:
                values.update(self._ask(probe) or {})
        readings = [Reading("gpu", self.labels, values, began)] if values else []
        if tier == "fast":
            return readings
        if tier == "rare":
            self._ask_all_again_now_and_then()
        listings = (self._identity,) if tier == "rare" else (self._instances, self._processes)
        return readings + [reading for listing in listings for reading in self._ask(listing) or ()]

    def _ask_all_again_now_and_then(self) -> None:
        """A field may become known: MIG is switched off, a setting changed."""
        self._rare_reads += 1
        if self._rare_reads % ASK_AGAIN_EVERY == 0:
            self._unsupported = set()

    def _ask(self, probe: Callable[[Any], T]) -> T | None:
        try:
            return probe(self._handle)
        except nv.NVMLError as error:
            self._note(probe, error)
            return None

    def _note(self, probe: Callable[..., object], error: nv.NVMLError) -> None:
        if error.value in _NEVER:
            self._unsupported.add(probe)
            return
        self.errors += 1
        if error.value in _GONE:
            raise DeviceLost("nvml", f"GPU {self.index} ({self.key}) does not answer: {error}",
                             "its Xid in the kernel log (`dmesg | grep Xid`) says why") from error  # fmt: skip
        if error.value in _DOWN:
            raise explained(error) from error

    def _identity(self, handle: Any) -> list[Reading]:
        labels = (*self.labels, *nvml_fields.identity(handle))
        return [Reading("gpu_info", labels, {"info": 1.0}, time.time())]

    def _processes(self, handle: Any) -> list[Reading]:
        told = nvml_fields.processes(handle)
        return process_readings(self.labels, told, time.time())

    def _instances(self, handle: Any) -> list[Reading]:
        if not nv.nvmlDeviceGetMigMode(handle)[0]:
            return []
        readings = []
        for slot in range(nv.nvmlDeviceGetMaxMigDeviceCount(handle)):
            with suppress(nv.NVMLError_NotFound, nv.NVMLError_NotSupported):
                readings.append(self._instance(nv.nvmlDeviceGetMigDeviceHandleByIndex(handle, slot)))
        count = Reading("gpu", self.labels, {"mig_instances": float(len(readings))}, time.time())
        return [count, *readings]

    def _instance(self, handle: Any) -> Reading:
        memory = nv.nvmlDeviceGetMemoryInfo(handle)
        labels = (*self.labels, ("mig", text(nv.nvmlDeviceGetUUID(handle))))
        values = {"memory_used_bytes": float(memory.used), "memory_total_bytes": float(memory.total)}
        return Reading("mig", labels, values, time.time())


class NvmlSource:
    name = "nvml"

    def __init__(self) -> None:
        self.gpu_count = 0
        self._started = False
        self._asked: set[int] = set()
        self._said: set[tuple[int, str]] = set()
        self._gpus: dict[str, Gpu] = {}
        self._uuids: dict[int, str] = {}
        self._generation = 0
        self._events: tuple[int, object, set[int]] | None = None
        self._pause = threading.Event()

    def discover(self) -> Sequence[Gpu]:
        try:
            return self._find()
        except nv.NVMLError:
            self._stop()
        try:
            return self._find()
        except nv.NVMLError as error:
            self._stop()
            raise explained(error) from error

    def wait_events(self, timeout: float) -> Sequence[Event]:
        try:
            if not self._registered():
                self._pause.wait(timeout)
                return []
            data = nv.nvmlEventSetWait_v2(self._events[1] if self._events else None, int(timeout * 1000))
        except nv.NVMLError_Timeout:
            return []
        except nv.NVMLError:
            self._events = None
            self._pause.wait(timeout)
            return []
        return self._xid_events(data)

    def close(self) -> None:
        self._pause.set()

    def _find(self) -> Sequence[Gpu]:
        if not self._started:
            nv.nvmlInit()
            self._started = True
            self._generation += 1
        self.gpu_count = nv.nvmlDeviceGetCount()
        answers = self._identified(self.gpu_count)
        found = [gpu for index in range(self.gpu_count) if (gpu := self._gpu(index, answers.get(index))) is not None]
        errors = [answer for answer in answers.values() if isinstance(answer, nv.NVMLError)]
        if errors and not found and not all(error.value in _GONE for error in errors):
            raise errors[0]
        self._gpus = {gpu.key: gpu for gpu in found}
        return found

    def _identified(self, count: int) -> dict[int, Identity]:
        """Each GPU is asked who it is in a thread of its own, so that one that hangs hides no other."""
        answers: dict[int, Identity] = {}
        threads = []
        for index in set(range(count)) - self._asked:
            self._asked.add(index)
            threads.append(threading.Thread(target=self._identify, args=(index, answers), daemon=True))
            threads[-1].start()
        deadline = time.monotonic() + IDENTIFY_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return dict(answers)

    def _identify(self, index: int, answers: dict[int, Identity]) -> None:
        try:
            handle = nv.nvmlDeviceGetHandleByIndex(index)
            answers[index] = handle, self._uuids.get(_address(handle)) or text(nv.nvmlDeviceGetUUID(handle))
        except nv.NVMLError as error:
            answers[index] = error
        finally:
            self._asked.discard(index)

    def _gpu(self, index: int, answer: Identity) -> Gpu | None:
        """A GPU known before that does not answer now stays: how it is read tells whether it lives."""
        if answer is None:
            self._say(index, "it does not answer")
            return next((gpu for gpu in self._gpus.values() if gpu.index == index), None)
        if isinstance(answer, nv.NVMLError):
            if answer.value in _DOWN:
                raise answer
            self._say(index, str(answer))
            return None
        handle, uuid = answer
        self._uuids[_address(handle)] = uuid
        gpu = self._gpus.get(uuid)
        if gpu is None or gpu.index != index:
            return Gpu(index, uuid, handle)
        gpu.renew(handle)
        return gpu

    def _say(self, index: int, problem: str) -> None:
        if (index, problem) not in self._said:
            self._said.add((index, problem))
            log.warning("nvml: GPU %d cannot be identified: %s", index, problem)

    def _stop(self) -> None:
        if self._started:
            self._started = False
            self._uuids = {}
            with suppress(nv.NVMLError):
                nv.nvmlShutdown()

    def _registered(self) -> bool:
        """An event set for the devices there are; made anew when they or the library changed."""
        gpus = list(self._gpus.values())
        wanted = {_address(gpu.handle) for gpu in gpus}
        if self._events and self._events[0] == self._generation and self._events[2] == wanted:
            return True
        self._events = None
        if not gpus:
            return False
        events = nv.nvmlEventSetCreate()
        registered = [self._register(gpu, events) for gpu in gpus]
        self._events = (self._generation, events, wanted)
        return any(registered)

    def _register(self, gpu: Gpu, events: object) -> bool:
        try:
            nv.nvmlDeviceRegisterEvents(gpu.handle, nv.nvmlEventTypeXidCriticalError, events)
        except nv.NVMLError:
            return False
        return True

    def _xid_events(self, data: Any) -> list[Event]:
        address = _address(data.device)
        gpu = next((gpu for gpu in self._gpus.values() if _address(gpu.handle) == address), None)
        if gpu is None or not data.eventType & nv.nvmlEventTypeXidCriticalError:
            return []
        xid, now = int(data.eventData), time.time()
        return [Event("xid", gpu.labels, {"xid": xid}, now)]


def explained(error: nv.NVMLError) -> SourceError:
    """The error with its remedy; a machine that has no NVIDIA device is not in error."""
    fix = FIXES.get(error.value, _LOOK_AT_SMI)
    if error.value == nv.NVML_ERROR_LIBRARY_NOT_FOUND and not has_hardware():
        return SourceAbsent("nvml", "this machine has no NVIDIA GPU")
    return SourceError("nvml", str(error), fix)


def has_hardware(devices: Path = Path("/sys/bus/pci/devices")) -> bool:
    """Whether an NVIDIA display or compute device sits on the PCI bus, or WSL lends one."""
    for device in devices.glob("*"):
        with suppress(OSError):
            vendor = (device / "vendor").read_text(encoding="ascii").strip()
            kind = (device / "class").read_text(encoding="ascii")
            if vendor == "0x10de" and kind.startswith("0x03"):
                return True
    return Path("/dev/dxg").exists()


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
