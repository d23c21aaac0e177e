"""What is drawn, compared with pictures in tests/golden/top and looked through for damage."""

import math
import re

import pytest

from tests.tui.support import (
    NOON,
    Json,
    Stage,
    assert_as_kept,
    dashboard,
    finding,
    gpu,
    lines_of,
    rank,
    run,
    staged,
    told,
)
from trainvitals.tui.feed import OWN
from trainvitals.tui.screen import draw

VERDICT = {
    "state": "page",
    "words": "gemma-qlora: step 6,200 of 20,000, 3.9 steps/s, loss 1.82 and falling, ETA 59 min; GPU 6 too hot",
}
FINDINGS = [
    finding("GpuHardwareSlowdown", "page", "GPU 6 has slowed itself down for 71 % of 10 minutes"),
    finding("TrainingStraggler", "ticket", "rank 6 is 1.4 times as slow as its peers", "run gemma-qlora, rank 6", 1),
    finding("TrainingStepTimeOutlier", "info", "step 6,120 took 0.7 s, 3 times as long as usual", "run gemma-qlora", 9),
]  # fmt: skip


def busy(at: float, gpus: int = 8, ranks: int = 8, **more: object) -> Json:
    """A run in trouble: GPU 6 is too hot."""
    ago = at - NOON
    listed = [gpu(number, utilization_percent=min(100.0, 90 + 8 * math.sin(ago / 5 + number)),
                  temperature_celsius=60 + 6 * math.sin(ago / 20 + number),
                  power_draw_watts=600 + 60 * math.sin(ago / 7 + number)) for number in range(gpus)]  # fmt: skip
    if gpus > 6:
        listed[6] = gpu(6, temperature_celsius=88.0, throttle_active=["hw_thermal_slowdown"], power_draw_watts=400.0)
    loss = 1.82 + math.exp(-(ago + 60) / 20)
    members = [rank(number, 6200 + 4 * ago, loss=loss, phase_seconds_total_forward=400 + 0.4 * ago,
                    phase_seconds_total_backward=480 + 0.5 * ago, phase_seconds_total_data_wait=20 + 0.1 * ago)
               for number in range(ranks)]  # fmt: skip
    alerts = {"firing_count": 3, "firing": FINDINGS, "resolved": []}
    return told(listed, [run("gemma-qlora", ranks, ranks=members)], at, alerts=alerts, verdict=VERDICT, **more)


@staged
@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_a_busy_node(size: tuple[int, int]) -> None:
    async with dashboard(size) as stage:
        await stage.course(busy, 70)
        assert_as_kept(stage.svg(), f"busy-{size[0]}x{size[1]}")


@staged
async def test_in_ascii() -> None:
    async with dashboard(is_ascii=True) as stage:
        await stage.course(busy, 70)
        assert_as_kept(stage.svg(), "busy-ascii")
        assert stage.text().isascii()
        await stage.press("question_mark")
        assert stage.text().isascii() and "any key goes back" in stage.text()


@staged
async def test_sixteen_gpus_of_two_kinds_and_64_ranks() -> None:
    async with dashboard() as stage:
        await stage.show(busy(NOON, 16, 64))
        assert re.search(r"1-\d of 16$", stage.text(), re.MULTILINE)
        await stage.press(*["down"] * 12)
        assert "▶  12" in stage.text() and "  13  " in stage.text() and "64 ranks" in stage.text()
        assert_as_kept(stage.svg(), "sixteen-gpus")
    async with dashboard((120, 50)) as stage:
        mixed = [gpu(number, name="NVIDIA H100" if number < 8 else "NVIDIA L40S") for number in range(16)]
        await stage.show(told(mixed))
        assert all(f"   {number:>2}  NVIDIA {'H100' if number < 8 else 'L40S'} " in stage.text()
                   for number in range(1, 16))  # fmt: skip


@staged
async def test_no_gpu_and_no_run() -> None:
    async with dashboard() as stage:
        why = {"nvml": {"up": None, "problem": "nvml: this machine has no NVIDIA GPU"}}
        await stage.show(told(0, sources=why), source=OWN, problem="no agent at 127.0.0.1:8080: Connection refused")
        assert_as_kept(stage.svg(), "nothing-here")
        assert "No GPU answers; nvml: this machine has no NVIDIA GPU" in stage.text()
        assert "No run here yet." in stage.text() and "nothing wrong is known" in stage.text()
        assert "reads GPUs itself" in stage.text() and "no agent at 127.0.0.1:8080" in stage.text()


@staged
async def test_just_started() -> None:
    async with dashboard() as stage:
        assert "Looking for an agent." in stage.text()
        await stage.show(told(0, at=None))
        assert "Waiting for the first readings." in stage.text()
        assert_as_kept(stage.svg(), "just-started")


