"""The page in Chromium: what a first load costs, when the first reading is seen, and a run of a million steps beside a
hundred others."""

import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

from bench.rows import Row, Section, median, quantile
from bench.stage import Stage, Target, wait_until
from trainvitals.journal import runs
from trainvitals.journal.record import timestamp_at
from trainvitals.journal.run_files import RunFiles

RUN, OTHER_STEPS = "million", 20_000
RUNS = "/api/v1/runs?limit=200"
STEP_SECONDS = 0.25
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
MAX_LOAD_BYTES = 120_000
MAX_OPEN_SECONDS = 1.0
FRAMES, MAX_FRAME_SECONDS = 120, 1 / 60
# A frame is counted in whole ones of the screen, and its clock is not ours.
TOLERANCE = 1.02

READING = "/[0-9]/.test(document.querySelector('#gpu-tiles .value b')?.textContent ?? '')"
# So long after the navigation all of a view has come.
WHOLE_MILLISECONDS = 2000
DRAWN = "document.querySelector('#chart-loss .plot')?.chart.plot?.data[0].length > 100"
BYTES = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .reduce((sum, one) => sum + one.transferSize, 0)"""
ASKED = """async (path) => {
  const began = performance.now();
  const { length } = await (await fetch(path)).text();
  return [(performance.now() - began) / 1000, length];
}"""
PANNED = """(frames) => new Promise((told) => {
  const { group } = document.querySelector("#chart-loss .plot").chart;
  const [from, to] = group.shown();
  const times = [];
  const next = (now) => {
    times.push(now);
    const moved = (times.length * (to - from)) / 500;
    group.move(from + moved, to + moved);
    if (times.length <= frames) requestAnimationFrame(next);
    else told(times.slice(1).map((time, place) => (time - times[place]) / 1000));
  };
  requestAnimationFrame(next);
})"""


class Load(NamedTuple):
    size: int
    seconds: float


class Measured(NamedTuple):
    """`listed` are seconds of the list of runs, `opened` are loads of the long one, among so many `others`; `snapshot`
    is the bytes of one on the stream."""

    loads: list[Load]
    opened: list[Load]
    listed: list[float]
    frames: list[float]
    snapshot: int
    steps: int
    others: int


def measure(stage: Stage) -> Section:
    steps, others = stage.few_or(50_000, 1_000_000), stage.few_or(5, 100)
    names = [f"other-{number}" for number in range(others)]
    for name in names:
        _write(stage, name, stage.few_or(1_000, OTHER_STEPS))
    _write(stage, RUN, steps)
    with stage.scene(), _browser() as browser:
        agent, turns = stage.agent("page"), range(stage.few_or(3, 10))
        with _tab(browser, agent, "") as page:
            for name in (RUN, *names):
                wait_until(lambda name=name: _is_indexed(page, name), f"{name} is indexed", 120)
            listed = [float(page.evaluate(ASKED, RUNS)[0]) for _ in turns]
            snapshot = int(page.evaluate(ASKED, "/api/v1/snapshot")[1])
        loads = [_load(browser, agent, "", READING) for _ in turns]
        opened = [_load(browser, agent, f"?view=training&run={RUN}", DRAWN) for _ in turns]
        frames = _frames(browser, agent)
    return Section("Page", _rows(Measured(loads, opened, listed, frames, snapshot, steps, others)), NOTES)


NOTES = [
    "Chromium without a graphics card, over loopback, with an empty cache each time. Bytes of a first load are those "
    "of all that had come whole after two seconds: the files of the view that is shown, headers, answers of the API. "
    "The other views come when somebody turns to them. The stream of snapshots, which does not end, is not among them: "
    "each of its events is as long as its row says, and is not packed. Times count from the click to a GPU's number, "
    "or to the loss of the run.",
    f"Beside the long run others of {OTHER_STEPS:,} steps lie in the journal, and the page asks for the list of all "
    "before it opens one. A run is open when its loss is drawn from the answer of the agent, which has indexed it "
    "before. Frames are those of panning all charts that are seen, drawn by the processor; of this machine's cores the "
    "agent has its share.",
]


def _rows(found: Measured) -> list[Row]:
    reading, opened = [load.seconds for load in found.loads], [load.seconds for load in found.opened]
    seconds, frame = median(opened), median(found.frames)
    return [
        _sizes("kB of a first load", found.loads),
        _sizes(f"kB of a first load that shows a run of {found.steps:,} steps", found.opened),
        Row("kB of a snapshot on the stream, one a tick", found.snapshot / 1000),
        Row("click to first reading, p50", median(reading), unit="ms", samples=str(len(reading))),
        Row(f"the list of {found.others + 1} runs, p50", median(found.listed), unit="ms",
            samples=str(len(found.listed))),
        Row(f"click to a run of {found.steps:,} steps, p50", seconds, unit="ms", goal="≤ 1 s",
            met=seconds <= MAX_OPEN_SECONDS, samples=str(len(opened))),
        Row("a frame while panning, p50", frame, unit="ms", goal="≤ 1/60 s",
            met=frame <= TOLERANCE * MAX_FRAME_SECONDS, samples=str(len(found.frames))),
        Row("a frame while panning, p95", quantile(found.frames, 0.95), unit="ms", samples=str(len(found.frames))),
    ]  # fmt: skip


def _sizes(name: str, loads: list[Load]) -> Row:
    size = max(load.size for load in loads)
    return Row(name, size / 1000, goal=f"≤ {MAX_LOAD_BYTES / 1000:g}", met=size <= MAX_LOAD_BYTES,
               samples=str(len(loads)))  # fmt: skip


def _write(stage: Stage, name: str, steps: int) -> None:
    """With a spike, and a gap of values that are no numbers."""
    files = RunFiles(runs.claim(stage.journal("page"), name, run_id=name, environ={}), name, planned_steps=steps)
    began = 1.75e9
    for step in range(1, steps + 1):
        loss = 1.5 + 4 * math.exp(-step / (steps / 20)) + 8 * (step == steps // 2)
        files.metrics.append({
            "timestamp": timestamp_at(began + STEP_SECONDS * step), "step": step,
            "loss": math.nan if 0.7 * steps < step < 0.701 * steps else loss + 0.01 * (step % 7),
            "learning_rate": 3e-4, "gradient_norm": 0.6 + 0.1 * (step % 5), "step_duration_seconds": STEP_SECONDS,
        })  # fmt: skip
    files.end("finished")


@contextmanager
def _browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        raise RuntimeError("no Chromium here: apt-get install chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield browser
        browser.close()


@contextmanager
def _tab(browser: Browser, agent: Target, query: str) -> Iterator[Page]:
    """With nothing in its cache."""
    context = browser.new_context(viewport={"width": 1600, "height": 1000})
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{agent.port}/{query}", wait_until="commit")
    yield page
    context.close()


def _is_indexed(page: Page, run: str) -> bool:
    told: Any = page.evaluate(f"async () => (await fetch('/api/v1/runs/{run}/series?points=10')).json()")
    return not told.get("missing_bytes", 1)


def _when(page: Page, what: str) -> float:
    """Seconds from the navigation to what is looked for, by the page's own clock."""
    look = f"() => ({what}) ? told(performance.now() / 1000) : setTimeout(look, 4)"
    return float(page.evaluate(f"() => new Promise((told) => {{ const look = {look}; look(); }})"))


def _load(browser: Browser, agent: Target, query: str, what: str) -> Load:
    with _tab(browser, agent, query) as page:
        seconds = _when(page, what)
        page.wait_for_timeout(WHOLE_MILLISECONDS)
        return Load(int(page.evaluate(BYTES)), seconds)


def _frames(browser: Browser, agent: Target) -> list[float]:
    with _tab(browser, agent, f"?view=training&run={RUN}") as page:
        _when(page, DRAWN)
        page.wait_for_timeout(1000)
        return list(page.evaluate(PANNED, FRAMES))
