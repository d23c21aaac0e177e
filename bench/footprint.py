"""Processor time and memory of a monitor at rest: sampling once a second, scraped every 15 s, page closed."""

import time
from collections import defaultdict

from prometheus_client.parser import text_string_to_metric_families

from bench.rows import Row, Section
from bench.stage import Stage, Target, wait_until

SCRAPE_SECONDS = 15.0
MEMORY_GOAL = 45 * 2**20
Figures = dict[str, float]
# What names the GPU or splits one reading over its parts: links are summed, causes and states are one reading.
_NOT_A_FIELD = {"gpu", "uuid", "index", "devicename", "hostname", "link"}


def measure(stage: Stage) -> Section:
    with stage.scene():
        idle, busy, nvitop = stage.agent("idle"), stage.agent("busy"), stage.nvitop()
        stage.trainer("busy")
        stage.mover()
        wait_until(lambda: b"training_steps_total" in busy.scraper().get(), "the runs are in /metrics")
        targets = [idle, busy, nvitop, stage.plain(_series_count(nvitop))]
        time.sleep(stage.few_or(2, 10))
        seconds = stage.few_or(5, 60)
        before = {target.name: _figures(target) for target in targets}
        _scrape_for(targets, seconds)
        after = {target.name: _figures(target) for target in targets}
        fields = {target.name: fields_per_gpu(target) for target in (idle, nvitop)}
    return Section("Agent at rest", _rows(before, after, fields, seconds), NOTES)


NOTES = [
    "All processes run in the same minute, after a warm-up of 10 s; readings move once a second. Processor time is "
    "user and system time from /proc/PID/stat. The stand-in polls while it waits for events, which only the "
    "agent asks for: five times a second. PSS shares out the pages that "
    "processes have in common; two of them are agents here.",
    "Fields per GPU are the values told apart by name and label, without those of a single NVLink link; the causes of "
    "throttling, as 0/1, count as one field.",
]


def _figures(target: Target) -> Figures:
    return {"cpu": target.cpu_seconds(), **target.memory()}


def _scrape_for(targets: list[Target], seconds: float) -> None:
    """Each on a connection of its own, as a Prometheus keeps it."""
    scrapers = [target.scraper() for target in targets]
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        for scraper in scrapers:
            scraper.get()
        time.sleep(min(SCRAPE_SECONDS, left))
    for scraper in scrapers:
        scraper.close()


def _series_count(target: Target) -> int:
    return sum(not line.startswith(b"#") for line in target.scraper().get().splitlines())


def fields_per_gpu(target: Target) -> int:
    """Of the GPU that has the most."""
    return max(map(len, _fields(target.scraper().get().decode()).values()), default=0)


def _fields(text: str) -> dict[str, set[object]]:
    """By GPU: name and telling labels of each value. Causes of throttling, as 0/1, are bits of one answer."""
    found: dict[str, set[object]] = defaultdict(set)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if "uuid" in sample.labels and "run" not in sample.labels and not sample.name.endswith("_info"):
                telling = {item for item in sample.labels.items() if item[0] not in _NOT_A_FIELD}
                bits = sample.name == "gpu_throttle_active"
                found[sample.labels["uuid"]].add((sample.name, frozenset() if bits else frozenset(telling)))
    return found


def _rows(before: dict[str, Figures], after: dict[str, Figures], fields: dict[str, int], seconds: float) -> list[Row]:
    peer = "nvitop-exporter"
    minute = {name: (after[name]["cpu"] - before[name]["cpu"]) * 60 / seconds for name in after}
    cpu = [
        Row(
            "CPU a minute, no runs",
            minute["idle"],
            minute[peer],
            peer,
            "s",
            "≤ 1",
            minute["idle"] <= minute[peer],
            f"{seconds} s",
        ),
        Row("CPU a minute, two runs, 4 steps/s", minute["busy"], minute[peer], peer, "s", "", None, f"{seconds} s"),
        Row(
            "CPU a minute, no runs",
            minute["idle"],
            minute["prometheus-client"],
            "prometheus-client, sampling nothing",
            "s",
            "",
            None,
            f"{seconds} s",
        ),
        Row("fields read per GPU", fields["idle"], fields[peer], peer, "", "≥ 2", fields["idle"] >= 2 * fields[peer]),
    ]
    return cpu + _memory_rows(before, after, peer, seconds)


def _memory_rows(before: dict[str, Figures], after: dict[str, Figures], peer: str, seconds: float) -> list[Row]:
    rows = []
    for name, what in (("idle", "no runs"), ("busy", "two runs")):
        rss = after[name]["Rss"]
        rows.append(Row(f"RSS, {what}", rss, after[peer]["Rss"], peer, "MiB", "≤ 45 MiB", rss <= MEMORY_GOAL))
        rows.append(Row(f"PSS, {what}", after[name]["Pss"], after[peer]["Pss"], peer, "MiB"))
        grown = {of: after[of]["Rss"] - before[of]["Rss"] for of in (name, peer)}
        rows.append(Row(f"growth of RSS, {what}", grown[name], grown[peer], peer, "MiB", samples=f"over {seconds} s"))
    return rows
