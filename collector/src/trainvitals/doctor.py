"""What could be found on this machine, what not, and what mends it: `trainvitals doctor`."""

import os
import platform
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from trainvitals.errors import SourceAbsent, SourceError, TrainVitalsError
from trainvitals.journal import layout, slow
from trainvitals.sources.nvml import NvmlSource, has_hardware


class Check(NamedTuple):
    mark: str
    name: str
    text: str


def checks(settings: dict[str, Any]) -> list[Check]:
    return [check for part in (_python, _container, _gpus, _journal, _address) for check in part(settings)]


def is_well(found: list[Check]) -> bool:
    return all(check.mark != "problem" for check in found)


def _python(_: dict[str, Any]) -> Iterator[Check]:
    yield Check("ok", "python", f"{platform.python_version()} on {platform.system()} {platform.release()}")


def _container(_: dict[str, Any]) -> Iterator[Check]:
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        yield Check("note", "container", "GPUs are seen here only when it was started with `--gpus all` or CDI")
    if "microsoft" in platform.release().lower():
        yield Check("note", "WSL", "the driver is Windows's; Xid events and some fields are not told here")


def _gpus(_: dict[str, Any]) -> Iterator[Check]:
    source = NvmlSource()
    try:
        gpus = source.discover()
    except SourceAbsent as error:
        yield Check("note", "GPUs", f"{error.problem}; `trainvitals demo` shows simulated ones")
        return
    except SourceError as error:
        yield Check("problem", "GPUs", str(error))
        yield from _device_files()
        return
    yield Check("ok" if gpus else "problem", "GPUs", f"{len(gpus)} answer" if gpus else "the driver knows of none")
    for gpu in gpus:
        yield _read(gpu)


def _read(gpu: Any) -> Check:
    name = f"GPU {gpu.index}"
    try:
        began = time.monotonic()
        told = [len(reading.values) for tier in ("fast", "slow", "rare") for reading in gpu.read(tier)]
    except TrainVitalsError as error:
        return Check("problem", name, str(error))
    return Check("ok", name, f"{gpu.key}: {sum(told)} fields in {1000 * (time.monotonic() - began):.0f} ms")


def _device_files() -> Iterator[Check]:
    if not has_hardware():
        return
    control = Path("/dev/nvidiactl")
    if not control.exists():
        yield Check("problem", "device", f"{control} is missing: load the driver, in a container use `--gpus all`")
    elif not os.access(control, os.R_OK | os.W_OK):
        yield Check("problem", "device", f"{control} may not be opened: add this user to the group that owns it")


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
    free = os.statvfs(root).f_bavail * os.statvfs(root).f_frsize / 2**30
    yield Check("ok" if free > 3 else "problem", "journal", f"{root}, {free:.1f} GiB free"
                + ("" if free > 3 else ": it takes up to 2.5 GiB; see --runs-cap and --node-cap"))  # fmt: skip
    if slow.is_slow(root):
        yield Check("note", "journal", f"{root} is on network storage: a kill may lose the last second of records")


def _address(settings: dict[str, Any]) -> Iterator[Check]:
    try:
        from trainvitals.web.server import bind
    except ImportError as error:
        yield Check("problem", "page", f"{error.name} is missing: `pip install 'trainvitals[web]'`")
        return
    try:
        bind(settings["host"], settings["port"]).close()
    except TrainVitalsError as error:
        yield Check("note", "page", f"{error} (or an agent runs already)")
        return
    yield Check("ok", "page", f"{settings['host']}:{settings['port']} is free")
