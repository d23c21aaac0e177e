"""All that was measured; None where it was not, with the reason under its name in `unmeasured`."""

from dataclasses import dataclass, field

from bench.detect.live import Live
from bench.detect.nab import Nab
from bench.detect.nanogpt import Nanogpt
from bench.detect.scores import Tally
from bench.detect.stragglers import Trace


@dataclass
class Results:
    labelled: Tally | None = None
    nanogpt: Nanogpt | None = None
    stragglers: list[Trace] | None = None
    nab: Nab | None = None
    live: Live | None = None
    unmeasured: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    load: float = 0.0
