"""What a run's values are drawn over: steps, time, time since its start, or tokens.

axis = make_axis("elapsed", blocks); axis.extent(blocks[0])  ->  (0.0, 63.5)
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from trainvitals.journal.index import Block, key_of, names, step_of
from trainvitals.journal.record import Record, as_number, seconds

AXES = ("step", "time", "elapsed", "tokens")
# What runs call the tokens that they have seen so far.
TOKEN_COUNTS = ("tokens_seen", "num_input_tokens_seen", "train/num_input_tokens_seen", "total_tokens", "num_tokens")
RATE, TOOK = "tokens_per_second", "step_duration_seconds"
Extent = tuple[float, float]


class Axis(NamedTuple):
    """`of` is None where a line by itself does not tell its place: then lines lie evenly within their block."""

    extent: Callable[[Block], Extent | None]
    of: Callable[[Record], float | None] | None

    def places(self, extent: Extent, records: Sequence[Record]) -> list[float | None]:
        """Of the lines of a block. Lines of one step, which belong together, have one place."""
        low, high = extent
        places: list[float | None] = []
        before: object = None
        for number, record in enumerate(records):
            step = record.get("step")
            if step is None or step != before:
                place = self.of(record) if self.of else low + (high - low) * number / len(records)
            places.append(place)
            before = step
        return places


def make_axis(name: str, blocks: Sequence[Block], began: float | None = None) -> Axis:
    """`began`: the run, else its first line. ValueError where the run does not tell what it takes."""
    if name == "step":
        return Axis(lambda block: block.steps, step_of)
    if name == "tokens":
        return _tokens(blocks)
    if began is None:
        began = min((block.times[0] for block in blocks if block.times), default=0.0)
    return _times(began if name == "elapsed" else 0.0)


def _times(origin: float) -> Axis:
    def extent(block: Block) -> Extent | None:
        return None if block.times is None else (block.times[0] - origin, block.times[1] - origin)

    def of(record: Record) -> float | None:
        when = seconds(record.get("timestamp"))
        return None if when is None else when - origin

    return Axis(extent, of)


def _tokens(blocks: Sequence[Block]) -> Axis:
    told = names(blocks)
    for field in TOKEN_COUNTS:
        if field in told:
            return _counted(field)
    if blocks and not {RATE, TOOK} <= set(told):
        other = f"neither {RATE} nor any of {', '.join(TOKEN_COUNTS)}"
        raise ValueError(f"x: 'tokens' cannot be used: the run tells {other}: take step or time")
    return _added_up(blocks)


def _counted(field: str) -> Axis:
    key = key_of(field)

    def extent(block: Block) -> Extent | None:
        told = block.told(key)
        return (told[0], told[1]) if told and told[3] else None

    return Axis(extent, lambda record: as_number(record.get(field)))


def _added_up(blocks: Sequence[Block]) -> Axis:
    """Tokens a second by the seconds of the steps."""
    extents: dict[tuple[str, int], Extent] = {}
    total = rate = 0.0
    rate_key, took_key = key_of(RATE), key_of(TOOK)
    for block in blocks:
        told, took = block.told(rate_key), block.told(took_key)
        rate = told[2] if told and told[3] else rate
        before, total = total, total + (rate * took[2] * took[3] if took and took[3] else 0.0)
        extents[block.file, block.offset] = before, total
    return Axis(lambda block: extents[block.file, block.offset], None)
