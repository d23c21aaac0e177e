"""One reading of everything, without an agent: `trainvitals once`."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from typing import ParamSpec, TypeVar

from trainvitals.agent.sampler import SourceState, merged
from trainvitals.errors import SourceAbsent, SourceError
from trainvitals.model import Reading, Snapshot
from trainvitals.sources import PERIODS, Device, Source

T = TypeVar("T")
P = ParamSpec("P")
Reads = dict[str, "Future[list[Reading]]"]

TIMEOUT_SECONDS = 5.0
CPU_WINDOW_SECONDS = 0.05


def read_once(sources: Sequence[Source]) -> tuple[Snapshot, dict[str, SourceState]]:
    """Every device in a thread of its own; what hangs is left out after five seconds."""
    began = time.monotonic()
    readings: list[Reading] = []
    asked = {source.name: in_thread(_read_source, source, began) for source in sources}
    wait(asked.values(), TIMEOUT_SECONDS + 0.5)
    states = {name: _settle(name, answer, readings) for name, answer in asked.items()}
    return Snapshot(time.time(), tuple(merged(readings))), states


def in_thread(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> "Future[T]":
    """The result to come, from a thread that the end of the process does not wait for."""
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(work(*arguments, **named))
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return answer


def problem(name: str, answer: "Future[T]") -> str:
    """What is wrong with an answer, nothing where it came."""
    if not answer.done():
        return f"{name}: no answer within {TIMEOUT_SECONDS:.0f} s"
    error = answer.exception()
    if error is None:
        return ""
    return str(error) if isinstance(error, SourceError) else f"{name}: {error!r}"


def _read_source(source: Source, began: float) -> Reads:
    reads = {f"{source.name}: {device_name(device)}": in_thread(_read_device, device, began)
             for device in source.discover()}  # fmt: skip
    wait(reads.values(), max(0.0, began + TIMEOUT_SECONDS - time.monotonic()))
    return reads


def _read_device(device: Device, began: float) -> list[Reading]:
    """Usage of processors is told over a window, so the host is asked last."""
    if device.key == "host":
        time.sleep(max(0.0, began + CPU_WINDOW_SECONDS - time.monotonic()))
    return [reading for tier in reversed(PERIODS) for reading in device.read(tier)]


def _settle(name: str, answer: "Future[Reads]", into: list[Reading]) -> SourceState:
    failed = problem(name, answer)
    if failed:
        is_absent = answer.done() and isinstance(answer.exception(), SourceAbsent)
        return SourceState(up=None if is_absent else False, problem=failed)
    reads = answer.result()
    problems = [text for device, read in reads.items() if (text := problem(device, read))]
    for device, read in reads.items():
        into.extend([] if problem(device, read) else read.result())
    up = len(problems) < len(reads) or not reads
    return SourceState(up=up, problem="; ".join(problems), devices=len(reads), errors=len(problems))


def device_name(device: Device) -> str:
    return f"GPU {device.index}" if hasattr(device, "index") else device.key
