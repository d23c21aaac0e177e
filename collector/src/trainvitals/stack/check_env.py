"""Whether compose/.env can be used: `python -m trainvitals.stack check-env compose/.env`.

    compose/.env: PROMETHEUS_PORT: '90900' cannot be used: give a whole number from 1 to 65535
    compose/.env: GRAFANA_PROT is no knob: the nearest one is GRAFANA_PORT

All that is wrong is told at once, and no secret is shown.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from trainvitals.alerting import channels
from trainvitals.alerting.channels import HIDDEN
from trainvitals.config import read_env_lines
from trainvitals.errors import SettingError, TrainVitalsError, nearest
from trainvitals.stack.knobs import KNOBS, PORTS, WEB, WEB_FILES, text_of
from trainvitals.web.config import Asks, asks

# Docker's own, which stand in the same file.
_OF_DOCKER = re.compile(r"(COMPOSE|DOCKER|BUILDKIT)_\w+")
# What Compose takes for more than itself: a $; a \ between double quotes, but before \, $ and "; a \ that ends single
# ones; and a # that begins a comment for us alone.
_OTHERWISE = re.compile(
    r"""\s*(?:export\s+)?(\w+)\s*=\s*
    (?:"(?:[^"\\$]|\\[\\$"])*(\$|\\(?![\\$"]))
    |'[^']*(\\)'
    |(\#)
    |(?!['"])(?:(?!\s\#).)*?(?:(\$)|\s(?<!\ )(\#)))""",
    re.VERBOSE,
)
# The agent's alone.
_NOT_HERE = {"TRAINVITALS_RAY_ADDRESS": "no container can join a Ray cluster: on the cluster's head node run "
                                        "`trainvitals serve --ray-address`, and leave this empty"}  # fmt: skip
# What Alertmanager calls, from its container.
_CALLED = ("SMTP_HOST", "SLACK_WEBHOOK_URL", "DISCORD_WEBHOOK_URL", "WEBHOOK_URL", "DEADMAN_URL", "COLLECTOR_URL")
Lines = Mapping[str, str]


def problems(path: Path, environ: Lines | None = None) -> list[str]:
    """A line for each thing that is wrong; none where all can be used. Compose takes the environment's word first."""
    told = {name: value for name, value in (environ or {}).items() if name in KNOBS}
    if found := [f"the environment: {problem}" for problem in _unusable(told)]:
        return found
    try:
        lines = read_env_lines(path)
        text = path.read_text(encoding="utf-8-sig", errors="replace")
    except (OSError, TrainVitalsError) as error:
        return [str(error)]
    found = [*_unknown(lines), *read_otherwise(text), *_unusable(lines), *_project(lines)]
    # What is between knobs is told once each of them can be used.
    lines = {**lines, **told}
    return [f"{path}: {problem}" for problem in found or (*_missing(path.parent, lines), *_between(path.parent, lines))]


def _unknown(lines: Lines) -> Iterator[str]:
    for name in lines:
        if name in _NOT_HERE:
            yield from [str(SettingError(name, lines[name], _NOT_HERE[name]))] if lines[name].strip() else []
        elif name not in KNOBS and not _OF_DOCKER.fullmatch(name):
            yield f"{name} is no knob: the nearest one is {nearest(name, KNOBS)}"


def read_otherwise(text: str) -> Iterator[str]:
    """A line for each value that Compose and we would not read alike."""
    for line in text.splitlines():
        if match := _OTHERWISE.match(line):
            sign = next(part for part in match.groups()[1:] if part)
            fix = 'double quotes, with a \\ before each \\, $ and "' if match[3] else "single quotes"
            yield f"{match[1]}: its value holds a {sign} that Compose reads otherwise: put it between {fix}"


def open_to_others(path: Path) -> str:
    """What to do where anybody on this machine may read what is secret; nothing where all is well."""
    lines = read_env_lines(path)
    secrets = [name for name, knob in KNOBS.items() if knob.is_secret and lines.get(name, "") not in ("", knob.default)]
    if not secrets or not path.stat().st_mode & 0o004:
        return ""
    return f"{path}: anybody on this machine may read {', '.join(secrets)}: chmod 600 {path}"


def _unusable(lines: Lines) -> Iterator[str]:
    for name, knob in KNOBS.items():
        if value := lines.get(name, "").strip():
            yield from _told(lambda knob=knob, value=value: knob.read(value))  # type: ignore[misc]


def _project(lines: Lines) -> Iterator[str]:
    name = lines.get("COMPOSE_PROJECT_NAME", "").strip()
    if name and not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
        yield str(
            SettingError("COMPOSE_PROJECT_NAME", name, "give small letters, digits, - and _ alone, as trainvitals2")
        )


def _missing(folder: Path, lines: Lines) -> Iterator[str]:
    """Files that are named and are not in compose/; where .env is given without that folder nobody can tell."""
    if not (folder / "compose.yaml").is_file():
        return
    composition = lines.get("COMPOSE_FILE", "").strip()
    for file in composition.split(":"):
        # What lies elsewhere is not seen from the container that this runs in.
        if not (file.startswith("/") or ".." in file.split("/") or (folder / file).exists()):
            yield str(SettingError("COMPOSE_FILE", composition, f"there is no compose/{file}"))
    for name in WEB_FILES:
        web = lines.get(name, "").strip()
        if web and not (folder / "web" / web.removeprefix(WEB)).is_file():
            fix = f"there is no compose/web/{web.removeprefix(WEB)}: compose/web/README.md says what it holds"
            yield str(SettingError(name, web, fix))


def _told(use: Callable[[], object]) -> Iterator[str]:
    try:
        use()
    except TrainVitalsError as error:
        yield str(error)


def _between(folder: Path, lines: Lines) -> Iterator[str]:
    values = {name: lines.get(name, "").strip() or text_of(knob) for name, knob in KNOBS.items()}
    yield from _told(lambda: channels.read(lines))
    yield from _told(lambda: _web_config_goes_with_the_others(folder, values))
    for rule in (_one_dcgm, _told_alertmanager_is_there, _public_has_a_name,
                 _grafana_is_called_by_its_name, _cookies_arrive, _ports_differ):  # fmt: skip
        yield from _told(lambda rule=rule: rule(values))  # type: ignore[misc]
    yield from _within_alertmanager(values)


def _within_alertmanager(values: Lines) -> Iterator[str]:
    """Its container's own loopback, where nothing listens but itself."""
    for name in _CALLED:
        value = values[name]
        if _is_loopback(_host(value) if name.endswith("_URL") else value.strip("[]")):
            fix = "that is Alertmanager's own container: this machine is host.docker.internal"
            if name == "COLLECTOR_URL":
                fix = "that is Alertmanager's own container: the collector is collector:8080"
            yield str(SettingError(name, HIDDEN if KNOBS[name].is_secret else value, fix))


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return re.fullmatch(r"(.+\.)?localhost(\.localdomain)?\.?", host.lower()) is not None
    return address.is_loopback or address.is_unspecified


def _web_config_goes_with_the_others(folder: Path, values: Lines) -> None:
    asked = _asked(folder, values["TRAINVITALS_WEB_CONFIG"])
    _page_is_locked(values, asked)
    if asked and "server" in KNOBS["COMPOSE_PROFILES"].read(values["COMPOSE_PROFILES"]):
        _collector_is_called_as_it_answers(values["COLLECTOR_URL"], asked)


def _asked(folder: Path, name: str) -> Asks | None:
    """None where there is no such file, or where compose/ is not seen."""
    path = folder / "web" / name.removeprefix(WEB)
    return asks(path) if name and (folder / "compose.yaml").is_file() and path.is_file() else None


def _page_is_locked(values: Lines, asked: Asks | None) -> None:
    """Who reaches the collector's page may silence what it tells. TLS alone keeps nobody out."""
    bind = values["TRAINVITALS_BIND"]
    is_locked = asked.is_locked if asked else values["TRAINVITALS_WEB_CONFIG"]
    if not (is_locked or values["TRAINVITALS_TOKEN_FILE"] or ipaddress.ip_address(bind.strip("[]")).is_loopback):
        fix = (f"others would see the collector's page: name a TRAINVITALS_TOKEN_FILE, as {WEB}token, or a "
               "TRAINVITALS_WEB_CONFIG with basic_auth_users; compose/web/README.md says what they hold")  # fmt: skip
        raise SettingError("TRAINVITALS_BIND", bind, fix)


def _collector_is_called_as_it_answers(url: str, asked: Asks) -> None:
    """By Alertmanager, which follows no redirect and shows no certificate of its own."""
    if asked.wants_certificate:
        fix = "Alertmanager here has no certificate to show: let it ask for a password instead, by basic_auth_users"
        raise SettingError("TRAINVITALS_WEB_CONFIG", "client_auth_type: RequireAndVerifyClientCert", fix)
    scheme, where = ("https", "a name that is in its certificate") if asked.has_tls else ("http", "collector:8080")
    parts = urlsplit(url)
    if parts.scheme != scheme or (asked.has_users and not (parts.username and parts.password)):
        who = "USER:PASSWORD@, one of its users, and " if asked.has_users else ""
        fix = f"TRAINVITALS_WEB_CONFIG has the collector answer otherwise: give {scheme}://, {who}{where}"
        raise SettingError("COLLECTOR_URL", HIDDEN, fix)


def _one_dcgm(values: Lines) -> None:
    chosen = values["COMPOSE_PROFILES"]
    if {"dcgm", "dcgm-profiling"} <= {part.strip() for part in chosen.split(",")}:
        raise SettingError("COMPOSE_PROFILES", chosen, "choose dcgm or dcgm-profiling, which has all of dcgm's")


def _told_alertmanager_is_there(values: Lines) -> None:
    """By the collector, in its container."""
    told = values["TRAINVITALS_NOTIFY"]
    hosts = [_host(url) for url in KNOBS["TRAINVITALS_NOTIFY"].read(told)] if told else []
    if any(map(_is_loopback, hosts)):
        raise SettingError("TRAINVITALS_NOTIFY", told, "that is the collector's own container: say alertmanager:9093")
    if "alertmanager" in hosts and "server" not in KNOBS["COMPOSE_PROFILES"].read(values["COMPOSE_PROFILES"]):
        fix = "the profile server does not run here: leave it empty, or name an Alertmanager that this machine can call"
        raise SettingError("TRAINVITALS_NOTIFY", told, fix)


def _public_has_a_name(values: Lines) -> None:
    if "public" in values["COMPOSE_PROFILES"].split(",") and not values["PUBLIC_NAME"]:
        raise SettingError("PUBLIC_NAME", "", "the profile public needs the name that the DNS has for this machine")


def _grafana_is_called_by_its_name(values: Lines) -> None:
    url, name = values["GRAFANA_URL"], values["GRAFANA_DOMAIN"]
    if not url and name != "localhost":
        raise SettingError("GRAFANA_URL", "", f"give it too, such as https://{name}: browsers are sent there")
    if url and _host(url) != name.lower():
        raise SettingError("GRAFANA_DOMAIN", name, f"give the name that is in GRAFANA_URL, {_host(url)}")


def _cookies_arrive(values: Lines) -> None:
    """A browser sends a secure cookie over plain HTTP to its own machine alone: nobody could log in."""
    is_plain = values["GRAFANA_URL"].startswith("http:") and values["GRAFANA_DOMAIN"] != "localhost"
    if is_plain and KNOBS["GRAFANA_COOKIE_SECURE"].read(values["GRAFANA_COOKIE_SECURE"]):
        fix = "GRAFANA_URL is plain http: give it https, or say false here"
        raise SettingError("GRAFANA_COOKIE_SECURE", values["GRAFANA_COOKIE_SECURE"], fix)


def _ports_differ(values: Lines) -> None:
    is_public = "public" in KNOBS["COMPOSE_PROFILES"].read(values["COMPOSE_PROFILES"])
    taken = dict.fromkeys(("80", "443"), "the profile public") if is_public else {}
    for name in PORTS:
        if values[name] in taken:
            raise SettingError(name, values[name], f"{taken[values[name]]} has that port: choose another")
        taken[values[name]] = name
