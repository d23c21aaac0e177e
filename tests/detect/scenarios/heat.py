"""Heat, and clocks that are held down: each device judged by the limit that it tells of."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tests.detect.scenarios.node import A100, H100, RTX, T4, GpuEdit, Model, Node
from tests.detect.scenarios.scenario import Build, Recording, Row, Scenario, family
from tests.detect.scenarios.training import T0
from tests.detect.scenarios.truth import PAGE, TICKET, Allowed, Expected
from tests.detect.scenarios.watching import course, pulsed, put, seen

BEGIN, SECONDS = 600.0, 2700.0
# Slows itself down at 78 °C.
COOL = replace(T4, slowdown=78.0, warm=58.0)
MODELS = (H100, A100, T4, COOL, RTX)
BRAKE = "hw_power_brake"


def degrees(rng: random.Random, celsius: float, gpu: int, spread: float = 0.4) -> GpuEdit:
    chance = random.Random(rng.random())
    return course(
        "temperature_celsius", lambda since: float(round(celsius + chance.uniform(-spread, spread))), gpu, BEGIN
    )


def _node(seed: int, model: Model, *edits: GpuEdit, **settings: Any) -> Node:
    made = {"gpus": 3, "tick": 5.0, "seconds": SECONDS} | settings
    return Node(seed=seed, model=model, gpu_edits=edits, **made)


def _hot(model: Model, celsius: float, gpu: int) -> tuple[Expected, ...]:
    """Over 80 °C is what was asked to be told of, whatever the device bears."""
    return (seen("GpuTemperatureHigh", TICKET, T0, BEGIN, 1200.0, gpu),) if celsius > 80 else ()


# A few degrees before it slows itself down: the air conditioning is cheaper by day than a slow run at night.
def margin(below: float) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        gpu, model = rng.randrange(3), MODELS[seed % len(MODELS)]
        celsius = model.slowdown - below
        expected = (seen("GpuThermalMargin", TICKET, T0, BEGIN, 1200.0, gpu), *_hot(model, celsius, gpu))
        return Recording(nodes=(_node(seed, model, degrees(rng, celsius, gpu)),), expected=expected)

    return build


# It does slow down: all ranks now wait for this card.
def slowed_by_heat(seed: int, rng: random.Random) -> Recording:
    gpu, model = rng.randrange(3), MODELS[seed % len(MODELS)]
    celsius = model.slowdown + 1
    held = put("throttle_active", ["hw_slowdown", "hw_thermal_slowdown"], gpu, first=BEGIN)
    expected = (seen("GpuThermalMargin", PAGE, T0, BEGIN, 300.0, gpu), *_hot(model, celsius, gpu))
    return Recording(
        nodes=(_node(seed, model, degrees(rng, celsius, gpu), held),),
        expected=expected,
        allowed=(Allowed("GpuHardwareSlowdown", gpu=gpu),),
    )


# Eight degrees away it may stay for years.
def far_from_limit(seed: int, rng: random.Random) -> Recording:
    gpu, model = rng.randrange(3), MODELS[seed % len(MODELS)]
    celsius = model.slowdown - 8
    return Recording(nodes=(_node(seed, model, degrees(rng, celsius, gpu)),), expected=_hot(model, celsius, gpu))


def given_limit(celsius: float, is_high: bool) -> Build:
    """On devices that slow down far above."""

    def build(seed: int, rng: random.Random) -> Recording:
        gpu, model = rng.randrange(3), (RTX, T4, replace(A100, slowdown=95.0))[seed % 3]
        expected = _hot(model, celsius, gpu) if is_high else ()
        return Recording(nodes=(_node(seed, model, degrees(rng, celsius, gpu)),), expected=expected)

    return build


# Memory ages by heat, and makes errors first.
def memory_heat(celsius: float, is_high: bool) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        gpu, model = rng.randrange(3), (H100, A100)[seed % 2]
        edit = course("memory_temperature_celsius", lambda since: celsius, gpu, BEGIN)
        expected = (seen("GpuMemoryTemperatureHigh", TICKET, T0, BEGIN, 1200.0, gpu),) if is_high else ()
        return Recording(nodes=(_node(seed, model, edit),), expected=expected)

    return build


def not_told(seed: int, rng: random.Random) -> Recording:
    """A card that does not report its memory's temperature, at 79 °C."""
    return Recording(nodes=(_node(seed, RTX, degrees(rng, 79, 1)),))