@staged
async def test_an_agent_that_is_lost_takes_its_readings_along_and_comes_back() -> None:
    async with dashboard() as stage:
        await stage.course(busy, 5)
        await stage.lose()
        assert_as_kept(stage.svg(), "lost")
        text = stage.text()
        assert "LOST" in text and "Nothing has been known for 1 s: Connection refused." in text
        assert not re.search(r"\d%|\d°C|\d W|12:00:00|6,200|ETA|heat slows", text)
        await stage.show(busy(NOON + 9), after=8)
        assert "LOST" not in stage.text() and "62.0/79.6" in stage.text()
        graph = stage.text().splitlines()[14][:25]
        assert re.search(r"[\u2801-\u28ff] {3}[\u2801-\u28ff]$", graph), "nine seconds of nothing are a gap"


@staged
async def test_what_is_told_no_more_is_old_though_nobody_said_so() -> None:
    async with dashboard() as stage:
        await stage.show(busy(NOON))
        stage.clock[0] += 4
        await stage.tick()
        assert "LOST" not in stage.text()
        stage.clock[0] += 4
        await stage.tick()
        assert "LOST" in stage.text() and "°C" not in stage.text()


@staged
async def test_a_gpu_that_falls_off_the_bus_stays_as_missing() -> None:
    async with dashboard() as stage:
        await stage.show(told(8))
        await stage.show(told([gpu(number) for number in range(8) if number != 6],
                              problems=["7 of 8 GPUs answer: GPU 6 (GPU-0006) is missing"], at=NOON + 1))  # fmt: skip
        row = next(line for line in stage.text().splitlines() if line.startswith("    6 "))
        assert "!! no answer" in row and "%" not in row
        assert "7 of 8 GPUs answer" in stage.text()
        await stage.press("r")
        await stage.show(told([gpu(number) for number in range(6)], at=NOON + 2))
        assert "no answer" not in stage.text()


@staged
async def test_what_somebody_knows_of_is_said_quietly() -> None:
    async with dashboard((120, 40)) as stage:
        known = FINDINGS[0] | {"acknowledged": {"at": "2025-07-30T11:58:00Z", "by": "ada"}}
        firing = [
            known,
            FINDINGS[1] | {"silenced": {"until": "2025-07-30T13:00:00Z", "id": "1", "note": ""}},
            FINDINGS[2],
        ]
        await stage.show(told(8, alerts={"firing": firing}))
        assert (
            "acknowledged by ada, GpuHardwareSlowdown" in stage.text() and "silenced, TrainingStraggler" in stage.text()
        )
        loud = [
            piece for line in draw(stage.app.view, 120, 40)["below"] for piece in line if piece[1] in ("bad", "warn")
        ]
        assert not loud


@staged
async def test_nan_is_said_and_a_gap_in_the_graph() -> None:
    async with dashboard() as stage:
        await stage.course(busy, 4)
        await stage.show(told(2, [run("gemma", 1, ranks=[rank(0, loss="NaN", gradient_norm="Infinity")])], NOON + 1))
        text = stage.text()
        assert "loss NaN !!" in text and "gradient inf !!" in text and re.search(r"loss of gemma .*NaN !!", text)


@staged
async def test_unknown_is_a_dash_and_never_0() -> None:
    async with dashboard() as stage:
        bare = {"gpu": 0, "uuid": "GPU-0"}
        await stage.show(told([bare], [{"run": "new", "status": "running", "ranks": []}]))
        row = next(line for line in stage.text().splitlines() if line.startswith("▶"))
        assert row.split()[2:] == ["─" * 10, "-", "─" * 10, "-", "-", "-"]
        assert not re.search(r"\d", "".join(row.split()[2:])) and "step -" in stage.text()


WELL = [told(0, at=None), told(0), told(1), told(8), told(8, [run("a"), run("b", 64)]), busy(NOON), busy(NOON, 16, 64)]


@staged
@pytest.mark.parametrize("size", [(20, 3), (40, 10), (60, 15), (79, 23), (80, 24), (81, 25), (120, 40), (300, 90)])
async def test_nothing_wraps_whatever_the_size(size: tuple[int, int]) -> None:
    async with dashboard(size) as stage:
        for json in WELL:
            await stage.show(json | {"timestamp": json["timestamp"]})
            assert_whole(stage, size)


def assert_whole(stage: Stage, size: tuple[int, int]) -> None:
    drawn = lines_of(stage.svg())
    assert len(drawn) <= size[1]
    assert all(len(line) <= size[0] for line in drawn)
    assert drawn[0].startswith("TrainVital") and ("q quit" in drawn[-1] or len(drawn) < size[1])
