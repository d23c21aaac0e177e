"""Every setting of the agent, once: flag over environment over file over default.

The file holds `TRAINVITALS_INTERVAL=1` lines, as the stack's .env does; `--env-file` names it.
"""

import argparse
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainvitals.errors import SettingError, TrainVitalsError, nearest

PREFIX = "TRAINVITALS_"
SCENARIOS = ("healthy", "hot", "throttled", "ecc", "xid79", "lost", "idle", "hang", "starved")
# A comma within a path or an address does not end it.
_NEXT_SINK = re.compile(r",(?=\s*(?:\w+=|,|$))")
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"([0-9.]+)([kmgt]?)(?:i?b)?")
# As Docker Compose reads it: a value in quotes, or up to a blank and "#".
_ENV_LINE = re.compile(
    r"""(?:export\s+)?(\w+)\s*=\s*(?:(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|(?!["'#])(.*?))(?:\s+#.*)?|#.*)"""
)
# Between double quotes, as Compose has it.
_ESCAPED = re.compile(r'\\([\\$"])')


def number(low: float, high: float) -> Callable[[str], float]:
    def check(value: str) -> float:
        found = float(value)
        if not low <= found <= high:
            raise ValueError
        return found

    check.__doc__ = f"give a number from {low:g} to {high:g}"
    return check


def whole(low: int, high: int) -> Callable[[str], int]:
    def check(value: str) -> int:
        found = int(value)
        if not low <= found <= high:
            raise ValueError
        return found

    check.__doc__ = f"give a whole number from {low} to {high}"
    return check


