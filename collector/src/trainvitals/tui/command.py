"""`trainvitals top`: the parts of the dashboard put together, from settings to the end.

run(settings, "gemma-qlora", token, make_own)  ->  the exit status
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trainvitals.errors import SettingError, TrainVitalsError
from trainvitals.tui.address import Address, bearer
from trainvitals.tui.app import Options, Top
from trainvitals.tui.feed import Feed, Own
from trainvitals.tui.leaving import Terminal, is_terminal, knows_braille
from trainvitals.tui.view import Asked

Settings = Mapping[str, Any]


def run(settings: Settings, wanted_run: str, token: str, make_own: Callable[[], Own]) -> int:
    address = _address(settings, token)
    if not is_terminal():
        raise TrainVitalsError("top draws on a terminal, and standard input or standard error is none, or a dumb one: "
                               "`trainvitals once` and `trainvitals monitor` print lines")  # fmt: skip
    # What is logged would be written across the screen; what matters of it is on it.
    logging.basicConfig(handlers=[logging.NullHandler()], force=True)
    logging.captureWarnings(True)
    terminal = Terminal()
    is_ascii = settings["ascii"] if settings["ascii"] is not None else not knows_braille()
    asked = Asked(tuple(sorted({*(settings["gpu"] or ()), *(settings["gpus"] or ())})), wanted_run)
    options = Options(settings["interval"], asked, is_ascii, settings["save_dir"] or Path(), terminal.leave,
                      terminal.is_gone)  # fmt: skip
    own = None if settings["remote"] else make_own
    app = Top(options, lambda told: Feed(told, address, settings["interval"], own))
    terminal.watch(lambda: app.call_later(app.exit))
    try:
        app.run(mouse=False)
    finally:
        terminal.restore()
    for said in app.saved:
        print(said)
    return app.return_code or 0


def _address(settings: Settings, token: str) -> Address | None:
    """Simulated GPUs are shown by this process alone."""
    if settings["remote"]:
        if settings["simulate"]:
            raise SettingError("--simulate", settings["simulate"], "leave it out, or --remote")
        return Address.parse(settings["remote"], token)
    return None if settings["simulate"] else Address(settings["host"], settings["port"], login=bearer(token))
