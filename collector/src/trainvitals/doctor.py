"""What could be found on this machine, what not, and what mends it: `trainvitals doctor`."""

import errno
import os
import platform
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import wait
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from trainvitals import docker_engine
from trainvitals.console import typed
from trainvitals.errors import SourceAbsent, TrainVitalsError, install_words
from trainvitals.journal import layout, slow
from trainvitals.once import TIMEOUT_SECONDS, device_name, in_thread, problem
from trainvitals.sources import PERIODS, Device
from trainvitals.sources.nvml import NvmlSource, has_hardware

CONTAINER_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))
CONTROL_DEVICE = Path("/dev/nvidiactl")


class Check(NamedTuple):
    mark: str
    name: str
    text: str


def checks(settings: dict[str, Any]) -> list[Check]:
    parts = (_python, _container, _gpus, _engine, _journal, _address)
    return [check for part in parts for check in part(settings)]


def is_well(found: list[Check]) -> bool:
    return all(check.mark != "problem" for check in found)


def _python(_: dict[str, Any]) -> Iterator[Check]:
    yield Check("ok", "python", f"{platform.python_version()} on {platform.system()} {platform.release()}")


def _container(_: dict[str, Any]) -> Iterator[Check]:
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        yield Check("note", "container", "GPUs are seen here only when the pod's limits ask for nvidia.com/gpu")
    elif any(mark.exists() for mark in CONTAINER_MARKS):
        yield Check("note", "container", "GPUs are seen here only when it was started with `--gpus all` or CDI")
    if "microsoft" in platform.release().lower():
        yield Check("note", "WSL", "the driver is Windows's; Xid events and some fields are not told here")


def _gpus(_: dict[str, Any]) -> Iterator[Check]:
    found = in_thread(NvmlSource().discover)
    wait([found], TIMEOUT_SECONDS)
    failed = problem("nvml", found)
    if not failed:
        gpus = found.result()
        yield Check("ok" if gpus else "problem", "GPUs", f"{len(gpus)} answer" if gpus else "the driver knows of none")
        yield from _read(gpus)
    elif found.done() and isinstance(error := found.exception(), SourceAbsent):
        yield Check("note", "GPUs", f"{error.problem}; `{typed()} demo` shows simulated ones")
    else:
        yield Check("problem", "GPUs", failed)
        yield from _device_files()


def _read(gpus: Sequence[Device]) -> Iterator[Check]:
    """All at the same time: of one that hangs the others are not the worse."""
    reads = [(gpu, in_thread(_fields, gpu)) for gpu in gpus]
    wait([read for _, read in reads], TIMEOUT_SECONDS)
    for gpu, read in reads:
        failed = problem(gpu.key, read)
        yield Check("problem" if failed else "ok", device_name(gpu), failed or read.result())


def _fields(gpu: Device) -> str:
    began = time.monotonic()
    count = sum(len(reading.values) for tier in PERIODS for reading in gpu.read(tier))
    return f"{gpu.key}: {count} fields in {1000 * (time.monotonic() - began):.0f} ms"


def _device_files() -> Iterator[Check]:
    if not has_hardware():
        return
    if not CONTROL_DEVICE.exists():
        yield Check("problem", "device", f"{CONTROL_DEVICE} is missing: load the driver with `sudo modprobe nvidia`; "
                    "in a container use `--gpus all`")  # fmt: skip
    elif not os.access(CONTROL_DEVICE, os.R_OK | os.W_OK):
        yield Check("problem", "device", f"{CONTROL_DEVICE} may not be opened: add this user to the group that owns it")


def _engine(_: dict[str, Any]) -> Iterator[Check]:
    """For the stack, which needs it; the agent alone does not."""
    for mark, text in docker_engine.findings(has_hardware()):
        yield Check(mark, "Docker", text)


def _journal(settings: dict[str, Any]) -> Iterator[Check]:
    root = settings["dir"] or layout.find_root()
    probe = root / f".doctor.{os.getpid()}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"\n")
    except OSError as error:
        yield Check("problem", "journal", f"{root}: {error.strerror}: choose a writable folder with --dir")
        return
    finally:
        with suppress(OSError):
            probe.unlink()
    yield _space(root, settings["runs_cap"] + settings["node_cap"])
    if slow.is_slow(root):
        yield Check("note", "journal", f"{root} is on network storage: a kill may lose the last second of records")


def _space(root: Path, most: int) -> Check:
    disk = os.statvfs(root)
    free = disk.f_bavail * disk.f_frsize
    text = f"{root}, {free / 2**30:.1f} GiB free"
    if free > most:
        return Check("ok", "journal", text)
    fix = "free some, or lower TRAINVITALS_RUNS_CAP and TRAINVITALS_NODE_CAP"
    return Check("problem", "journal", f"{text}: it may take {most / 2**30:.1f} GiB; {fix}")


def _address(settings: dict[str, Any]) -> Iterator[Check]:
    try:
        from trainvitals.web.server import bind
    except ImportError as error:
        yield Check("problem", "page", f"{error.name} is missing: {install_words('web')}")
        return
    try:
        bind(settings["host"], settings["port"]).close()
    except TrainVitalsError as error:
        is_taken = isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE
        yield Check("note", "page", f"{error} (or an agent runs already)") if is_taken else Check(
            "problem", "page", str(error))  # fmt: skip
        return
    yield Check("ok", "page", f"{settings['host']}:{settings['port']} is free")