def one_of(*names: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value not in names:
            raise ValueError
        return value

    check.__doc__ = f"choose one of {', '.join(names)}"
    return check


def size(value: str) -> int:
    """give a size of 1MiB or more, such as 512MiB or 2GiB"""
    match = _SIZE.fullmatch(value.strip().lower())
    found = int(float(match[1]) * _UNITS[match[2]]) if match else 0
    if found < 2**20:
        raise ValueError
    return found


def truth(value: str) -> bool:
    """say true or false"""
    return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[value.lower()]


def folder(value: str) -> Path:
    """give an absolute path"""
    path = Path(value).expanduser()
    if "\0" in value or not path.is_absolute():
        raise ValueError
    return path


def folder_from_here(value: str) -> Path:
    """name a folder, from here or by an absolute path"""
    path = Path(value).expanduser().absolute()
    if not value or "\0" in value or (path.exists() and not path.is_dir()):
        raise ValueError
    return path


def readable_file(value: str) -> Path:
    """name a file that can be read"""
    path = Path(value).expanduser()
    if not path.is_file() or not os.access(path, os.R_OK):
        raise ValueError
    return path


def file_name(value: str) -> Path:
    """name a file, which may come later"""
    path = Path(value).expanduser()
    if path.resolve().is_dir():
        raise ValueError
    return path


def gpu_list(value: str) -> tuple[int, ...]:
    """give GPU numbers separated by commas, such as 0,1,2"""
    if min(numbers := tuple(int(part) for part in value.split(","))) < 0:
        raise ValueError
    return numbers


def names(value: str) -> tuple[str, ...]:
    """give names separated by commas"""
    return tuple(part.strip() for part in value.split(",") if part.strip())


def sinks(value: str) -> tuple[str, ...]:
    """give tensorboard=DIR, wandb=PROJECT or mlflow=URI"""
    found = tuple(part.strip() for part in _NEXT_SINK.split(value) if part.strip())
    if not found or not all(re.fullmatch(r"(tensorboard|wandb|mlflow)=\s*[^\s\0][^\0]*", part) for part in found):
        raise ValueError
    return found


def channels(value: str) -> str:
    """give alertmanager=URL, email, slack, webhook=URL or apprise=URL; checked where made, for some are secret"""
    return value


def plain(value: str) -> str:
    """give a text"""
    return value


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    check: Callable[[str], Any]
    default: Any
    help: str

    @property
    def flag(self) -> str:
        return "--sink" if self.name == "sinks" else "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()

    def read(self, key: str, value: str) -> Any:
        return _checked(self.check, key, value)

    def read_flag(self, value: str) -> Any:
        """Who types a folder means it from where they are."""
        return _checked(folder_from_here if self.check is folder else self.check, self.flag, value)


def _checked(check: Callable[[str], Any], key: str, value: str) -> Any:
    try:
        return check(value)
    except (ValueError, KeyError, OverflowError, RuntimeError, OSError) as error:
        raise SettingError(key, value, check.__doc__ or "") from error


SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting("dir", folder, None, "journal folder (default: /var/lib/trainvitals, else ~/.local/state/trainvitals)"),
        Setting("interval", number(0.1, 3600), 1.0, "seconds between readings (default: 1)"),
        Setting("host", plain, "127.0.0.1", "address to listen on (default: 127.0.0.1)"),
        Setting("port", whole(0, 65535), 8080, "port of the page and /metrics (default: 8080; 0: any free one)"),
        Setting("allowed_hosts", names, (), "more names by which the page may be called, separated by commas"),
        Setting("web_config", readable_file, None, "TLS and basic auth, a file as Prometheus's exporters take it"),
        Setting("token", plain, "", "what opens the page, or none (default: one is made where others reach it)"),
        Setting("simulate", whole(0, 64), 0, "show this many simulated GPUs in place of real ones"),
        Setting("scenario", one_of(*SCENARIOS), "healthy", f"what the simulated GPUs do: {', '.join(SCENARIOS)}"),
        Setting("seed", whole(0, 2**31), 0, "seed of the simulation (default: 0)"),
        Setting("expected_gpus", whole(0, 1024), None, "GPUs that this node should have (default: the most seen)"),
        Setting("node_price", number(0, 1e6), None, "dollars that an hour of this node costs"),
        Setting("host_proc", folder, Path("/proc"), "where the host's /proc is, in a container (default: /proc)"),
        Setting("per_core", truth, False, "usage of each processor too"),
        Setting("ray_address", plain, "", "watch this Ray cluster too: auto, or its head's HOST:PORT"),
        Setting("runs_cap", size, 2 * 2**30, "disk space for runs (default: 2GiB); finished ones go first"),
        Setting("node_cap", size, 512 * 2**20, "disk space for the node's own lines (default: 512MiB)"),
        Setting("rules", file_name, None, "rules and thresholds of your own, an alerts.yml"),
        Setting("gpu", gpu_list, None, "the GPU to monitor"),
        Setting("gpus", gpu_list, None, "the GPUs to monitor, separated by commas (default: all)"),
        Setting("prometheus_port", whole(1, 65535), None, "serve /metrics on this port too"),
        Setting("summary_interval", number(0, 86400), 60.0, "seconds between summaries (default: 60; 0: none)"),
        Setting("log_dir", folder, None, "folder for the JSONL log (default: the journal)"),
        Setting("sinks", sinks, (), "hand runs on: tensorboard=DIR, wandb=PROJECT, mlflow=URI; may be given again"),
        Setting("sink_runs", names, (), "hand on these runs alone, by their ids, separated by commas (default: all)"),
        Setting("to", sinks, None, "where to: tensorboard=DIR, wandb=PROJECT, mlflow=URI; may be given again"),
        Setting("wandb_project", plain, "", "hand the GPUs' series on to this W&B project"),
        Setting("wandb_run_name", plain, "", "the name that they get there (default: this host's)"),
        Setting(
            "remote", plain, "", "the dashboard reads that agent, such as http://gpu1:8080 (default: the one here)"
        ),
        Setting("ascii", truth, None, "the dashboard draws with ASCII alone (default: where the locale has no UTF-8)"),
        Setting("save_dir", folder, None, "folder for what the dashboard saves (default: the working directory)"),
        Setting("notify", channels, "", "tell people: alertmanager=URL, email, slack, webhook=URL, apprise=URL …"),
        Setting("heartbeat_url", plain, "", "call this address each minute while all is well: a dead man's switch"),
        Setting("log_format", one_of("text", "json"), "text", "text or json (default: text)"),
    )
}
FLAGS_ONLY = frozenset({"gpu", "gpus", "to"})
# What other parts read: the trainer's side, the journal and the stack.
_KNOWN = {setting.variable for setting in SETTINGS.values()} | {
    PREFIX + name
    for name in ("DIR", "ENV_FILE", "RUN_ID", "HOSTNAME", "NOTIFY_FILE", "HEARTBEAT_URL_FILE", "TOKEN_FILE", "BIND",
                 "USER", "URL")
}  # fmt: skip


