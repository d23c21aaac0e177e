"""What people read in the terminal: a line a tick, summaries, the words at the start, and JSON logs."""

import gc
import logging
import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

import trainvitals
from trainvitals.agent.sampler import SourceState
from trainvitals.journal.layout import gpu_folder
from trainvitals.journal.record import timestamp_at
from trainvitals.model import Reading, Snapshot

if TYPE_CHECKING:
    from trainvitals.agent.service import Agent

GREET_SECONDS = 3.0
_SUMMARY = (("utilization_percent", "utilisation", "%"), ("memory_percent", "memory", "%"),
            ("temperature_celsius", "temperature", " °C"), ("power_draw_watts", "power", " W"))  # fmt: skip


class JsonLines(logging.Formatter):
    """`{"timestamp":…,"level":"warning","message":…,"correlation_id":"gemma-qlora"}`: the id is the run's
    where there is one, else this process's own."""

    def __init__(self, process_id: str) -> None:
        super().__init__()
        self._process_id = process_id

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "timestamp": timestamp_at(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "correlation_id": getattr(record, "run", None) or self._process_id,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _json(line)


def _json(line: dict[str, Any]) -> str:
    """A name that is no UTF-8 must not cost the line it is told in."""
    plain = {key: value.encode("utf-8", "replace").decode() for key, value in line.items()}
    return orjson.dumps(plain).decode()


def json_line(text: str, when: float, process_id: str, logger: str) -> str:
    """What is told on standard output, in the shape of a log line."""
    return _json({"timestamp": timestamp_at(when), "level": "info", "logger": f"trainvitals.{logger}",
                  "message": text, "correlation_id": process_id})  # fmt: skip


def say(text: str) -> bool:
    """Prints a line at once; False when standard output takes none, and from then on it goes nowhere."""
    try:
        # One write, so that what two threads say does not run together.
        print(f"{text}\n", end="", flush=True)
    except OSError:
        leave_stdout()
        return False
    return True


def teller(form: str, process_id: str) -> Callable[[str], None]:
    """Prints words as they are, or as a JSON log line for each line that is not blank."""

    def tell(text: str) -> None:
        lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
        say("\n".join(json_line(line, time.time(), process_id, "serve") for line in lines) if form == "json" else text)

    return tell


def on_end(handler: Callable[..., Any]) -> None:
    """Ctrl-C, an end that was asked for, and a terminal that is closed, unless started with nohup."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def typed() -> str:
    """This program as it can be typed: its name, or where the script lies that runs."""
    script = Path(sys.argv[0])
    if script.parts[-2:] in (("trainvitals", "cli.py"), ("trainvitals", "__main__.py")):
        return f"{_from_here(Path(sys.executable))} -m trainvitals"
    if script.name != "trainvitals" or shutil.which("trainvitals"):
        return "trainvitals"
    return _from_here(script)


def _from_here(path: Path) -> str:
    near = os.path.relpath(path.absolute())
    near = near if os.sep in near else os.path.join(os.curdir, near)
    return shlex.quote(min(near, str(path.absolute()), key=len))


def leave_stdout() -> None:
    """What is still buffered would be an error again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def set_up_logging(form: str, process_id: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")
    handler.setFormatter(JsonLines(process_id) if form == "json" else plain)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def tick_line(snapshot: Snapshot) -> str:
    """`GPU0: 85.2%/76.3% | GPU1: …`, utilisation and memory; a GPU's unknown value is a dash."""
    gpus = [
        f"GPU{gpu.label('gpu')}: {_share(gpu.number('utilization_percent'))}/{_share(memory_percent(gpu))}"
        for gpu in in_order(snapshot)
    ]
    return " | ".join(gpus) or "no GPU answers"


def in_order(snapshot: Snapshot) -> list[Reading]:
    return sorted(snapshot.of("gpu"), key=lambda gpu: int(gpu.label("gpu")))


def memory_percent(gpu: Reading) -> float | None:
    used, total = gpu.number("memory_used_mb"), gpu.number("memory_total_mb")
    return None if used is None or not total else 100 * used / total


class Summary:
    """Mean and peak of each GPU since the last summary."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, str], list[float]] = {}

    def add(self, snapshot: Snapshot) -> None:
        for gpu in snapshot.of("gpu"):
            for name, _, _ in _SUMMARY:
                value = memory_percent(gpu) if name == "memory_percent" else gpu.number(name)
                if value is not None:
                    self._seen.setdefault((int(gpu.label("gpu")), name), []).append(value)

    def lines(self) -> list[str]:
        """Empties the summary."""
        seen, self._seen = dict(self._seen), {}
        return [f"GPU{gpu} {_parts(gpu, seen)}" for gpu in sorted({gpu for gpu, _ in seen})]


def _parts(gpu: int, seen: dict[tuple[int, str], list[float]]) -> str:
    parts = []
    for name, word, unit in _SUMMARY:
        values = seen.get((gpu, name))
        if values:
            parts.append(f"{word} {sum(values) / len(values):.1f}{unit} (peak {max(values):.1f})")
    return ", ".join(parts)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}%"


# Nobody tells the agent whether somebody scrapes it, as in the stack: this is true of both.
NOT_HERE = ("Long-term metrics and alerts come from a Prometheus that scrapes the address above, never from the agent\n"
            "by itself. `{} doctor` says what else could be found, and why not.")  # fmt: skip


def welcome(*, node: str, address: str, journal: str, snapshot: Snapshot, sources: dict[str, SourceState],
            demo: bool = False, is_open: bool = False, link: str = "") -> str:  # fmt: skip
    """In plain words what runs, what was found, and what was not."""
    rows = [("page", f"{address}/"), ("link", link), ("metrics", f"{address}/metrics, for Prometheus")]
    rows = [row for row in rows if row[1]] + [("journal", journal)]
    rows += [("GPUs", text) for text in gpu_words(snapshot, sources)]
    rows += [("host", host_words(snapshot))]
    if is_open:
        rows += [("note", "everyone who reaches this address can read it, and silence what it tells: give a --token")]
    what = "shows a simulated node and run" if demo else f"watches this machine ({node})"
    told = "\n".join(f"  {name:<9}{text}" for name, text in rows)
    return f"TrainVitals {trainvitals.__version__} {what}.\n\n{told}\n\n{NOT_HERE.format(typed())}\nCtrl-C ends it."


def greet(agent: "Agent", tell: Callable[[str], None], words: dict[str, Any]) -> None:
    """Once all that was found has told its name, or after three seconds."""
    deadline = time.monotonic() + GREET_SECONDS
    while not (agent.is_over or _is_introduced(agent)) and time.monotonic() < deadline:
        time.sleep(0.05)
    if agent.is_over:
        return
    # What is there now stays: it need not be looked through again while a scraper waits.
    gc.freeze()
    tell(welcome(node=agent.host, journal=_journal_words(agent), snapshot=agent.snapshot, sources=agent.sources,
                 **words))  # fmt: skip


def _is_introduced(agent: "Agent") -> bool:
    gpus = sum(state.devices for name, state in agent.sources.items() if name != "host")
    return bool(agent.snapshot.readings) and len(list(agent.snapshot.of("gpu_info"))) >= gpus


def _journal_words(agent: "Agent") -> str:
    if os.access(gpu_folder(agent.root, agent.host), os.W_OK):
        return str(agent.root)
    return f"{agent.root} cannot be written: readings are shown but not kept"


def gpu_words(snapshot: Snapshot, sources: dict[str, SourceState]) -> list[str]:
    return _kinds(snapshot) + problem_words(sources) or ["none answered yet"]


def _kinds(snapshot: Snapshot) -> list[str]:
    names = {info.label("uuid"): info for info in snapshot.of("gpu_info")}
    kinds: dict[str, int] = {}
    for gpu in in_order(snapshot):
        info = names.get(gpu.label("uuid"))
        kind = f"{info.label('name')}, driver {info.label('driver_version')}" if info else "GPU"
        kinds[kind] = kinds.get(kind, 0) + 1
    return [f"{count} x {kind}" for kind, count in kinds.items()]


def problem_words(sources: dict[str, SourceState]) -> list[str]:
    return [_problem_words(name, state) for name, state in sources.items() if state.problem]


def _problem_words(name: str, state: SourceState) -> str:
    if state.up is not None:
        return state.problem
    return f"{state.problem.removeprefix(f'{name}: ')}; `{typed()} demo` shows simulated ones"


def gpu_lines(snapshot: Snapshot) -> list[str]:
    """`GPU0  NVIDIA H100: 96% busy, 78% memory, 61 °C, 612 W`; an unknown value is a dash."""
    names = {info.label("uuid"): info.label("name") for info in snapshot.of("gpu_info")}
    return [_gpu_line(gpu, names.get(gpu.label("uuid")) or "-") for gpu in in_order(snapshot)]


def _gpu_line(gpu: Reading, name: str) -> str:
    busy, memory = _whole(gpu.number("utilization_percent"), "%"), _whole(memory_percent(gpu), "%")
    heat, power = _whole(gpu.number("temperature_celsius"), " °C"), _whole(gpu.number("power_draw_watts"), " W")
    return f"GPU{gpu.label('gpu')}  {name}: {busy} busy, {memory} memory, {heat}, {power}"


def host_line(snapshot: Snapshot) -> str:
    """`host  64 processors: 3% busy, 41% of 503.5 GiB memory`."""
    values = _host_values(snapshot)
    used, total = values.get("memory_used_bytes"), values.get("memory_total_bytes")
    share = None if used is None or not total else 100 * used / total
    size = "-" if total is None else f"{total / 2**30:.1f}"
    busy = _whole(values.get("cpu_usage_percent"), "%")
    return f"host  {values['cpu_count']:.0f} processors: {busy} busy, {_whole(share, '%')} of {size} GiB memory"


def _whole(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.0f}{unit}"


def _host_values(snapshot: Snapshot) -> dict[str, float]:
    # The first tick does not bring it yet.
    values = {"cpu_count": float(os.cpu_count() or 1)}
    for reading in snapshot.of("host"):
        values |= {name: value for name, value in reading.values.items() if isinstance(value, (int, float))}
    return values


def host_words(snapshot: Snapshot) -> str:
    values = _host_values(snapshot)
    processors = f"{values['cpu_count']:.0f} processors"
    total = values.get("memory_total_bytes")
    return processors if total is None else f"{processors}, {total / 2**30:.1f} GiB memory"


def table(rows: Iterable[tuple[str, str, str]]) -> str:
    """`ok   journal   writable` rows of a check list."""
    return "\n".join(f"{mark:<8} {name:<12} {text}" for mark, name, text in rows)
