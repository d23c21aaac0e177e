"""A run's fields over steps, time or tokens, in so many points that a chart can show them.

series(folder, view, Asked(("loss",), "step", None, None, 1000))
->  {"x_values": [1, 1001, …], "fields": {"loss": {"min": […], "max": […], "mean": […], …}}, "lines": 20000, …}

Where few enough lines are asked for, they are read as they were written; else blocks of the index stand for them.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from trainvitals.agent.axis import Axis, Extent, make_axis
from trainvitals.agent.points import Line, Place, Points
from trainvitals.agent.rank_index import View
from trainvitals.journal.index import Block, key_of, names
from trainvitals.journal.lines import groups, opened, records
from trainvitals.journal.record import Record

# What is read as it was written, for one answer.
RAW_LINES, RAW_BYTES = 20_000, 16 << 20
_READ_LINES = 1000


class Asked(NamedTuple):
    fields: tuple[str, ...]
    x: str
    start: float | None
    end: float | None
    points: int


class Piece(NamedTuple):
    """A block, where it lies on the axis, and the life of the run that wrote it."""

    block: Block
    extent: Extent
    life: int


class _Range(NamedTuple):
    start: float
    end: float
    points: int

    def holds(self, low: float, high: float) -> bool:
        return self.start <= low and high <= self.end

    def bucket(self, place: float) -> float:
        width = (self.end - self.start) / self.points
        return min(self.points - 1, int((place - self.start) / width)) if width > 0 else 0


def series(folder: Path, view: View, asked: Asked, began: float | None = None) -> dict[str, Any]:
    """ValueError where the run does not tell what the axis takes. `began`: when it did, for the axis `elapsed`."""
    axis = make_axis(asked.x, view.blocks, began)
    pieces = list(_pieces(view.blocks, axis))
    within = _Range(*_ends(pieces, asked), asked.points)
    pieces = [piece for piece in pieces if piece.extent[0] <= within.end and piece.extent[1] >= within.start]
    is_short = _is_short(pieces, asked.points)
    # Of a block that lies across an end of the range, only the lines within count.
    whole = [] if is_short else [piece for piece in pieces if within.holds(*piece.extent)]
    apart = pieces if is_short else [piece for piece in pieces if not within.holds(*piece.extent)]
    lines = [line for piece in apart for line in _lines(folder, piece, axis) if within.holds(line.place, line.place)]
    is_raw = is_short and len({line.place for line in lines}) <= asked.points
    points = Points(asked.fields, (lambda place: place) if is_raw else within.bucket)
    keys = [(name, key_of(name)) for name in asked.fields]
    for piece in whole:
        told = {name: one for name, key in keys if (one := piece.block.told(key))}
        points.add(Place(piece.extent[0], piece.block.steps[0] if piece.block.steps else None), piece.life, told)
    points.add_lines(lines)
    return {"x": asked.x, **points.columns(), "raw": is_raw, "names": names(view.blocks), "missing_bytes": view.missing,
            "lines": len(lines) + sum(piece.block.lines for piece in whole)}  # fmt: skip


def _pieces(blocks: Sequence[Block], axis: Axis) -> Iterator[Piece]:
    """A file that begins before the step that was reached is of a life that began anew, from a checkpoint."""
    life, file, reached = 0, "", float("-inf")
    for block in blocks:
        if block.steps and block.file != file:
            life += block.steps[0] <= reached
            file, reached = block.file, block.steps[1]
        if block.steps:
            reached = max(reached, block.steps[1])
        if extent := axis.extent(block):
            yield Piece(block, extent, life)


def _ends(pieces: Sequence[Piece], asked: Asked) -> Extent:
    low = min((piece.extent[0] for piece in pieces), default=0.0)
    high = max((piece.extent[1] for piece in pieces), default=0.0)
    return low if asked.start is None else asked.start, high if asked.end is None else asked.end


def _is_short(pieces: Sequence[Piece], points: int) -> bool:
    lines = sum(piece.block.lines for piece in pieces)
    size = sum(piece.block.end - piece.block.offset for piece in pieces)
    return lines <= max(points, RAW_LINES) and size <= RAW_BYTES


def _lines(folder: Path, piece: Piece, axis: Axis) -> list[Line]:
    """None of a file that went meanwhile."""
    block, found = piece.block, list[Record]()
    with suppress(OSError), opened(folder, block.file) as fd:
        for group in groups(fd, block.offset, _READ_LINES, block.end):
            found += records(group.lines)
    places = axis.places(piece.extent, found)
    return [Line(place, piece.life, record) for place, record in zip(places, found, strict=True) if place is not None]
