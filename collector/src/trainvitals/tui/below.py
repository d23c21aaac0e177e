"""Findings and the processes of the chosen GPU, beside each other.

─ 1 finding ──────────────────────────── ─ Processes on GPU 6 ──────────
!! GPU 6 has slowed itself down  GpuHa…  4711 ada python train.py 62.1 GiB
"""

from collections.abc import Sequence

from trainvitals.tui import levels, lines, text
from trainvitals.tui.figures import UNKNOWN, gib, known, span
from trainvitals.tui.lines import Line
from trainvitals.tui.picture import Finding, Gpu, Process

_SHARE = 0.6


def rows(findings: Sequence[Finding], gpu: Gpu | None, now: float | None, cells: int, height: int) -> list[Line]:
    """`now` by the clock of who tells; None where nobody does."""
    left = round(cells * _SHARE)
    return lines.beside(_findings(findings, now, left - 1, height), _processes(gpu, cells - left, height), left, cells)


def _findings(findings: Sequence[Finding], now: float | None, cells: int, height: int) -> list[Line]:
    if now is None or not findings:
        words = UNKNOWN if now is None else "nothing wrong is known"
        return [lines.rule(lines.line(("Findings", "title")), cells), lines.line((words, "dim"))]
    count = f"{len(findings)} finding{'s' * (len(findings) != 1)}"
    head = lines.rule(lines.line((count + _more(len(findings), height), "title")), cells)
    told = [[line for one in findings for line in _finding(one, now, cells, most)] for most in (3, 2, 1)]
    return [head, *next((found for found in told if len(found) < height), told[-1][: max(0, height - 1)])]


def _more(count: int, height: int) -> str:
    return f", {height - 1} shown" if count > height - 1 > 0 else ""


def _finding(finding: Finding, now: float, cells: int, most: int) -> list[Line]:
    """In so many lines at most."""
    level = levels.SEVERITIES.get(finding.severity, levels.WARN)
    if finding.quiet:
        level = level._replace(style="dim")
    age = "" if finding.starts is None else f"since {span(now - finding.starts)}"
    about = ", ".join(filter(None, (finding.quiet, finding.name, finding.where, age)))
    what = finding.what or finding.name
    if most == 1:
        return [lines.line((f"{level.sign} ", level.style), what, (f"  {about}", "dim"))]
    body = [(words, "") for words in text.wrap(what, cells - 3, most - 1)] + [(about, "dim")]
    signs = [(f"{level.sign} ", level.style), *[("   ", "")] * (len(body) - 1)]
    return [lines.line(sign, words) for sign, words in zip(signs, body, strict=True)]


def _processes(gpu: Gpu | None, cells: int, height: int) -> list[Line]:
    where = f" on GPU {gpu.number}" if gpu else ""
    more = _more(len(gpu.processes), height) if gpu else ""
    head = lines.rule(lines.line((f"Processes{where}{more}", "title")), cells)
    if gpu is None or gpu.is_missing:
        return [head]
    if not gpu.processes:
        told = gpu.values.get("compute_processes")
        words = "none" if told == 0 else UNKNOWN if told is None else f"{told:.0f}, not told which"
        return [head, lines.line((words, "dim"))]
    held = sorted(gpu.processes, key=lambda process: -(process.memory_mb or 0.0))
    return [head, *(_process(one, cells) for one in held[: max(0, height - 1)])]


def _process(process: Process, cells: int) -> Line:
    memory = text.right(known(process.memory_mb, lambda value: f"{gib(value)} GiB"), 10)
    return lines.between(lines.line((f"{process.pid} ", ""), (f"{process.user} ", "dim"), process.command),
                         lines.line((memory, "")), cells)  # fmt: skip
