"""What a trainer that closes all its descriptors, to become a daemon, then has under our old numbers is its own."""

import resource
from pathlib import Path

import pytest

from tests.collector.journal.helpers import python
from trainvitals.journal import descriptors

DAEMON = """
import os, resource, sys
from pathlib import Path
from trainvitals.journal import runs
from trainvitals.journal.run_files import RunFiles
root, limit, wanted = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
files = RunFiles(runs.claim(root, "train", environ={}), "train")
files.metrics.append({"n": 1})
files.events.append({"n": 1})
os.closerange(3, limit)
mine = [os.open(root / f"{n}", os.O_RDWR | os.O_CREAT) for n in range(wanted)]
if len(sys.argv) > 4:
    files.metrics._check_at = files.events._check_at = 0.0  # as it is a second later
for n in range(3):
    files.metrics.append({"n": 2 + n})
files.rank.tell(gpus=[])
files.end("finished")
still = [os.fstat(fd).st_ino == os.stat(root / f"{n}").st_ino for n, fd in enumerate(mine)]
sizes = [(root / f"{n}").stat().st_size for n in range(wanted)]
print(all(still), sum(sizes), flush=True)
"""


@pytest.mark.parametrize(("limit", "wanted", "late"), [(1024, 300, ""), (512, 300, ""), (256, 150, ""),
                                                       (256, 250, "late"), (1024, 1010, "late")])  # fmt: skip
def test_neither_closed_nor_written_into(tmp_path: Path, limit: int, wanted: int, late: str) -> None:
    process = python(DAEMON, tmp_path, limit, wanted, *([late] if late else []))
    output, _ = process.communicate(timeout=30)
    assert output == "True 0\n"


@pytest.mark.parametrize(("limit", "lowest"), [(1024, 960), (256, 192), (100, 50), (10**6, 4032), (-1, 4032)])
def test_our_numbers_are_near_the_limit(monkeypatch: pytest.MonkeyPatch, limit: int, lowest: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    assert descriptors._lowest() == lowest
