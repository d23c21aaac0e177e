"""The host source on this machine, and process trees on a /proc made for the test."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.collector.support import wait_for
from trainvitals import catalog
from trainvitals.sources import host
from trainvitals.sources.host import Host, process_trees


@pytest.mark.parametrize("tier", ["fast", "slow", "rare"])
def test_every_field_is_in_the_catalogue_under_its_tier(tier: str) -> None:
    device = Host(per_core=True)
    time.sleep(0.05)
    for reading in device.read(tier):  # type: ignore[arg-type]
        assert set(reading.values) <= set(catalog.fields(reading.scope, tier)), reading  # type: ignore[arg-type]


def test_together_the_tiers_fill_all_host_fields_of_the_source() -> None:
    device = Host(per_core=True)
    time.sleep(0.1)
    read = {(r.scope, name) for tier in ("fast", "slow", "rare") for r in device.read(tier) for name in r.values}  # type: ignore[arg-type]
    wanted = {(m.scope, field) for m in catalog.METRICS if m.source == "host" for field, _ in m.fields()}
    assert wanted - read <= {("disk", field) for field in catalog.fields("disk")}


def test_usage_is_between_nothing_and_everything_and_follows_work() -> None:
    device = Host()
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        pass
    used = device.read("fast")[0].values["cpu_usage_percent"]
    assert 10 < used <= 100  # type: ignore[operator]


def test_usage_is_absent_when_no_time_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Host()
    monkeypatch.setattr(psutil, "cpu_times", lambda same=device._cpu: same)
    assert "cpu_usage_percent" not in device.read("fast")[0].values


def test_a_part_that_fails_leaves_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(psutil, "swap_memory", refuse)
    monkeypatch.setattr(host, "_network_counters", refuse)
    device = Host()
    readings = device.read("slow")
    assert "load_average_1m" in readings[0].values
    assert "swap_total_bytes" not in readings[0].values
    assert device.errors == 2


def test_a_tree_is_the_process_and_its_descendants() -> None:
    script = "import subprocess,sys; subprocess.run([sys.executable,'-c','import time; time.sleep(60)'])"
    parent = subprocess.Popen([sys.executable, "-c", script])
    try:
        tree = wait_for(lambda: (t := process_trees([parent.pid])).get("processes") == 2 and t)
        assert tree["process_resident_bytes"] > 5e6
        assert tree["process_threads"] >= 2
    finally:
        for child in psutil.Process(parent.pid).children(recursive=True):
            child.kill()
        parent.kill()
        parent.wait()


def test_own_numbers_agree_with_psutil() -> None:
    mine = process_trees([os.getpid()])
    process = psutil.Process()
    # What other tests started and still runs is of the tree too.
    tree = [process, *process.children(recursive=True)]
    assert mine["process_cpu_seconds_total"] == pytest.approx(sum(sum(one.cpu_times()[:4]) for one in tree), abs=1.0)
    assert mine["process_resident_bytes"] == pytest.approx(sum(one.memory_info().rss for one in tree), rel=0.2)


def fake_proc(folder: Path, *processes: tuple[int, int, str]) -> Path:
    for pid, parent, name in processes:
        (folder / str(pid)).mkdir()
        rest = ["S", str(parent), *["0"] * 9, "100", "50", "0", "0", "20", "0", "3", "0", "1", "1", "7", *["0"] * 20]
        (folder / str(pid) / "stat").write_text(f"{pid} ({name}) {' '.join(rest)}\n")
    return folder


def test_in_a_container_the_host_s_network_is_that_of_its_first_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "1" / "net").mkdir(parents=True)
    counts = [" ".join(str(number) for number in range(10 * line, 10 * line + 16)) for line in range(2)]
    lines = ["Inter-| Receive | Transmit", " face |bytes |bytes", f"  eth0:{counts[0]}", f"veth1: {counts[1]}"]
    (tmp_path / "1" / "net" / "dev").write_text("\n".join(lines) + "\n")
    device = Host()
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    (network,) = [reading for reading in device.read("slow") if reading.scope == "network"]
    assert network.label("interface") == "eth0"
    assert network.values == {"receive_bytes_total": 0, "receive_errors_total": 2, "transmit_bytes_total": 8,
                              "transmit_errors_total": 10}  # fmt: skip


def test_packets_of_no_known_protocol_which_are_dropped_are_no_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "1" / "net").mkdir(parents=True)
    dropping = "eth0: 9 9 0 4711 0 0 0 0 9 9 0 12 0 0 0 0"
    (tmp_path / "1" / "net" / "dev").write_text(f"Inter-\n face\n{dropping}\n")
    device = Host()
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
    (network,) = [reading for reading in device.read("slow") if reading.scope == "network"]
    assert (network.values["receive_errors_total"], network.values["transmit_errors_total"]) == (0, 0)


def test_hostile_process_names_and_loops_of_parents(tmp_path: Path) -> None:
    proc = fake_proc(tmp_path, (10, 1, "a) S 99 (b"), (11, 10, "python) "), (12, 13, "x"), (13, 12, "y"))
    tree = process_trees([10], proc)
    assert tree["processes"] == 2
    assert tree["process_cpu_seconds_total"] == pytest.approx(300 / host._TICKS)
    assert tree["process_threads"] == 6


def test_processes_that_are_gone_are_nothing(tmp_path: Path) -> None:
    assert process_trees([4242], fake_proc(tmp_path, (10, 1, "x"))) == {}
    assert process_trees([], tmp_path) == {}
