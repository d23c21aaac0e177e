"""GPUs that fail: gone, Xids, memory errors, rows, what the driver asks for."""

import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.detect.scenarios.node import A100, H100, RTX, GpuEdit, Node
from tests.detect.scenarios.scenario import Build, Recording, Row, Scenario, family
from tests.detect.scenarios.training import T0, uuid
from tests.detect.scenarios.truth import INFO, PAGE, TICKET, Allowed
from tests.detect.scenarios.watching import LONG, counted, course, put, seen

FATAL = (46, 48, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158)
WARNING, APPLICATIONS = (63, 92, 94, 154), (13, 31, 43, 45)
MODELS = (H100, A100, H100)
BEGIN = 420.0


def _node(seed: int, *edits: GpuEdit, **settings: Any) -> Node:
    made = {"gpus": 3, "seconds": 1500.0, "tick": 2.0, "model": MODELS[seed % 3]} | settings
    return Node(seed=seed, gpu_edits=edits, **made)


# A card that is not there computes nothing, and the run that had it is about to stop.
def missing(seconds: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        gpu = seed % 4
        node = _node(
            seed,
            gpus=4,
            tick=1.0,
            seconds=900.0,
            silent=lambda since, index: index == gpu and BEGIN <= since < BEGIN + seconds,
        )
        return Recording(nodes=(node,), expected=(seen("GpuMissing", PAGE, T0, BEGIN, 20.0),))

    return build


# It answered late, or the agent was started anew.
def late_answers(seed: int, rng: random.Random) -> Recording:
    def silent(since: float, gpu: int | None) -> bool:
        if seed % 2:
            return BEGIN <= since < BEGIN + 40
        return gpu == 1 and since % 200 < 3

    return Recording(nodes=(_node(seed, gpus=4, tick=1.0, seconds=900.0, silent=silent),))


def xid(code: int, kind: str, severities: tuple[str, ...]) -> Build:
    """Fatal ones: no process on this card goes on. Others: a page of memory was retired, or a program did wrong."""

    def build(seed: int, rng: random.Random) -> Recording:
        gpu = rng.randrange(3)
        event = {"event": "xid", "gpu": str(gpu), "uuid": uuid("node-a", gpu), "xid": code}
        node = _node(seed, events=((BEGIN, event),), seconds=720.0, tick=3.0)
        return Recording(nodes=(node,), expected=(seen(kind, severities, T0, BEGIN, 10.0, gpu),))

    return build


def _xids(
    case: Any, codes: tuple[int, ...], kind: str, severities: tuple[str, ...], kinds: tuple[str, ...] = ()
) -> Iterator[Row]:
    for code in codes:
        yield Row(case, f"xid-{code}", xid(code, kind, severities), kinds)


def changes(
    kind: str,
    severities: tuple[str, ...],
    edits: Callable[[int, int], tuple[GpuEdit, ...]],
    within: float,
    *also: str,
    begin: float = BEGIN,
    seconds: float = 1500.0,
) -> Build:
    """One GPU's edits, from a time on."""

    def build(seed: int, rng: random.Random) -> Recording:
        gpu = rng.randrange(3)
        node = _node(seed, *edits(gpu, seed), seconds=seconds, tick=5.0)
        return Recording(
            nodes=(node,),
            expected=(seen(kind, severities, T0, begin, within, gpu),),
            allowed=tuple(Allowed(name, gpu=gpu) for name in also),
        )

    return build


def nothing(edits: Callable[[int, int], tuple[GpuEdit, ...]], seconds: float = 1500.0) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        return Recording(nodes=(_node(seed, *edits(rng.randrange(3), seed), seconds=seconds, tick=5.0),))

    return build


def _steady(name: str, values: tuple[float, ...]) -> Callable[[int, int], tuple[GpuEdit, ...]]:
    return lambda gpu, seed: (put(name, values[seed % len(values)], gpu),)


def _from(name: str, values: tuple[float, ...], first: float = BEGIN) -> Callable[[int, int], tuple[GpuEdit, ...]]:
    return lambda gpu, seed: (put(name, values[seed % len(values)], gpu, first=first),)


UNCORRECTED = "ecc_volatile_errors_total_uncorrected"


def _three_then_four(gpu: int, seed: int) -> tuple[GpuEdit, ...]:
    return (course(UNCORRECTED, lambda since: 4.0 if since >= BEGIN else 3.0, gpu),)


def _old_counts(gpu: int, seed: int) -> tuple[GpuEdit, ...]:
    """Since the driver was loaded, over the card's life, or gone with a new driver."""
    if seed % 3 == 2:
        return (course(UNCORRECTED, lambda since: 0.0 if since >= BEGIN else 2.0, gpu),)
    return (put((UNCORRECTED, "ecc_aggregate_errors_total_uncorrected")[seed % 3], 5.0, gpu),)


CORRECTED = "ecc_volatile_errors_total_corrected"
HALF_DAY = 6 * 3600.0


def _rising(first: float, times: float) -> Callable[[int, int], tuple[GpuEdit, ...]]:
    """Errors a minute, so many times as many with each hour."""
    return lambda gpu, seed: (counted(CORRECTED, lambda since: first * times ** (since / 3600), gpu, 1800.0),)


def corrected(build: Callable[[int, int], tuple[GpuEdit, ...]], is_rising: bool) -> Build:
    """Memory that is about to fail corrects more from hour to hour; single ones are what ECC is for."""

    def record(seed: int, rng: random.Random) -> Recording:
        gpu = rng.randrange(2)
        node = _node(seed, *build(gpu, seed), gpus=2, seconds=HALF_DAY, tick=30.0)
        expected = (seen("GpuEccCorrectedRate", TICKET, T0, 1800.0, 4.5 * 3600, gpu),) if is_rising else ()
        return Recording(nodes=(node,), expected=expected)

    return record


def _few(gpu: int, seed: int) -> tuple[GpuEdit, ...]:
    if seed % 2:
        return (course(CORRECTED, lambda since: 3.0 + (since > 9000) + (since > 17000), gpu),)
    return (put(CORRECTED, 412.0, gpu),)


def without_ecc(seed: int, rng: random.Random) -> Recording:
    return Recording(nodes=(_node(seed, model=RTX),))


def scenarios() -> Iterator[Scenario]:
    yield from family(
        "gpu-missing",
        "GpuMissing",
        (
            Row("clear", "for-good", missing(LONG), times=4),
            Row("faint", "two-minutes", missing(120.0), times=4),
            Row("near", "late-answers", late_answers, times=4),
        ),
    )
    both = ("GpuXidFatal", "GpuXidWarning")
    yield from family(
        "xid",
        "GpuXidFatal",
        (
            *_xids("clear", FATAL[:8], "GpuXidFatal", PAGE),
            *_xids("faint", FATAL[8:], "GpuXidFatal", PAGE),
            *_xids("near", APPLICATIONS, "GpuXidWarning", INFO, both),
        ),
    )
    yield from family(
        "xid",
        "GpuXidWarning",
        (*_xids("clear", WARNING[:2], "GpuXidWarning", TICKET), *_xids("faint", WARNING[2:], "GpuXidWarning", TICKET)),
    )
    yield from family(
        "ecc",
        "GpuEccUncorrectable",
        (
            Row("clear", "first", changes("GpuEccUncorrectable", PAGE, _from(UNCORRECTED, (1.0, 8.0)), 30.0), times=4),
            Row("faint", "one-more", changes("GpuEccUncorrectable", PAGE, _three_then_four, 30.0), times=3),
            Row("near", "old-counts", nothing(_old_counts), times=3),
            Row("near", "without-ecc", without_ecc),
        ),
    )
    yield from family(
        "ecc",
        "GpuEccCorrectedRate",
        (
            Row("clear", "fourfold", corrected(_rising(0.2, 4.0), True), times=4),
            Row("faint", "twofold", corrected(_rising(0.3, 2.0), True), times=4),
            Row("near", "few", corrected(_few, False), times=4),
        ),
    )
    yield from family(
        "rows",
        "GpuRowRemapFailed",
        (
            Row(
                "clear",
                "fails",
                changes("GpuRowRemapFailed", PAGE, _from("remapped_rows_failed", (1.0,)), 30.0),
                times=3,
            ),
            Row(
                "faint",
                "from-the-start",
                changes("GpuRowRemapFailed", PAGE, _steady("remapped_rows_failed", (1.0,)), 30.0, begin=0.0),
                times=2,
            ),
            Row(
                "near",
                "remapped",
                nothing(_from("remapped_rows_corrected", (1.0, 3.0))),
                ("GpuRowRemapFailed", "GpuRowRemapPending"),
                times=4,
            ),
        ),
    )
    yield from family(
        "rows",
        "GpuRowRemapPending",
        (
            Row(
                "clear",
                "waits",
                changes("GpuRowRemapPending", TICKET, _from("remapped_rows_pending", (1.0,)), 120.0),
                times=3,
            ),
            Row(
                "faint",
                "from-the-start",
                changes("GpuRowRemapPending", TICKET, _steady("remapped_rows_pending", (1.0,)), 120.0, begin=0.0),
                times=2,
            ),
        ),
    )
    yield from family(
        "rows",
        "GpuRecoveryActionNeeded",
        (
            Row(
                "clear",
                "reset-or-reboot",
                changes("GpuRecoveryActionNeeded", PAGE, _from("recovery_action", (1.0, 2.0)), 30.0),
                times=4,
            ),
            Row(
                "faint",
                "drain",
                changes("GpuRecoveryActionNeeded", PAGE, _from("recovery_action", (3.0, 4.0)), 30.0),
                times=2,
            ),
            Row("near", "nothing-or-unknown", nothing(_steady("recovery_action", (0.0, None))), times=2),
        ),
    )
