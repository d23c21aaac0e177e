"""Reading the journal: records a second on one core, and how long a record takes to a subscriber and to /metrics."""

import random
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from bench.rows import Row, Section, median, quantile
from bench.stage import Stage, Target, wait_until
from bench.trainer import record, start
from trainvitals.agent.run_state import RankState
from trainvitals.agent.runs import Runs
from trainvitals.journal.append import Appender
from trainvitals.journal.record import Record
from trainvitals.journal.tail import Tail

GOAL_RATE = 200_000
GOAL_SUBSCRIBER_SECONDS = 0.050
GOAL_METRICS_SECONDS = 1.0
POLL_SECONDS = 0.02
GIVEN = ("step", "epoch", "loss", "learning_rate", "gradient_norm", "throughput_samples_per_sec",
         "memory_allocated_mb", "memory_reserved_mb")  # fmt: skip


def measure(stage: Stage) -> Section:
    rows = [_rate_row(stage, "given fields", True), _rate_row(stage, "given fields and step timing", False)]
    return Section("Tail", rows + _subscriber_rows(stage) + _metrics_rows(stage), NOTES)


NOTES = [
    "The rate is per second of processor time, from a file of whole lines through the tail into the state of a rank; "
    "the peer only parses the lines. Lines of the given fields have nine, with the timing of a step fourteen.",
    "To a subscriber and to /metrics: one record at a random moment, while two other runs log four steps a second. "
    f"/metrics is asked every {POLL_SECONDS * 1000:.0f} ms, and shows what was known at the last tick (1 s).",
]


def _rate_row(stage: Stage, what: str, given: bool) -> Row:
    count = stage.few_or(20_000, 200_000)
    path = _journal(stage, count, given)
    ours: list[float] = []
    peer: list[float] = []
    for _ in range(stage.few_or(2, 5)):
        ours.append(count / _cpu_of_tail(path, count))
        peer.append(count / _cpu_of_parsing(path))
    rate = median(ours)
    return Row(
        f"records a second, {what}",
        rate,
        median(peer),
        "orjson alone",
        "",
        "≥ 200,000",
        rate >= GOAL_RATE,
        f"{len(ours)} times {count:,}",
    )


def _journal(stage: Stage, count: int, given: bool) -> Path:
    appender = Appender(stage.folder / "tail", f"given-{given}.jsonl")
    for step in range(count):
        whole = record(step)
        appender.append({name: whole[name] for name in GIVEN} if given else whole)
    appender.close()
    return stage.folder / "tail" / f"given-{given}.jsonl"


def _cpu_of_tail(path: Path, count: int) -> float:
    began = time.process_time()
    tail, rank, taken = Tail(), RankState(0), 0
    tail.follow(path)
    while records := tail.read(path):
        rank.take(records)
        taken += len(records)
    assert taken == count
    return time.process_time() - began


def _cpu_of_parsing(path: Path) -> float:
    began = time.process_time()
    for line in path.read_bytes().splitlines():
        orjson.loads(line)
    return time.process_time() - began


def _subscriber_rows(stage: Stage) -> list[Row]:
    """A listener in this process; other runs are logged beside it, as an agent would meet them."""
    root = stage.journal("subscribed")
    waits: list[float] = []
    with stage.scene():
        stage.trainer("subscribed")
        wait_until(lambda: list(root.glob("runs/bench-1/training_metrics_*")), "the other runs log")
        runs = Runs(root, "node")

        def listen(run: str, _: int, records: list[Record], is_events: bool) -> None:
            if run.startswith("bench-9") and not is_events:
                waits.extend(time.time() - taken["field_sent"] for taken in records)

        runs.listeners.append(listen)
        runs.start()
        marks = start(root, 1, 1, first=9)[0].metrics
        _settle(marks, lambda: waits)
        waits.clear()
        _send(marks, stage.few_or(5, 100), 0.3, lambda mark: None)
        time.sleep(0.5)
        runs.stop()
    longest = max(waits)
    return [
        Row(f"append to a subscriber, {label}", value, None, "", "ms", goal, met, f"{len(waits)} records")
        for label, value, goal, met in (
            ("median", median(waits), "", None),
            ("p95", quantile(waits, 0.95), "", None),
            ("longest", longest, "≤ 50 ms", longest <= GOAL_SUBSCRIBER_SECONDS),
        )
    ]


def _settle(marks: Appender, is_seen: Callable[[], object]) -> None:
    """Until the run is followed: finding it is another matter than reading it."""
    marks.append(record(0) | {"loss": 999.0, "field_sent": time.time()})
    wait_until(is_seen, "the run is followed")


def _send(appender: Appender, times: int, pause: float, after: Callable[[float], object]) -> None:
    chance = random.Random(7)
    for number in range(times):
        time.sleep(0.05 + pause * chance.random())
        mark = 1000.0 + number
        appender.append(record(number + 1) | {"loss": mark, "field_sent": time.time()})
        after(mark)


def _metrics_rows(stage: Stage) -> list[Row]:
    waits: list[float] = []
    with stage.scene():
        agent = stage.agent("tailed")
        stage.trainer("tailed")
        marks = start(stage.journal("tailed"), 1, 1, first=9)[0].metrics
        _settle(marks, lambda: b" 999.0\n" in agent.scraper().get())
        _send(marks, stage.few_or(2, 30), 1.0, lambda mark: waits.append(_until_shown(agent, mark)))
    longest = max(waits)
    return [
        Row(
            "append to /metrics, longest",
            longest,
            None,
            "",
            "s",
            "≤ 1 tick (1 s)",
            longest <= GOAL_METRICS_SECONDS,
            f"{len(waits)} records",
        ),
        Row("append to /metrics, median", median(waits), None, "", "s", samples=f"{len(waits)} records"),
    ]


def _until_shown(agent: Target, mark: float) -> float:
    began, scraper = time.monotonic(), agent.scraper()
    wanted = f" {mark}\n".encode()
    wait_until(lambda: wanted in scraper.get(), f"loss {mark} in /metrics", 15, POLL_SECONDS)
    scraper.close()
    return time.monotonic() - began
