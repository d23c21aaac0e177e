"""What never got into a journal is counted."""

from pathlib import Path

import trainvitals as tv
from tests.collector.support import wait_for


def test_what_waited_for_a_journal_that_never_came_is_counted(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run = tv.start("nowhere", dir=tmp_path / "file" / "journal")
    for _ in range(30):
        run.log(loss=1.0)
    assert run.dropped == 0
    run.finish()
    wait_for(lambda: run.dropped == 30)