# Held down by hardware again and again, each time for seconds: power supply or cooling is failing.
def held_down(
    kind: str,
    severities: tuple[str, ...],
    reasons: tuple[str, ...],
    every: float,
    seconds: float,
    minutes: float = 18.0,
) -> Build:
    def build(seed: int, rng: random.Random) -> Recording:
        gpu = rng.randrange(3)
        edit = pulsed(reasons, every, seconds, gpu, BEGIN, BEGIN + 60 * minutes)
        also = (Allowed("GpuHardwareSlowdown", gpu=gpu),) if BRAKE in reasons else ()
        return Recording(
            nodes=(_node(seed, MODELS[seed % 3], edit, tick=2.0),),
            expected=(seen(kind, severities, T0, BEGIN, 60 * minutes, gpu),),
            allowed=also,
        )

    return build


# A power cap that somebody set holds for as long as it is set; one event in five minutes, or one at all, is nothing.
def held_for_a_reason(seed: int, rng: random.Random) -> Recording:
    edits: tuple[Callable[[], GpuEdit], ...] = (
        lambda: put("throttle_active", ["sw_power_cap"], -1),
        lambda: pulsed(("hw_slowdown",), 300.0, 6.0, 1, BEGIN, 2400.0),
        lambda: pulsed(("hw_slowdown", BRAKE), 10**6, 20.0, 1, BEGIN, 2400.0),
        lambda: pulsed(("sw_power_cap",), 12.0, 6.0, 0, 0.0, SECONDS),
    )
    return Recording(nodes=(_node(seed, H100, edits[seed % 4](), tick=2.0),))


def scenarios() -> Iterator[Scenario]:
    slow, brake = ("hw_slowdown",), ("hw_slowdown", BRAKE)
    yield from family(
        "heat",
        "GpuThermalMargin",
        (
            Row("clear", "slows-down", slowed_by_heat, times=5),
            Row("clear", "two-degrees", margin(2.0), times=5),
            Row("faint", "four-degrees", margin(4.0), times=5),
            Row("near", "eight-degrees", far_from_limit, times=5),
        ),
    )
    yield from family(
        "heat",
        "GpuTemperatureHigh",
        (
            Row("clear", "86-degrees", given_limit(86, True), times=3),
            Row("faint", "82-degrees", given_limit(82, True), times=3),
            Row("near", "79-degrees", given_limit(79, False), times=3),
        ),
    )
    yield from family(
        "heat",
        "GpuMemoryTemperatureHigh",
        (
            Row("clear", "103-degrees", memory_heat(103, True), times=3),
            Row("faint", "97-degrees", memory_heat(97, True), times=3),
            Row("near", "93-degrees", memory_heat(93, False), times=2),
            Row("near", "not-told", not_told),
        ),
    )
    both = ("GpuHardwareSlowdown", "GpuPowerBrake")
    yield from family(
        "slowdown",
        "GpuHardwareSlowdown",
        (
            Row("clear", "twice-a-minute", held_down("GpuHardwareSlowdown", PAGE, slow, 30.0, 8.0), times=4),
            Row("clear", "all-the-time", held_down("GpuHardwareSlowdown", PAGE, slow, 10**6, 10**5, 25.0), times=2),
            Row("faint", "just-over", held_down("GpuHardwareSlowdown", PAGE, slow, 72.0, 6.0, 22.0), times=4),
            Row("near", "for-a-reason", held_for_a_reason, both, times=4),
        ),
    )
    yield from family(
        "slowdown",
        "GpuPowerBrake",
        (
            Row("clear", "twice-a-minute", held_down("GpuPowerBrake", TICKET, brake, 30.0, 8.0), times=3),
            Row("faint", "just-over", held_down("GpuPowerBrake", TICKET, brake, 72.0, 6.0, 22.0), times=3),
        ),
    )
