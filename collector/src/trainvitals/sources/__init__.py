"""Where readings come from. Every source answers to the same two protocols, one file each.

A `Source` finds its devices; a `Device` is read in a thread of its own, so that one that hangs holds
up no other. A read raises `DeviceLost` when the device is gone, `SourceError` when the source is.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from trainvitals.model import Event, Reading, Tier

PERIODS: dict[Tier, float] = {"fast": 0.0, "slow": 10.0, "rare": 60.0}


class Device(Protocol):
    @property
    def key(self) -> str:
        """What tells it from others for as long as it is the same thing: a GPU's UUID."""

    @property
    def errors(self) -> int:
        """Fields that failed so far, those it does not support left out."""

    def read(self, tier: Tier) -> Sequence[Reading]: ...


class Source(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def gpu_count(self) -> int:
        """The GPUs that it said there are when it was last asked for devices, those that hang included."""

    def discover(self) -> Sequence[Device]:
        """The devices there are now. Asked again and again; the same object is the same device."""

    def close(self) -> None: ...


@runtime_checkable
class EventSource(Source, Protocol):
    """A source that also tells what happens between two reads."""

    def wait_events(self, timeout: float) -> Sequence[Event]:
        """Blocks for about `timeout` seconds at most. Called from one thread only."""
