"""What a scenario should make an observer say, and what it may say besides.

Expected("TrainingLossSpike", ("ticket",), onset=1772438700.0, within=90.0, run="gemma", step=1200)
Allowed("GradientNormHigh")            what is neither asked for nor wrong; everything else is a false alarm
"""

import math
from dataclasses import dataclass

# In the place of a rank or GPU: not judged. None asks for a finding that names none.
ANY = -1
PAGE, TICKET, INFO = ("page",), ("ticket",), ("info",)


@dataclass(frozen=True)
class Expected:
    """`onset`: when the fault begins, not when some threshold is crossed; `within`: the seconds after which to be told
    of it is of no use any more. Where no rank is asked for, each rank may say it once: that is one message."""

    kind: str
    severities: tuple[str, ...]
    onset: float
    within: float
    run: str = ""
    rank: int | None = ANY
    gpu: int | None = ANY
    step: int | None = None


@dataclass(frozen=True)
class Allowed:
    """`folded`: only as the evidence of another finding, because by itself it would wake somebody a second time."""

    kind: str
    rank: int | None = ANY
    gpu: int | None = ANY
    severities: tuple[str, ...] = ("page", "ticket", "info")
    since: float = -math.inf
    until: float = math.inf
    folded: bool = False


# The words that no worker is at fault, because all of them are slow.
NO_WORKER = Allowed("TrainingStraggler", rank=None, severities=("ticket", "info"))
