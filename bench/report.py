"""The table as the page docs/benchmarks.md, and the words that name the machine."""

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.rows import Section

PEERS = ("nvitop-exporter", "nvitop", "gpustat", "prometheus-client", "orjson")
HEAD = ("what", "ours / peer", "ours", "peer", "must reach", "", "samples")
PAGE = """# What monitoring costs, beside other tools

Written by `make bench` ({hint}); do not edit. Measured on {date}.

- Machine: {machine}
- TrainVitals {ours}, {python}; peers: {peers}
- GPUs: 8, of the stand-in for NVML in tests/fakenvml, which answers at once unless a measure says otherwise. A real
  driver takes longer for each call, for every tool here.
- Ours and the peer take turns, or run at the same time, within one run: compare the ratios. Absolute figures hold for
  this machine and moment. Below 1 ours takes less.

{sections}
## To measure it yourself

`make bench` takes about {minutes} minutes, `make bench QUICK=1` one: too short for a verdict, it shows
that all of it works. `make bench ARGS='--only append tail'` measures parts of it and prints them,
without writing this page.
"""


def page(sections: list[Section], *, quick: bool, load: float, seconds: float) -> str:
    hint = "quick: too few samples for a verdict" if quick else "in full"
    return PAGE.format(hint=hint, date=time.strftime("%Y-%m-%d"), machine=machine(load), ours=version("trainvitals"),
                       python=f"{platform.python_implementation()} {platform.python_version()}",
                       peers=", ".join(f"{name} {_version(name)}" for name in PEERS),
                       minutes=max(1, round(seconds / 60)),
                       sections="\n".join(map(markdown, sections)))  # fmt: skip


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"


def markdown(section: Section) -> str:
    lines = [f"## {section.title}", "", _line(HEAD), _line(["---"] * len(HEAD))]
    lines += [_line(row.cells()) for row in section.rows]
    lines += [line for note in section.notes for line in ("", note)]
    return "\n".join([*lines, ""])


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def machine(load: float) -> str:
    """In words only: `2 virtual x86-64 cores, 24 GiB, with other work on them (load 1.5 at the start)`."""
    memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    kind = f"{'virtual ' if _is_virtual() else ''}{platform.machine().replace('_', '-')}"
    shared = f"shared with other work (load {load:.1f} at the start)" if load > 0.3 else "with nothing else to do"
    return f"{os.cpu_count()} {kind} cores, {memory} GiB, {platform.system()}, {shared}"


def _is_virtual() -> bool:
    cpu = Path("/proc/cpuinfo")
    return cpu.exists() and " hypervisor" in cpu.read_text(encoding="utf-8", errors="replace")
