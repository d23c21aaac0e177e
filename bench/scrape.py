"""A scrape of /metrics: the agent with two live runs, nvitop-exporter, and bare prometheus-client gauges."""

import random
import time
from collections.abc import Callable
from functools import partial

from prometheus_client import generate_latest
from prometheus_client.registry import CollectorRegistry

from bench.plain_exporter import gauges
from bench.rows import Row, Section, median, quantile
from bench.stage import Scraper, Stage, Target, wait_until
from trainvitals import exporter
from trainvitals.model import Snapshot
from trainvitals.once import read_once
from trainvitals.sources.host import HostSource
from trainvitals.sources.simulated import SimulatedSource

INTERVAL = 0.25
WARM_UP = 5
GOAL = 2 / 3
Timings = dict[str, list[float]]


def measure(stage: Stage) -> Section:
    with stage.scene():
        agent, nvitop = stage.agent("scraped", INTERVAL), stage.nvitop(INTERVAL)
        stage.trainer("scraped")
        stage.mover(INTERVAL)
        wait_until(lambda: _is_whole(agent), "both runs and every tier are in /metrics")
        series = {target.name: count_series(target) for target in (agent, nvitop)}
        plain = stage.plain(series[nvitop.name], INTERVAL)
        series[plain.name] = count_series(plain)
        targets = [agent, nvitop, plain]
        paced = _timed(targets, stage.few_or(8, 200), paced=True)
        packed = _timed(targets, stage.few_or(20, 300), paced=False)
        fresh = _timed(targets, stage.few_or(20, 200), paced=False, fresh_connection=True)
    return Section("Scrape of /metrics", [*_rows(paced, packed, fresh, series, targets), _render_row(stage)], NOTES)


NOTES = [
    "All three answer over loopback, uncompressed, from what they sampled before: none reads NVML in a scrape. They "
    f"sample every {INTERVAL:g} s and readings move as often. The scrapes of the first rows are further apart than "
    "that: each meets new readings. Those `one after another` meet the same readings several times.",
    "The agent keeps the connection open; the servers of the other two (the one that prometheus-client brings) speak "
    "HTTP/1.0 and close it, so each of their scrapes connects. In the row `new connection` the agent's do too.",
    "`Render alone` is in one process, without a server, of snapshots of simulated GPUs that take turns.",
]


def count_series(target: Target) -> int:
    scraper = target.scraper()
    lines = scraper.get().splitlines()
    scraper.close()
    return sum(not line.startswith(b"#") for line in lines)


def _is_whole(agent: Target) -> bool:
    scraper = agent.scraper()
    text = scraper.get()
    scraper.close()
    return b"gpu_power_limit_watts" in text and text.count(b"\ntraining_steps_total{") >= 4


def _timed(targets: list[Target], rounds: int, *, paced: bool, fresh_connection: bool = False) -> Timings:
    """One scrape each in turn; the first five rounds warm up."""
    chance = random.Random(7)
    scrapers = {target.name: target.scraper() for target in targets}
    timings: Timings = {name: [] for name in scrapers}
    for turn in range(-WARM_UP, rounds):
        if paced:
            time.sleep(INTERVAL * (1.05 + 0.3 * chance.random()))
        for name, scraper in scrapers.items():
            taken = _once(scraper, fresh_connection)
            timings[name] += [taken] if turn >= 0 else []
    for scraper in scrapers.values():
        scraper.close()
    return timings


def _once(scraper: Scraper, fresh_connection: bool) -> float:
    taken = scraper.timed()
    if fresh_connection:
        scraper.close()
    return taken


def _rows(paced: Timings, packed: Timings, fresh: Timings, series: dict[str, int], targets: list[Target]) -> list[Row]:
    ours, nvitop, plain = (target.name for target in targets)
    enough = series[ours] >= series[nvitop]
    met = quantile(paced[ours], 0.5) <= GOAL * quantile(paced[nvitop], 0.5) and enough
    first = _row("scrape, p50", paced, 0.5, ours, nvitop)
    first.goal, first.met = "≤ 2/3", met
    each = quantile(paced[ours], 0.5) / series[ours], quantile(paced[nvitop], 0.5) / series[nvitop]
    return [
        first,
        _row("scrape, p99", paced, 0.99, ours, nvitop),
        _row("scrape, p50", paced, 0.5, ours, plain),
        _row("scrape, p99", paced, 0.99, ours, plain),
        Row("series in a scrape", series[ours], series[nvitop], nvitop, "", "no fewer", enough),
        Row("scrape, p50, per series", *each, nvitop, "µs"),
        _row("scrape, p50, one after another", packed, 0.5, ours, nvitop),
        _row("scrape, p99, one after another", packed, 0.99, ours, nvitop),
        _row("the same, p50, new connection", fresh, 0.5, ours, nvitop),
    ]


def _row(what: str, timings: Timings, share: float, ours: str, peer: str) -> Row:
    mine, theirs = quantile(timings[ours], share), quantile(timings[peer], share)
    return Row(what, mine, theirs, peer, "ms", samples=f"{len(timings[ours])} each")


def _render_row(stage: Stage) -> Row:
    """In this process, without a server: our families from a snapshot, and as many gauges of the client."""
    snapshots = simulated_snapshots()
    count = sum(not line.startswith(b"#") for line in exporter.render(snapshots[0])[0].splitlines())
    registry = CollectorRegistry()
    gauges(registry, count)
    ours: list[float] = []
    peer: list[float] = []
    for turn in range(stage.few_or(10, 200)):
        ours.append(_seconds_of(partial(exporter.render, snapshots[turn % len(snapshots)])))
        peer.append(_seconds_of(partial(generate_latest, registry)))
    return Row(
        "render alone, per series",
        median(ours) / count,
        median(peer) / count,
        "prometheus-client gauges",
        "µs",
        samples=f"{len(ours)} each, {count} series",
    )


def simulated_snapshots(count: int = 3) -> list[Snapshot]:
    """Of different GPUs by the seed, as if time had passed."""
    return [read_once([SimulatedSource(8, "healthy", seed), HostSource()])[0] for seed in range(count)]


def _seconds_of(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
