"""Alertmanager's whole folder from the environment: `trainvitals alertmanager-config --out /etc/alertmanager`.

alertmanager.yml · templates/trainvitals.tmpl · secrets/slack, for this user alone, and one each for what else is secret

The old configuration stays until the new one is whole and, where there is an amtool, was found right by it.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainvitals.alerting import routes
from trainvitals.alerting.channels import Values, configured, read
from trainvitals.alerting.receivers import TRIAL, receivers, secrets
from trainvitals.errors import SettingError, TrainVitalsError

TEMPLATE = Path(__file__).with_name("trainvitals.tmpl")
LINKS = ("GRAFANA_URL", "PROMETHEUS_URL", "TRAINVITALS_URL")
HEAD = "# Made by `trainvitals alertmanager-config`; what is changed here is lost when that runs again.\n"


def write(out: Path, environ: Mapping[str, str]) -> list[str]:
    """Returns the ways to people that it found."""
    values = read(environ)
    try:
        _write(out.absolute(), values)
    except OSError as error:
        raise SettingError("--out", out, f"name a folder that can be written ({error.strerror})") from error
    return configured(values)


def configuration(values: Values, out: Path) -> dict[str, Any]:
    found = receivers(values, out / "secrets")
    trials = [each["name"] for each in found if each["name"].startswith(TRIAL)]
    quiet = values["QUIET_HOURS"]
    intervals = {"time_intervals": [routes.quiet_interval(*quiet)]} if quiet else {}
    return {
        "templates": [str(out / "templates" / "*.tmpl")],
        "route": routes.route(bool(quiet), "deadman" in configured(values), trials),
        **intervals,
        "inhibit_rules": routes.inhibitions(),
        "receivers": found,
    }


def text(values: Values, out: Path) -> str:
    import yaml

    return HEAD + str(yaml.dump(configuration(values, out), Dumper=_plain(yaml), sort_keys=False))


def template(values: Values) -> str:
    content = TEMPLATE.read_text(encoding="utf-8")
    for name in LINKS:
        content = content.replace(f"@{name}@", values[name] or "")
    return content


def _write(out: Path, values: Values) -> None:
    (out / "templates").mkdir(parents=True, exist_ok=True)
    (out / "secrets").mkdir(mode=0o700, exist_ok=True)
    there = secrets(values)
    for name, content in there.items():
        _replace(out / "secrets" / name, content, 0o400)
    _replace(out / "templates" / TEMPLATE.name, template(values), 0o444)
    draft = out / ".alertmanager.yml.new"
    _replace(draft, text(values, out), 0o444)
    _check(draft)
    draft.replace(out / "alertmanager.yml")
    _forget(out / "secrets", there)


def _plain(yaml: Any) -> Any:
    """Without the signs by which YAML has a list stand for another that is the same."""
    return type("Plain", (yaml.SafeDumper,), {"ignore_aliases": lambda self, data: True})


def _replace(path: Path, content: str, mode: int) -> None:
    """Nobody else can read it at any moment, and no reader finds half of it."""
    draft = path.with_name(f".{path.name}.draft")
    with suppress(FileNotFoundError):
        draft.unlink()
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        file.write(content)
    draft.chmod(mode)
    draft.replace(path)


def _forget(folder: Path, kept: Iterable[str]) -> None:
    """What was taken out of the environment is not to lie on."""
    for path in folder.iterdir():
        if path.name not in kept:
            path.unlink()


def _check(draft: Path) -> None:
    amtool = shutil.which("amtool")
    if not amtool:
        return
    told = subprocess.run([amtool, "check-config", str(draft)], capture_output=True, text=True, timeout=30, check=False)
    if told.returncode:
        raise TrainVitalsError(f"amtool refuses the configuration, the old one stays: {told.stdout}{told.stderr}")
