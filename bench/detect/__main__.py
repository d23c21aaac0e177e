"""python -m bench.detect [WORD ...]: how right the detectors are; writes docs/detection.md where all was measured."""

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from bench.detect import labelled, live, nab, nanogpt, page, stragglers, tables
from bench.detect.results import Results

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "detection.md"
DATA = ROOT.parent / "shared" / "data"


def main() -> int:
    asked = _arguments()
    results, began = Results(load=os.getloadavg()[0]), time.monotonic()
    parts: dict[str, Callable[[], None]] = {
        "labelled scenarios": lambda: _labelled(results, asked.words, asked.jobs),
        "nanogpt": lambda: _put(results, "nanogpt", nanogpt.measure, asked.data / "nanogpt"),
        "stragglers": lambda: _put(results, "stragglers", stragglers.measure, asked.data / "stragglers"),
        "nab": lambda: _put(results, "nab", lambda folder: nab.measure(folder, nab.spikes), asked.data / "nab"),
        "live": lambda: setattr(results, "live", live.measure()),
    }
    broken = [name for name, part in parts.items() if not (asked.words and name != "labelled scenarios")
              and not _is_done(name, part)]  # fmt: skip
    results.seconds = time.monotonic() - began
    text = page.measured(results)
    print(text)
    if broken:
        print(f"bench: not measured, see above: {', '.join(broken)}; {PAGE.name} stays as it was", file=sys.stderr)
        return 1
    if not asked.words:
        page.put(PAGE, text)
        print(f"written: {PAGE.relative_to(ROOT)}")
    if missed := tables.missed(results):
        print(f"bench: missed: {', '.join(missed)}", file=sys.stderr)
    return int(bool(missed))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.detect", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD", help="scenarios whose name or family holds it alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="so many at a time")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of real traces (%(default)s)")
    return parser.parse_args()


def _is_done(name: str, part: Callable[[], None]) -> bool:
    print(f"bench: {name} ...", file=sys.stderr, flush=True)
    try:
        part()
    except Exception:
        traceback.print_exc()
        return False
    return True


def _labelled(results: Results, words: list[str], jobs: int) -> None:
    if wanted := labelled.chosen(words):
        results.labelled = labelled.measure(wanted, jobs)


def _put(results: Results, name: str, measure: Callable[[Path], object], folder: Path) -> None:
    """Nobody has to have the traces."""
    if folder.is_dir():
        setattr(results, name, measure(folder))
    else:
        results.unmeasured[f"the traces of {name}"] = "their folder is not there"
        print(f"bench: {name}: {folder} is not there; going on without", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
