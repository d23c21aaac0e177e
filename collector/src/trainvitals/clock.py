"""Time as a thing that can be handed in: the wall clock for stamps, the monotonic one for waiting."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic


SYSTEM = Clock()
