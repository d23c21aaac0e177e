"""A minute at ten readings a second, scraped and watched all the while: memory stays flat."""

import statistics
import threading
import time
import urllib.request
from pathlib import Path

import psutil

from tests.collector.support import Served, serving

SOAK_SECONDS = 60.0
WARM_UP_SECONDS = 20.0
GROWTH_MIB = 1.5


def test_memory_is_flat(tmp_path: Path) -> None:
    with serving(tmp_path, "--simulate", "8", "--interval", "0.1") as agent:
        watcher = threading.Thread(target=watch, args=(agent,), daemon=True)
        watcher.start()
        rows = [measure(agent) for _ in range(int(SOAK_SECONDS))]
        late = next(line for line in agent.get("/metrics").splitlines() if line.startswith("trainvitals_ticks_late"))
        assert agent.stop() == 0
    warm = [mib for at, mib in rows if WARM_UP_SECONDS <= at < WARM_UP_SECONDS + 10]
    end = [mib for at, mib in rows if at >= rows[-1][0] - 10]
    print(f"{statistics.median(warm):.1f} MiB warm, {statistics.median(end):.1f} MiB at the end, {late}")
    assert statistics.median(end) - statistics.median(warm) < GROWTH_MIB
    assert sum(len(path.read_bytes().splitlines()) for path in tmp_path.glob("gpu/*/gpu_metrics_*")) > 1000


def measure(agent: Served) -> tuple[float, float]:
    """Seconds since the process began, and its memory; a scrape goes with it."""
    agent.get("/metrics", {"Accept-Encoding": "identity"})
    time.sleep(1)
    process = psutil.Process(agent.process.pid)
    return time.time() - process.create_time(), process.memory_info().rss / 2**20


def watch(agent: Served) -> None:
    """Reads the event stream as an open page does, until the agent ends."""
    try:
        with urllib.request.urlopen(agent.address + "/api/v1/stream", timeout=30) as stream:
            for _ in stream:
                pass
    except OSError:
        return
