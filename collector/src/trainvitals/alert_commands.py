"""The commands about alerts: `alerts`, `alertmanager-config`, `alert-test`, `notify` and `replay`.

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
from trainvitals.journal.record import Record

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
    judging = command("replay", replay, "what would have been told of recorded runs, and when", "rules")
    judging.add_argument("runs", metavar="RUN_DIR", nargs="+", help="a run's folder, or a journal's, for all in it")
    judging.add_argument("--json", action="store_true", help="a finding a line, as JSON")
    telling = command("notify", notify, "whether the agent's own ways to people work", "notify", "heartbeat_url")
    telling.add_argument("--test", action="store_true", help="send a message by each; without it none is sent")
    for one in (trial, telling):
        one.add_argument("--timeout", metavar="SECONDS", default="20", help="seconds to wait for answers (default: 20)")


def alerts(settings: Settings, flags: dict[str, Any]) -> int:
    import orjson

    from trainvitals.alerting import listing
    from trainvitals.journal.layout import find_root

    now, root = time.time(), settings["dir"] or find_root()
    view = listing.known(root, now)
    view["firing"] = marked(root, listing.beside(own_findings(root), view["firing"]))
    if flags["json"]:
        sys.stdout.buffer.write(orjson.dumps(view, option=orjson.OPT_APPEND_NEWLINE))
    else:
        print("\n".join(listing.lines(view, now)))
    return 0


def own_findings(root: Path) -> list[Record]:
    """What agents found themselves, as they keep it in this journal."""
    from trainvitals.agent.told import Memory
    from trainvitals.detect.shown import as_alert

    return [as_alert(change.finding, change.opened, folder.name, change.evidence)
            for folder in _hosts(root) for change in Memory(folder, 0.0).load() if change.cause is None]  # fmt: skip


def marked(root: Path, firing: list[Record]) -> list[Record]:
    """With what was acknowledged or silenced, by whichever agent of this journal. Of its own findings an agent knows
    more than Alertmanager, which heard of them."""
    from trainvitals.agent.quiet import FILE, Quiet
    from trainvitals.agent.twins import is_own
    from trainvitals.alerting.received import identity

    quiets = [Quiet(folder / FILE, folder.name) for folder in _hosts(root)]
    for quiet in quiets:
        quiet.load()
    firing = [one for one in firing if "id" in one or not any(is_own(one, folder.name) for folder in _hosts(root))]
    found = [[quiet.marked(one, one.get("id") or identity(one)) for quiet in quiets] for one in firing]
    return [next((one for one in each if one["acknowledged"] or one["silenced"]), each[0]) for each in found]


def _hosts(root: Path) -> list[Path]:
    from trainvitals.journal.layout import is_folder

    return sorted(folder for folder in (root / "gpu").glob("*") if is_folder(folder))


def alertmanager_config(_: Settings, flags: dict[str, Any]) -> int:
    from trainvitals.alerting.writing import write

    ways = write(Path(flags["out"]), config.environment(flags))
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


def replay(settings: Settings, flags: dict[str, Any]) -> int:
    from trainvitals import replay as past
    from trainvitals.detect.making import make_engine

    told = past.replay([Path(one) for one in flags["runs"]], make_engine(settings["rules"]))
    for line in past.json_lines(told) if flags["json"] else past.lines(told):
        print(line)
    return 0


def notify(settings: Settings, flags: dict[str, Any]) -> int:
    from trainvitals.alerting.listing import table
    from trainvitals.journal.layout import host_name
    from trainvitals.notify import plan, trial
    from trainvitals.notify.settings import FORMS, KEY

    wanted = plan(settings["notify"], config.environment(flags), heartbeat=settings["heartbeat_url"])
    ways = [*wanted.channels, *([wanted.heartbeat] if wanted.heartbeat else [])]
    if not ways:
        raise SettingError(KEY, "", f"give {FORMS}")
    seconds = _seconds(flags["timeout"])
    outcomes = trial.send(ways, host_name(), seconds) if flags["test"] else trial.look(ways, seconds)
    print("\n".join(table([*outcomes])))
    return 1 if any(outcome.state == trial.FAILED for outcome in outcomes) else 0


def _seconds(text: str) -> float:
    check = config.number(1, 300)
    try:
        return check(text)
    except ValueError as error:
        raise SettingError("--timeout", text, check.__doc__ or "") from error
