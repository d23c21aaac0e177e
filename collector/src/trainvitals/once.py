"""One reading of everything, without an agent: `trainvitals once`."""

import threading
import time
from collections.abc import Sequence

from trainvitals.agent.sampler import SourceState, merged
from trainvitals.errors import SourceAbsent
from trainvitals.model import Reading, Snapshot
from trainvitals.sources import PERIODS, Device, Source

TIMEOUT_SECONDS = 5.0
CPU_WINDOW_SECONDS = 0.05


def read_once(sources: Sequence[Source]) -> tuple[Snapshot, dict[str, SourceState]]:
    """Every device in a thread of its own; what hangs is left out after five seconds."""
    states = {source.name: SourceState(up=True) for source in sources}
    taken: list[Reading] = []
    began = time.monotonic()
    threads = [_spawn(_read_source, source, states[source.name], taken, began) for source in sources]
    for thread in threads:
        thread.join(max(0.0, began + TIMEOUT_SECONDS - time.monotonic()))
    for name, thread in zip(states, threads, strict=True):
        if thread.is_alive():
            states[name].up, states[name].problem = False, f"{name}: no answer within {TIMEOUT_SECONDS:.0f} s"
    return Snapshot(time.time(), tuple(merged(list(taken)))), states


def _read_source(source: Source, state: SourceState, taken: list[Reading], began: float) -> None:
    try:
        devices = source.discover()
    except Exception as error:
        state.up = None if isinstance(error, SourceAbsent) else False
        state.problem = str(error)
        return
    state.devices = len(devices)
    threads = [_spawn(_read_device, device, state, taken, began) for device in devices]
    for thread in threads:
        thread.join(max(0.0, began + TIMEOUT_SECONDS - time.monotonic()))


def _read_device(device: Device, state: SourceState, taken: list[Reading], began: float) -> None:
    """Usage of processors is told over a window, so the host is asked last."""
    if device.key == "host":
        time.sleep(max(0.0, began + CPU_WINDOW_SECONDS - time.monotonic()))
    for tier in reversed(PERIODS):
        try:
            taken.extend(device.read(tier))
        except Exception as error:
            state.errors += 1
            state.problem = str(error)


def _spawn(target: object, *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread
