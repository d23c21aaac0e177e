"""A dashboard on a stage: told what to show, at a time of its own, without a terminal.

async with dashboard(size=(80, 24)) as stage:
    await stage.show(told(gpus=8, runs=[run("gemma")]))
    await stage.press("down")
    assert "▶   1" in stage.text()
"""

import asyncio
import functools
import os
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from rich.cells import cell_len
from textual.pilot import Pilot

from trainvitals.journal.record import timestamp_at
from trainvitals.tui.app import Options, Tell, Top
from trainvitals.tui.feed import Heard
from trainvitals.tui.picture import picture
from trainvitals.tui.view import Asked

Json = dict[str, Any]
GOLDEN = Path(__file__).parents[1] / "golden" / "top"
LIMIT_SECONDS = 30.0
NOON = 1753876800.0
AGENT = "agent 127.0.0.1:8080"


def gpu(number: int, **values: Any) -> Json:
    """An H100 at work; `None` takes a field away."""
    read = {
        "gpu": number, "uuid": f"GPU-{number:04d}", "name": "NVIDIA H100 80GB HBM3",
        "utilization_percent": 90.0 + number % 8, "memory_used_mb": 63488.0 + 16 * number, "memory_total_mb": 81559.0,
        "memory_percent": 77.8, "temperature_celsius": 60.0 + number % 8, "power_draw_watts": 600.0 + number,
        "power_limit_watts": 700.0, "temperature_slowdown_celsius": 87.0, "clock_hertz_sm": 1.755e9,
        "throttle_active": ["sw_power_cap"], "compute_processes": 1.0,
        "processes": [{"pid": str(4711 + number), "user": "ada", "command": "python train.py",
                       "memory_bytes": 62.0 * 2**30}]}  # fmt: skip
    return {name: value for name, value in (read | values).items() if value is not None}


def rank(number: int, step: float = 6200.0, **values: Any) -> Json:
    read = {"rank": number, "step": step, "loss": 1.8234, "learning_rate": 3e-4, "gradient_norm": 0.62,
            "tokens_per_second": 42_100.0, "last_step_timestamp_seconds": NOON - 0.4,
            "phase_seconds_total_data_wait": 20.0, "phase_seconds_total_forward": 400.0,
            "phase_seconds_total_backward": 480.0, "phase_seconds_total_optimizer": 100.0,
            "gpus": [{"gpu": str(number), "uuid": f"GPU-{number:04d}"}]}  # fmt: skip
    return read | values


def run(name: str, size: int = 8, /, **values: Any) -> Json:
    read = {"run": name, "name": name, "framework": "transformers", "world_size": str(size), "status": "running",
            "planned_steps": 20_000.0, "start_timestamp_seconds": NOON - 1620,
            "progress": {"step": 6200.0, "planned_steps": 20_000.0, "steps_per_second": 3.88, "eta_seconds": 3557.0,
                         "loss": 1.8234, "loss_trend": "falling", "cost_dollars": 14.4, "dollars_per_hour": 32.0},
            "ranks": [rank(number) for number in range(size)]}  # fmt: skip
    return read | values


def finding(name: str, severity: str, what: str, where: str = "GPU 6, gpu1", minutes: float = 4) -> Json:
    return {"name": name, "where": where, "starts": timestamp_at(NOON - 60 * minutes),
            "labels": {"severity": severity}, "annotations": {"summary": what}}  # fmt: skip


def told(gpus: int | list[Json] = 8, runs: list[Json] | None = None, at: float | None = NOON, **more: Any) -> Json:
    """What GET /api/v1/snapshot answers."""
    listed = [gpu(number) for number in range(gpus)] if isinstance(gpus, int) else gpus
    return {"version": "0.1.0", "node": "gpu1", "interval": 1.0, "problems": [], "sources": {}, "xids": [],
            "alerts": {"firing_count": 0, "firing": [], "resolved": []}, "gpus": listed, "runs": runs or [],
            "host": {"cpu_usage_percent": 12.5, "memory_used_bytes": 2.0**37, "memory_total_bytes": 2.0**39},
            "timestamp": None if at is None else timestamp_at(at), **more}  # fmt: skip


class Feed:
    """Tells nothing by itself."""

    def __init__(self, tell: Tell) -> None:
        self.tell, self.calls = tell, list[str]()

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")


@dataclass
class Stage:
    app: Top
    pilot: "Pilot[None]"
    feed: Feed
    clock: list[float]

    async def show(self, json: Json, *, after: float = 1.0, source: str = AGENT, problem: str = "") -> None:
        self.clock[0] += after
        self.feed.tell(Heard(picture(json), source, self.clock[0], problem))
        await self.pilot.pause()

    async def lose(self, problem: str = "Connection refused", *, after: float = 1.0) -> None:
        self.clock[0] += after
        self.feed.tell(Heard(None, AGENT, self.clock[0], problem))
        await self.pilot.pause()

    async def course(self, make: Callable[[float], Json], ticks: int) -> None:
        """A snapshot a second, the last one at noon; only that is drawn."""
        for tick in range(1 - ticks, 0):
            self.app.view.history.add(picture(make(NOON + tick)), self.clock[0] + ticks + tick, 1.0)
        await self.show(make(NOON), after=ticks)

    async def tick(self) -> None:
        """As the second that passes has it."""
        self.app._pass_time()
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    def svg(self) -> str:
        return self.app.export_screenshot(title="trainvitals top")

    def text(self) -> str:
        return "\n".join(lines_of(self.svg()))


@asynccontextmanager
async def dashboard(size: tuple[int, int] = (80, 24), *, gpus: tuple[int, ...] = (), run: str = "",
                    is_ascii: bool = False, folder: Path = Path()) -> AsyncIterator[Stage]:  # fmt: skip
    clock, feeds = [1000.0], list[Feed]()

    def make_feed(tell: Tell) -> Feed:
        feeds.append(Feed(tell))
        return feeds[0]

    options = Options(1.0, Asked(gpus, run), is_ascii, folder)
    app = Top(options, make_feed, clock=lambda: clock[0])
    async with app.run_test(size=size) as pilot:
        yield Stage(app, pilot, feeds[0], clock)


_TEXT = "{http://www.w3.org/2000/svg}text"
_CELL, _LINE = 12.2, 24.4


def lines_of(svg: str) -> list[str]:
    """What stands on the screen, from its picture."""
    placed: dict[int, list[tuple[int, str]]] = {}
    for one in ElementTree.fromstring(svg).iter(_TEXT):
        match = re.search(r"line-(\d+)\)", one.get("clip-path", ""))
        if match:
            text = (one.text or "").replace("\xa0", " ")
            placed.setdefault(int(match[1]), []).append((round(float(one.get("x", "0")) / _CELL), text))
    last = max(placed, default=-1)
    return [_joined(sorted(placed.get(line, []))) for line in range(last + 1)]


def _joined(pieces: list[tuple[int, str]]) -> str:
    text = ""
    for at, piece in pieces:
        text += " " * (at - cell_len(text)) + piece
    return text.rstrip()


def staged(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine, and hangs nobody."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **named), LIMIT_SECONDS))

    return run


def assert_as_kept(svg: str, name: str) -> None:
    """Compared with the picture in tests/golden/top; UPDATE_GOLDEN=1 writes it anew: look at it before you commit."""
    # Fonts of elsewhere are no part of it.
    drawn = re.sub(r"\s*@font-face \{[^}]*\}", "", svg)
    path = GOLDEN / f"{name}.svg"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(drawn, encoding="utf-8")
    kept = path.read_text(encoding="utf-8")
    assert lines_of(drawn) == lines_of(kept)
    assert drawn == kept, "the same text in other colours"
