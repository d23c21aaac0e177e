"""What was said beside what is true: which findings are hits, which are late, false, or the same word again.

judge(recording, found)  ->  Judgement(hits=[Hit(expected, found)], missed=[…], false=[…])
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.detect.replaying import Found
from tests.detect.scenarios.scenario import Recording
from tests.detect.scenarios.truth import ANY, PAGE, Allowed, Expected

# A finding may bear the time of the record before: clocks of a line and of a tick differ by that much.
SLACK_SECONDS = 1.5


@dataclass(frozen=True)
class Hit:
    expected: Expected
    found: Found

    @property
    def delay(self) -> float:
        return max(0.0, _when(self.expected, self.found) - self.expected.onset)


@dataclass
class Judgement:
    """`late`: true, but too late to be of use: missed, and no false alarm. `repeats`: of another rank or GPU of one
    fault, which go into one message."""

    hits: list[Hit] = field(default_factory=list)
    missed: list[Expected] = field(default_factory=list)
    late: list[Found] = field(default_factory=list)
    false: list[Found] = field(default_factory=list)
    repeats: list[Found] = field(default_factory=list)

    @property
    def false_pages(self) -> int:
        return sum(one.severity == "page" and not one.cause for one in self.false)


def judge(recording: Recording, found: Sequence[Found]) -> Judgement:
    """One to one: a second word about the same thing is not a second hit."""
    judged, left = Judgement(), sorted(found, key=lambda one: (bool(one.cause), one.first))
    for expected in sorted(recording.expected, key=lambda one: one.onset):
        mine = [one for one in left if _is_of(expected, one, recording.bare)]
        hit = next((one for one in mine if _is_in_time(expected, one)), None)
        if hit is None:
            judged.missed.append(expected)
            judged.late += [one for one in mine[:1] if _when(expected, one) > expected.onset]
        else:
            judged.hits.append(Hit(expected, hit))
        left = [one for one in left if one is not hit and one not in judged.late]
    for one in left:
        if _is_repeat(one, judged.hits):
            judged.repeats.append(one)
        elif not any(_is_allowed(allowed, one) for allowed in recording.allowed):
            judged.false.append(one)
    return judged


def _is_of(expected: Expected, one: Found, is_bare: bool) -> bool:
    is_run = not expected.run or is_bare or one.run == expected.run
    return (one.kind == expected.kind and one.severity in expected.severities and is_run
            and _is_place(expected.rank, one.rank) and _is_place(expected.gpu, one.gpu))  # fmt: skip


def _is_in_time(expected: Expected, one: Found) -> bool:
    """What is told along with its cause is told while that holds."""
    begin, end = expected.onset - SLACK_SECONDS, expected.onset + expected.within
    return begin <= _when(expected, one) <= end or (bool(one.cause) and one.first <= end and one.last >= begin)


def _when(expected: Expected, one: Found) -> float:
    """What has to be a page is told once it is one; what may be less was told at first."""
    return one.when if expected.severities == PAGE else one.first


def _is_place(asked: int | None, said: int | None) -> bool:
    return asked in (ANY, said)


def _is_repeat(one: Found, hits: Sequence[Hit]) -> bool:
    for hit in hits:
        expected, other = hit.expected, hit.found
        is_elsewhere = (one.rank, one.gpu) != (other.rank, other.gpu) and ANY in (expected.rank, expected.gpu)
        is_place = _is_place(expected.rank, one.rank) and _is_place(expected.gpu, one.gpu)
        if one.kind == expected.kind and is_elsewhere and is_place and _is_in_time(expected, one):
            return True
    return False


def _is_allowed(allowed: Allowed, one: Found) -> bool:
    is_time = allowed.since <= one.last and one.first <= allowed.until
    return (allowed.kind == one.kind and _is_place(allowed.rank, one.rank) and _is_place(allowed.gpu, one.gpu)
            and one.severity in allowed.severities and is_time and (bool(one.cause) or not allowed.folded))  # fmt: skip
