"""The index of a rank's training files: what some hundred lines hold in one, so that a long run is drawn quickly.
For readers only; docs/journal.md tells of the file.

{"file":"training_metrics_….jsonl","offset":0,"end":38211,"lines":128,"steps":[1,128],"times":[1753878896.7,1753878960.2],
 "names":["loss"],"fields":{"loss":[1.72,2.31,1.98,127,1]}}

Of a field: lowest, highest and mean of what is finite, how many that is, how many are not. `names` are those that no
block before told of.
"""

import math
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import orjson

from trainvitals.journal import layout
from trainvitals.journal.lines import groups, records
from trainvitals.journal.record import Record, as_number, seconds

VERSION = 1
BLOCK_LINES = 128
# An index is to stay this much smaller than what it tells of.
SHARE = 32
# Where names are long and many, so that none waits for long.
MAX_BYTES, GROUP_BYTES = 2 << 20, 1 << 20
MAX_FIELDS, MAX_NAME = 1000, 200
_HEAD_BYTES, _FIELD_BYTES = 160, 64
_MAX_EXACT = 2**53
_FIELDS = b',"fields":{'
# Stands in a line that tells of new ones.
NEW_NAMES = b',"names":["'
# Lowest, highest, mean, count of the finite values; count of the others.
Summary = list[Any]


class Block(NamedTuple):
    """`fields` is JSON as it lies in the file, a comma before each name: few of them are ever looked at."""

    file: str
    offset: int
    end: int
    lines: int
    steps: tuple[float, float] | None
    times: tuple[float, float] | None
    names: list[str]
    fields: bytes

    def told(self, key: bytes) -> Summary | None:
        """Of the field with this `key_of`."""
        at = self.fields.find(key)
        if at < 0:
            return None
        begun = at + len(key) - 1
        found: Summary = orjson.loads(self.fields[begun : self.fields.find(b"]", begun) + 1])
        return found


def key_of(name: str) -> bytes:
    """What stands before a field's numbers and nowhere else: within a name a quotation mark has a backslash."""
    return b"," + orjson.dumps(name) + b":["


def header(run: str, rank: int) -> bytes:
    return orjson.dumps({"index": VERSION, "run": run, "rank": rank}) + b"\n"


def encoded(block: Block) -> bytes:
    head = orjson.dumps({name: value for name, value in block._asdict().items() if name != "fields"})
    return head[:-1] + _FIELDS + block.fields[1:] + b"}}\n"


def decoded(line: bytes) -> Block:
    """ValueError where the line is no block."""
    head, _, fields = line.partition(_FIELDS)
    try:
        block = Block(**orjson.loads(head + b"}"), fields=b"," + fields[:-2])
        is_one = layout.TRAINING_FILE.match(block.file) and 0 <= block.offset < block.end and fields.endswith(b"}}")
    except (TypeError, ValueError) as error:
        raise ValueError("no block of an index") from error
    if not is_one:
        raise ValueError("no block of an index")
    return block


@dataclass(slots=True)
class Names:
    """Of fields: those that blocks told of, and those that always have a place. Others have one while there is room."""

    always: frozenset[str] = frozenset()
    told: set[str] = field(default_factory=set)


def blocks(fd: int, file: str, start: int, known: Names, end: int | None = None) -> Iterator[Block]:
    """Of all that is there but the last lines, which are too few; with an `end` of all lines up to there."""
    gathered = _Gathered(file, start, known)
    for group in groups(fd, start, BLOCK_LINES, end, GROUP_BYTES):
        if end is None and len(group.lines) < BLOCK_LINES and group.end - group.offset < GROUP_BYTES:
            return
        gathered.add(records(group.lines), group.end)
        if gathered.is_full:
            yield gathered.block()
            gathered = _Gathered(file, group.end, known)
    if end is not None and gathered.end > gathered.offset:
        yield gathered.block()


def names(blocks: Iterable[Block]) -> list[str]:
    """Every field that has numbers."""
    return sorted(set[str]().union(*(block.names for block in blocks)))


def summary(values: Sequence[Any]) -> Summary | None:
    """None where no number is among them."""
    kinds = set(map(type, values))
    if kinds != {float}:
        values = [number for value in values if (number := as_number(value)) is not None]
        if not values:
            return None
    total = sum(values)
    if math.isfinite(total):
        return [min(values), max(values), total / len(values), len(values), 0]
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return [None, None, None, 0, len(values)]
    mean = math.fsum(value / len(finite) for value in finite)
    return [min(finite), max(finite), mean, len(finite), len(values) - len(finite)]


def merged(one: Summary, other: Summary) -> Summary:
    if not one[3] or not other[3]:
        return [*(one if one[3] else other)[:4], one[4] + other[4]]
    count = one[3] + other[3]
    low, high = min(one[0], other[0]), max(one[1], other[1])
    mean = one[2] * (one[3] / count) + other[2] * (other[3] / count)
    return [low, high, min(max(mean, low), high), count, one[4] + other[4]]


def step_of(record: Record) -> float | None:
    """A step that no number can be is none; one past what a float holds exactly is near enough."""
    step = record.get("step")
    if type(step) is int and -_MAX_EXACT < step < _MAX_EXACT:
        return step
    number = as_number(step)
    return number if number is not None and math.isfinite(number) else None


class _Gathered:
    """Lines on their way to becoming a block."""

    def __init__(self, file: str, offset: int, names: Names) -> None:
        self._file, self._all = file, names
        self.offset = self.end = offset
        self._lines = 0
        self._steps: list[float] = []
        self._times: list[float] = []
        self._columns: dict[str, list[Any]] = {}

    @property
    def is_full(self) -> bool:
        told = _HEAD_BYTES + sum(_FIELD_BYTES + len(name) for name in self._columns)
        return self.end - self.offset >= min(SHARE * told, MAX_BYTES)

    def add(self, found: Sequence[Record], end: int) -> None:
        self.end = end
        self._lines += len(found)
        self._steps += [step for record in found if (step := step_of(record)) is not None]
        self._times += [when for record in (*found[:1], *found[-1:]) if (when := seconds(record.get("timestamp")))]
        for name in self._names(found):
            self._columns.setdefault(name, []).extend(record[name] for record in found if name in record)

    def block(self) -> Block:
        summaries = {name: summary(values) for name, values in self._columns.items()}
        fields = {name: one for name, one in summaries.items() if one is not None}
        new = sorted(fields.keys() - self._all.told)
        self._all.told.update(new)
        return Block(self._file, self.offset, self.end, self._lines, _range(self._steps), _range(self._times), new,
                     b"," + orjson.dumps(fields)[1:-1])  # fmt: skip

    def _names(self, found: Sequence[Record]) -> set[str]:
        known = {*self._all.told, *self._columns}
        known.update(_new_names(found, known | self._all.always, MAX_FIELDS - len(known)))
        there: set[str] = set().union(*found) - {"timestamp", "step"}
        return there & (known | self._all.always)


def _new_names(found: Sequence[Record], known: Set[str], room: int) -> Iterator[str]:
    fresh = ((name, value) for record in found for name, value in record.items() if name not in known)
    numbers = (name for name, value in fresh if as_number(value) is not None and _can_be_told(name))
    return islice(numbers, max(0, room))


def _range(values: Sequence[float]) -> tuple[float, float] | None:
    return (min(values), max(values)) if values else None


def _can_be_told(name: str) -> bool:
    if len(name) > MAX_NAME:
        return False
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
