"""The commands about alerts: `alerts`, `alertmanager-config` and `alert-test`.

Each is wired in with its flags by `add`, and loads what it needs when it runs.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainvitals import config
from trainvitals.errors import SettingError

Settings = dict[str, Any]
NOWHERE = "No way to a person is set: alerts are shown on the collector's page and by `trainvitals alerts` alone."


def add(command: Callable[..., Any]) -> None:
    """`command(name, function, text, *settings)` makes the parser of one."""
    listing = command("alerts", alerts, "what fires now and what ended lately", "dir")
    listing.add_argument("--json", action="store_true", help="as JSON")
    making = command("alertmanager-config", alertmanager_config, "Alertmanager's configuration from the environment")
    making.add_argument("--out", metavar="DIR", required=True, help="folder for it, its templates and its secrets")
    trial = command("alert-test", alert_test, "one test alert by each way that is set, and what came of it")
    trial.add_argument("--alertmanager", metavar="URL", help="where it is (default: ALERTMANAGER_URL, else "
                                                             "http://127.0.0.1:9093)")  # fmt: skip
    trial.add_argument("--log", metavar="FILE", help="Alertmanager's log, which says why a message failed")
    trial.add_argument("--timeout", metavar="SECONDS", default="20", help="seconds to wait for answers (default: 20)")


def alerts(settings: Settings, flags: dict[str, Any]) -> int:
    import orjson

    from trainvitals.alerting import listing
    from trainvitals.journal.layout import find_root

    now = time.time()
    view = listing.known(settings["dir"] or find_root(), now)
    if flags["json"]:
        sys.stdout.buffer.write(orjson.dumps(view, option=orjson.OPT_APPEND_NEWLINE))
    else:
        print("\n".join(listing.lines(view, now)))
    return 0


def alertmanager_config(_: Settings, flags: dict[str, Any]) -> int:
    from trainvitals.alerting.writing import write

    file = flags.get("env_file") or os.environ.get("TRAINVITALS_ENV_FILE")
    lines = config.read_env_lines(Path(file)) if file else {}
    given = {name: value for name, value in os.environ.items() if value}
    ways = write(Path(flags["out"]), {**lines, **given})
    print(f"{flags['out']}: alerts go to the collector and by {', '.join(ways)}" if ways else NOWHERE)
    return 0


def alert_test(_: Settings, flags: dict[str, Any]) -> int:
    from trainvitals.alerting import trial
    from trainvitals.alerting.listing import table
    from trainvitals.journal.layout import host_name

    url = flags["alertmanager"] or os.environ.get("ALERTMANAGER_URL") or "http://127.0.0.1:9093"
    log = config.readable_file(flags["log"]) if flags["log"] else None
    outcomes = trial.run(trial.Alertmanager(url), host_name(), _seconds(flags["timeout"]), log)
    print("\n".join(table([*outcomes])))
    return 1 if any(outcome.state == trial.FAILED for outcome in outcomes) else 0


def _seconds(text: str) -> float:
    check = config.number(1, 300)
    try:
        return check(text)
    except ValueError as error:
        raise SettingError("--timeout", text, check.__doc__ or "") from error
