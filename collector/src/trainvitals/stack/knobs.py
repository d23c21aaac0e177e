"""Every knob of compose/.env, once: its name, what it may be, and what holds where it is not set.

KNOBS["PROMETHEUS_PORT"].read("90900")  ->  SettingError: PROMETHEUS_PORT: '90900' cannot be used: give a whole number …

compose.yaml has the same defaults, .env.example the same names with a comment each; a test holds the three together.
"""

import ipaddress
import os
import re
from collections.abc import Callable
from typing import Any

from trainvitals.alerting import channels
from trainvitals.alerting.channels import Knob, link
from trainvitals.config import SETTINGS, folder, names, one_of, truth

PROFILES = ("node", "server", "dcgm", "dcgm-profiling", "nvidia-smi", "public", "demo")
# compose/web, as the services see it.
WEB = "/etc/trainvitals/"
WEB_FILES = ("TRAINVITALS_WEB_CONFIG", "TRAINVITALS_TOKEN_FILE", "EXPORTERS_WEB_CONFIG")
# What belongs to the system: the folders themselves, and all that is in some of them.
_SYSTEM = re.compile(r"/(home|media|mnt|opt|root|run|srv|tmp|(usr|var)(/[^/]+)?"
                     r"|(bin|boot|dev|etc|lib\w*|proc|sbin|sys)(/.*)?)?")  # fmt: skip
# As Prometheus reads it: each unit once, the longest first.
_DURATION = re.compile(r"(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?", re.ASCII)
_DAY_MS = 86_400_000
_UNITS_MS = (365 * _DAY_MS, 7 * _DAY_MS, _DAY_MS, 3_600_000, 60_000, 1000, 1)
_LONGEST_MS = 100 * _UNITS_MS[0]
# One label or more of a name as the DNS has it.
_NAME = r"[A-Za-z0-9]([A-Za-z0-9-]{0,62})?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,62})?)*"


