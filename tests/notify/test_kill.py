"""Killed amid sending, again and again: after the last start every finding has been told."""

import random
import subprocess
import sys
import time
from pathlib import Path

from tests.collector.support import wait_for
from tests.notify.support import Hook

# Each tells its findings, says so, and goes on sending until it is killed. The first line of input starts it.
TELLER = """
import sys, time
from pathlib import Path
from tests.notify.support import QUICK, HOST
from trainvitals.detect.finding import Change, Finding, Place
from trainvitals.notify import Notifier, channels, courier, limits

limits.PACES["webhook"] = QUICK
courier.BACKOFF_SECONDS = courier.MAX_BACKOFF_SECONDS = 0.02
folder, url, round_, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
notifier = Notifier(channels(f"webhook={url}", {}), Path(folder), HOST)
notifier.start()
for number in range(count):
    now, found = time.time(), Finding("GpuMissing", "page", "gone", place=Place(run=f"{round_}-{number}"))
    notifier.tell([Change("open", found, now, now)])
    time.sleep(0.001)
# What was told is on its way to the disk at once.
time.sleep(0.3)
print("told", flush=True)
time.sleep(60)
"""
ROUNDS, EACH = 5, 40


def teller(folder: Path, url: str, name: str, count: int) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", TELLER, str(folder), url, name, str(count)], text=True,
                            stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])  # fmt: skip


def test_a_kill_amid_sending_loses_nothing(tmp_path: Path, server: Hook) -> None:
    chance = random.Random(11)
    for number in range(ROUNDS):
        # Some get through, most do not, one hangs.
        server.answers.extend(chance.choice([200, 503, 503, "hang"]) for _ in range(20))
        server.status = 503
        process = teller(tmp_path, server.url, f"round{number}", EACH)
        assert process.stdout is not None and process.stdout.readline() == "told\n"
        time.sleep(chance.uniform(0, 0.3))
        process.kill()
        process.communicate(timeout=10)
        server.answers.clear()
    server.status = 200
    last = teller(tmp_path, server.url, "last", 0)
    wanted = {f"round{number}-{one}" for number in range(ROUNDS) for one in range(EACH)}
    try:
        wait_for(lambda: wanted <= _runs(server), 20)
    finally:
        last.kill()
        last.communicate(timeout=10)


def _runs(server: Hook) -> set[str]:
    return {one["place"]["run"] for body in list(server.taken) for one in body["findings"]}


def test_a_kill_at_any_time_leaves_a_file_that_can_be_read(tmp_path: Path, server: Hook) -> None:
    chance = random.Random(12)
    server.status = 503
    for number in range(4):
        process = teller(tmp_path, server.url, f"round{number}", 5000)
        time.sleep(chance.uniform(0.4, 1.5))
        process.kill()
        process.communicate(timeout=10)
    server.status = 200
    last = teller(tmp_path, server.url, "last", 1)
    try:
        wait_for(lambda: "last-0" in _runs(server), 20)
    finally:
        last.kill()
        last.communicate(timeout=10)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["webhook.jsonl"]
