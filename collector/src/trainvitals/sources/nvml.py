"""NVIDIA's management library: GPUs, their Xid events, and what to do when the driver does not answer.

Each field fails alone; a field that a device does not support is not asked for again. Handles belong
to one start of the library: after a driver reload it is shut down and started afresh, and the devices
go on under their UUIDs.
"""

import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pynvml as nv

from trainvitals.errors import DeviceLost, SourceAbsent, SourceError
from trainvitals.model import Event, Labels, Reading, Tier, Value
from trainvitals.sources.nvml_fields import PROBES, text

T = TypeVar("T")

_GONE = {nv.NVML_ERROR_GPU_IS_LOST, nv.NVML_ERROR_GPU_NOT_FOUND}
_DOWN = {nv.NVML_ERROR_UNINITIALIZED, nv.NVML_ERROR_DRIVER_NOT_LOADED, nv.NVML_ERROR_LIB_RM_VERSION_MISMATCH}
_NEVER = {nv.NVML_ERROR_NOT_SUPPORTED, nv.NVML_ERROR_FUNCTION_NOT_FOUND, nv.NVML_ERROR_NO_PERMISSION,
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
_LOOK_AT_SMI = "see what `nvidia-smi` says"


class Gpu:
    """One device, read by one thread."""

    def __init__(self, index: int, uuid: str, handle: Any, xids: "Xids") -> None:
        self.key = uuid
        self.errors = 0
        self.index = index
        self.labels: Labels = (("gpu", str(index)), ("uuid", uuid))
        self._handle = handle
        self._xids = xids
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
            return readings + self._xids.readings(self)
        more = self._ask(self._identity if tier == "rare" else self._instances)
        return readings + (more or [])

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
        labels = (*self.labels, ("name", _said(nv.nvmlDeviceGetName, handle)),
                  ("pci_bus_id", _said(lambda h: nv.nvmlDeviceGetPciInfo(h).busId, handle)),
                  ("driver_version", _said(nv.nvmlSystemGetDriverVersion)),
                  ("cuda_version", _cuda_version()),
                  ("vbios_version", _said(nv.nvmlDeviceGetVbiosVersion, handle)))  # fmt: skip
        return [Reading("gpu_info", labels, {"info": 1.0}, time.time())]

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


class Xids:
    """How often each Xid came, by GPU, since the agent started."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[int, tuple[int, float]]] = {}

    def add(self, uuid: str, xid: int, when: float) -> None:
        of_gpu = self._seen.setdefault(uuid, {})
        of_gpu[xid] = (of_gpu.get(xid, (0, 0.0))[0] + 1, when)

    def readings(self, gpu: Gpu) -> list[Reading]:
        now = time.time()
        return [
            Reading("xid", (*gpu.labels, ("xid", str(xid))),
                    {"errors_total": float(count), "last_timestamp_seconds": when}, now)
            for xid, (count, when) in list(self._seen.get(gpu.key, {}).items())
        ]  # fmt: skip


class NvmlSource:
    name = "nvml"

    def __init__(self) -> None:
        self._started = False
        self._gpus: dict[str, Gpu] = {}
        self._uuids: dict[int, str] = {}
        self._xids = Xids()
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
        found = [gpu for index in range(nv.nvmlDeviceGetCount()) if (gpu := self._gpu(index)) is not None]
        self._gpus = {gpu.key: gpu for gpu in found}
        return found

    def _gpu(self, index: int) -> Gpu | None:
        """A known handle is not asked for its name again: a GPU that hangs would hold up the rest."""
        try:
            handle = nv.nvmlDeviceGetHandleByIndex(index)
            address = _address(handle)
            uuid = self._uuids.get(address) or text(nv.nvmlDeviceGetUUID(handle))
        except nv.NVMLError as error:
            if error.value in _GONE:
                return None
            raise
        self._uuids[address] = uuid
        gpu = self._gpus.get(uuid)
        if gpu is None or gpu.index != index:
            return Gpu(index, uuid, handle, self._xids)
        gpu.renew(handle)
        return gpu

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
        self._xids.add(gpu.key, xid, now)
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


def _said(call: Callable[..., str | bytes], *arguments: Any) -> str:
    try:
        return text(call(*arguments))
    except nv.NVMLError:
        return ""


def _cuda_version() -> str:
    try:
        number = nv.nvmlSystemGetCudaDriverVersion_v2()
    except nv.NVMLError:
        return ""
    return f"{number // 1000}.{number % 1000 // 10}"