def add_flags(parser: argparse.ArgumentParser, *wanted: str) -> None:
    """Flags are taken as text and checked with the rest, so that every error reads the same."""
    for name in wanted:
        setting = SETTINGS[name]
        if setting.check is truth:
            parser.add_argument(setting.flag, dest=name, action="store_const", const="true", help=setting.help)
        elif setting.check in _JOINED:
            parser.add_argument(setting.flag, dest=name, action=_Joined, metavar=_JOINED[setting.check],
                                help=setting.help)  # fmt: skip
        else:
            parser.add_argument(setting.flag, dest=name, help=setting.help,
                                metavar=_KINDS.get(setting.check, name.upper()))  # fmt: skip


_KINDS: dict[Callable[[str], Any], str] = {folder: "DIR", readable_file: "FILE", file_name: "FILE"}
_JOINED: dict[Callable[[str], Any], str] = {sinks: "SINK", channels: "CHANNEL"}


class _Joined(argparse.Action):
    """A flag that may be given again, as one text with commas."""

    def __call__(self, parser: Any, namespace: Any, value: Any, option: str | None = None) -> None:
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, value if before is None else f"{before},{value}")


def load(flags: Mapping[str, str | None], environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Every setting's value; SettingError names the flag, variable or line that cannot be used."""
    file, lines = _env_file(flags, environ)
    _refuse_unknown("", environ)
    _refuse_unknown(f"{file}: ", lines)
    return {name: _value(setting, flags, environ, file, lines) for name, setting in SETTINGS.items()}


def _refuse_unknown(where: str, names: Mapping[str, str]) -> None:
    """A name that is written wrong would else go unnoticed, and its value unused."""
    for name in names:
        if name.startswith(PREFIX) and name not in _KNOWN:
            raise TrainVitalsError(f"{where}{name} is no setting: the nearest one is {nearest(name, _KNOWN)}")


def environment(flags: Mapping[str, str | None], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Of names that are not ours too, as SMTP_HOST: the file's lines, and over them what the environment sets."""
    return {**_env_file(flags, environ)[1], **{name: value for name, value in environ.items() if value}}


def _env_file(flags: Mapping[str, str | None], environ: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    setting = Setting("env_file", readable_file, None, "")
    flag = flags.get("env_file")
    named = environ.get(setting.variable, "") if flag is None else flag
    if flag is None and not named:
        return "", {}
    path = setting.read(setting.variable if flag is None else setting.flag, named)
    return str(path), read_env_lines(path)


def read_env_lines(path: Path) -> dict[str, str]:
    """Its KEY=VALUE lines; what a line holds may be secret and is told to nobody."""
    pairs = {}
    for number, line in enumerate(path.read_text(encoding="utf-8-sig", errors="replace").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _ENV_LINE.fullmatch(text)
        if not match:
            raise SettingError(f"{path}: line {number}", "(not shown)", "write KEY=value, with quotes in pairs or none")
        _, escaped, literal, plain = match.groups()
        pairs[match[1]] = _ESCAPED.sub(r"\1", escaped) if escaped else literal or plain or ""
    return pairs


def _value(setting: Setting, flags: Mapping[str, str | None], environ: Mapping[str, str],
           file: str, lines: Mapping[str, str]) -> Any:  # fmt: skip
    given = flags.get(setting.name)
    if given is not None:
        return setting.read_flag(given)
    if setting.name not in FLAGS_ONLY:
        for prefix, where in (("", environ), (f"{file}: ", lines)):
            if where.get(setting.variable):
                return setting.read(prefix + setting.variable, where[setting.variable])
    return setting.default