def matching(pattern: str, fix: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError
        return value

    check.__doc__ = fix
    return check


def profiles(value: str) -> tuple[str, ...]:
    """choose from node, server, dcgm, dcgm-profiling, nvidia-smi, public and demo, with commas between"""
    found = names(value)
    if not found or not set(found) <= set(PROFILES):
        raise ValueError
    return found


def address(value: str) -> str:
    """give an address of this machine, such as 127.0.0.1, 10.0.0.5 or, one of IPv6 between brackets, [::1]"""
    if value.startswith("[") and value.endswith("]"):
        ipaddress.IPv6Address(value[1:-1])
    else:
        ipaddress.IPv4Address(value)
    if "%" in value:
        raise ValueError
    return value


def port(value: str) -> int:
    """give a whole number from 1 to 65535, without a zero before it"""
    if not re.fullmatch(r"[1-9][0-9]{0,4}", value) or int(value) > 65535:
        raise ValueError
    return int(value)


def user(value: str) -> str:
    """give user and group by their numbers, such as 1000:1000; root has no rights in a container that has none"""
    if not re.fullmatch(r"0*[1-9][0-9]{0,9}:[0-9]{1,10}", value) or max(map(int, value.split(":"))) >= 2**31:
        raise ValueError
    return value


def journal_folder(value: str) -> str:
    """give the absolute path, without a colon, of a folder of its own, such as /var/lib/trainvitals"""
    path = "/" + os.path.normpath(folder(value)).lstrip("/")
    if ":" in path or _SYSTEM.fullmatch(path):
        raise ValueError
    return path


def interval(value: str) -> float:
    """give seconds from 0.1 to 120: of what is older than five minutes Prometheus knows nothing any more"""
    seconds = float(SETTINGS["interval"].check(value))
    if seconds > 120:
        raise ValueError
    return seconds


def retention(value: str) -> str:
    """give a duration such as 30d or 1y180d, the longest unit first, each once, and from 2d, as rules look back"""
    match = _DURATION.fullmatch(value)
    if not match:
        raise ValueError
    if not 2 * _DAY_MS <= sum(int(n) * ms for n, ms in zip(match.groups("0"), _UNITS_MS, strict=True)) <= _LONGEST_MS:
        raise ValueError
    return value


def alertmanagers(value: str) -> tuple[str, ...]:
    """give alertmanager=http://alertmanager:9093, several with commas between; all else is for Alertmanager to send"""
    found = [part.partition("=") for part in names(value)]
    if not found or any(name != "alertmanager" for name, _, _ in found):
        raise ValueError
    return tuple(link(url) for _, _, url in found)


def _agent(name: str, default: str = "") -> Knob:
    """What the agent takes by itself, under the same name and check."""
    setting = SETTINGS[name]
    return Knob(setting.variable, setting.check, default)


def _table() -> dict[str, Knob]:
    return {knob.name: knob for knob in (*_STACK, *channels.KNOBS.values())}


def _port(name: str, default: int) -> Knob:
    return Knob(f"{name}_PORT", port, str(default))


def text_of(knob: Knob) -> str:
    """A default as .env has it."""
    default: Any = knob.default
    return "" if default is None else str(default)


_STACK = (
    Knob("COMPOSE_PROFILES", profiles, "node,server"),
    Knob("COMPOSE_FILE", matching(r"compose\.yaml(:[\w./-]+\.ya?ml)*", "give compose.yaml:compose.gpu.yaml"),
         "compose.yaml"),
    Knob("GPU_DRIVER", one_of("nvidia", "cdi"), "nvidia"),
    Knob("GPU_DEVICES", matching(r"[\w./=:-]+", "give all, or nvidia.com/gpu=all where GPU_DRIVER is cdi"), "all"),
    Knob("TRAINVITALS_BIND", address, "127.0.0.1"),
    _port("TRAINVITALS", 8080),
    _port("PROMETHEUS", 9090),
    _port("ALERTMANAGER", 9093),
    _port("GRAFANA", 3000),
    _port("NODE_EXPORTER", 9100),
    _port("DCGM", 9400),
    _port("NVIDIA_SMI", 9835),
    _port("DEMO", 8081),
    Knob("TRAINVITALS_HOSTNAME", matching(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", "give a bare host name, such as gpu1"),
         ""),
    Knob("TRAINVITALS_DIR", journal_folder, "/var/lib/trainvitals"),
    Knob("TRAINVITALS_USER", user, "10001:10001"),
    Knob("TRAINVITALS_INTERVAL", interval, "1"),
    _agent("expected_gpus"),
    _agent("node_price"),
    _agent("per_core", "false"),
    _agent("runs_cap", "2GiB"),
    _agent("node_cap", "512MiB"),
    Knob(SETTINGS["notify"].variable, alertmanagers, ""),
    Knob("TRAINVITALS_ALLOWED_HOSTS", matching(rf"\s*({_NAME})?(\s*,\s*({_NAME})?)*\s*",
                                               "give names alone, with commas between, such as gpu1.example.org"), ""),
    *(Knob(name, matching(rf"{WEB}[\w.-]+", f"give {WEB} and the file's name"), "") for name in WEB_FILES),
    Knob("PROMETHEUS_RETENTION_TIME", retention, "30d"),
    Knob("PROMETHEUS_RETENTION_SIZE", matching(
        r"[1-9]([0-9]{9,17}B|[0-9]{6,8}KB|[0-9]{3,8}MB|[0-9]{0,8}GB|[0-9]{0,5}TB)",
        "give a size of at least 1GB, such as 20GB"), "20GB"),
    Knob("ALERTMANAGER_URL", link, ""),
    Knob("GRAFANA_DOMAIN", matching(rf"{_NAME}|[0-9A-Fa-f:.]+", "give the name by which browsers call Grafana"),
         "localhost"),
    Knob("GRAFANA_COOKIE_SECURE", truth, "true"),
    Knob("PUBLIC_NAME", matching(_NAME, "give this machine's name in the DNS, such as gpu.example.org"), ""),
    Knob("PUBLIC_BIND", address, "0.0.0.0"),
)  # fmt: skip
KNOBS = _table()
PORTS = tuple(name for name in KNOBS if name.endswith("_PORT") and name != "SMTP_PORT")
