"""The page's script, run by Node where there is one: what it makes of snapshots."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import trainvitals

SCRIPT = Path(trainvitals.__file__).parent / "web" / "static" / "page.js"
STUBS = """
const element = () => ({ replaceChildren() {}, classList: { remove() {}, add() {} }, appendChild: element,
  insertCell: element, textContent: "" });
globalThis.document = { getElementById: element, createElement: element, querySelector: element };
globalThis.EventSource = class {};
globalThis.setInterval = () => {};
"""


def evaluate(program: str) -> object:
    node = shutil.which("node")
    if not node:
        pytest.skip("no Node here")
    answer = subprocess.run([node, "-e", f"{STUBS}\n{SCRIPT.read_text()}\nconsole.log(JSON.stringify({program}))"],
                            capture_output=True, text=True, timeout=20, check=False,
                            env={"TZ": "UTC"})  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def shares(*sums: tuple[float, float, float]) -> object:
    """The share at each (time, data wait, everything else)."""
    ranks = [
        [at, {"phase_seconds_total_data_wait": wait, "phase_seconds_total_other": rest}] for at, wait, rest in sums
    ]
    return evaluate(f"{json.dumps(ranks)}.map(([at, rank]) => waitShare('a', rank, at) ?? null)")


def test_data_wait_is_of_the_last_fifteen_seconds() -> None:
    quiet = [(float(at), 0.0, float(at)) for at in range(100)]
    starved = [(100.0 + at, 0.5 * at, 100 + 0.5 * at) for at in range(20)]
    told = shares(*quiet, *starved)
    assert isinstance(told, list)
    assert told[:2] == [None, 0]
    assert told[99] == 0
    assert 0.2 < told[107] < 0.3
    assert told[-1] == 0.5


def test_a_run_that_starts_over_is_measured_anew_and_one_that_hangs_is_unknown() -> None:
    assert shares((0, 5, 5), (1, 6, 5), (2, 0, 1), (3, 0.5, 1.5), *((at, 0.5, 1.5) for at in range(4, 20))) == [
        None, 1, None, 0.5, *[0.5] * 14, None, None]  # fmt: skip


def test_an_xid_is_a_line_with_the_gpu_and_the_time() -> None:
    xid = {"gpu": "2", "uuid": "GPU-2", "xid": "79", "errors_total": 1, "last_timestamp_seconds": 43391.5}
    assert evaluate(f"xidRows([{json.dumps(xid)}])[0].textContent") == "GPU 2: Xid 79, 12:03:11"


def test_what_the_script_reaches_for_is_on_the_page() -> None:
    page = SCRIPT.with_name("index.html").read_text()
    assert "<th>Data wait, 15 s</th>" in page
    assert page.index('id="gpus"') < page.index('id="xids"') < page.index('id="runs"')
