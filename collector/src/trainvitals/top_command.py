"""The command `top`: the dashboard in the terminal, wired in with its flags by `add`; the parts are in tui/."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainvitals import config
from trainvitals.errors import TrainVitalsError, install_words

if TYPE_CHECKING:
    from trainvitals.agent.service import Agent
    from trainvitals.sources import Source
    from trainvitals.tui.own import OwnReadings

Settings = dict[str, Any]
TOKEN = "TRAINVITALS_TOKEN"
_FLAGS = ("gpu", "gpus", "interval", "remote", "token", "ascii", "save_dir", "host", "port", "dir", "rules", "simulate",
          "scenario", "seed")  # fmt: skip


def add(command: Callable[..., Any], sources: "Callable[[Settings, Path], list[Source]]",
        agent: "Callable[..., Agent]", journal: Callable[[Settings], Path]) -> None:  # fmt: skip
    """`command(name, function, text, *settings)` makes the parser; the others what this process samples with."""

    def make_own(settings: Settings) -> "OwnReadings":
        return _own(settings, sources(settings, journal(settings)), agent)

    def top(settings: Settings, flags: dict[str, Any]) -> int:
        return run(settings, flags, lambda: make_own(settings))

    showing = command("top", top, "a dashboard in the terminal: GPUs, runs, findings, over time", *_FLAGS)
    showing.add_argument("--run", metavar="NAME", default="", help="show this run")


def run(settings: Settings, flags: dict[str, Any], make_own: "Callable[[], OwnReadings]") -> int:
    try:
        from trainvitals.tui import command
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("trainvitals"):
            raise
        raise TrainVitalsError(f"{error.name} is missing: {install_words('tui')}") from error
    return command.run(settings, flags["run"], _token(settings, flags), make_own)


def _token(settings: Settings, flags: dict[str, Any]) -> str:
    """`none` is the word of an agent that wants no token."""
    from trainvitals.notify.settings import with_files

    told = config.environment(flags)
    if settings["token"]:
        told.pop(f"{TOKEN}_FILE", None)
    token = settings["token"] or with_files(told, (TOKEN,)).get(TOKEN, "")
    return "" if token == "none" else token


def _own(settings: Settings, sources: "Sequence[Source]", make_agent: "Callable[..., Agent]") -> "OwnReadings":
    from trainvitals.detect.making import make_engine
    from trainvitals.monitor import Chosen
    from trainvitals.tui.own import OwnReadings
    from trainvitals.web.views import snapshot_view

    numbers = sorted({*(settings["gpu"] or ()), *(settings["gpus"] or ())})
    chosen = [Chosen(one, numbers) if numbers and one.name != "host" else one for one in sources]
    engine = make_engine(settings["rules"])
    return OwnReadings(lambda: make_agent(settings, chosen, keep_log=False, engine=engine), snapshot_view)
