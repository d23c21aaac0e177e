"""python -m bench [--quick] [--only PART ...]: measures, prints the table, and writes docs/benchmarks.md."""

import argparse
import os
import signal
import sys
import time
import traceback

from bench import (
    alerts,
    append,
    browser,
    commands,
    footprint,
    imports,
    run_log,
    scrape,
    slow_gpu,
    steps,
    tail,
    top,
    watch,
)
from bench.report import markdown, page
from bench.rows import Section
from bench.stage import ROOT, Stage

PARTS = {"scrape": scrape.measure, "footprint": footprint.measure, "commands": commands.measure,
         "slow_gpu": slow_gpu.measure, "imports": imports.measure, "append": append.measure,
         "tail": tail.measure, "run_log": run_log.measure, "steps": steps.measure,
         "watch": watch.measure, "top": top.measure, "alerts": alerts.measure, "page": browser.measure}  # fmt: skip
PAGE = ROOT / "docs" / "benchmarks.md"


def main() -> int:
    asked = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    load, began = os.getloadavg()[0], time.monotonic()
    with Stage(quick=asked.quick) as stage:
        measured = {name: _measured(name, stage) for name in asked.only or PARTS}
    sections = [section for section in measured.values() if section]
    print("\n".join(map(markdown, sections)))
    if broken := [name for name, section in measured.items() if section is None]:
        print(f"bench: not measured, see above: {', '.join(broken)}; {PAGE.name} stays as it was", file=sys.stderr)
        return 1
    if not asked.only:
        PAGE.write_text(
            page(sections, quick=asked.quick, load=load, seconds=time.monotonic() - began), encoding="utf-8"
        )
        print(f"written: {PAGE.relative_to(ROOT)}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few samples: shows that it works, for no verdict")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="these parts alone; writes no page")
    return parser.parse_args()


def _measured(name: str, stage: Stage) -> Section | None:
    """None for a part that broke: the others are measured all the same."""
    print(f"bench: {name} ...", flush=True)
    began = time.monotonic()
    try:
        section = PARTS[name](stage)
    except Exception:
        traceback.print_exc()
        section = None
    print(f"bench: {name}: {time.monotonic() - began:.0f} s", flush=True)
    return section


if __name__ == "__main__":
    sys.exit(main())
