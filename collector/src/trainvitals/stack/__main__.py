"""The stack's one-shot jobs, and its gate: `python -m trainvitals.stack check-env compose/.env`."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from trainvitals.config import names
from trainvitals.errors import TrainVitalsError
from trainvitals.journal.layout import host_name


def check_env(words: argparse.Namespace) -> str:
    from trainvitals.stack.check_env import open_to_others, problems

    found = problems(words.path, os.environ)
    if not found and (warning := open_to_others(words.path)):
        print(warning, file=sys.stderr)
    return "\n".join(found)


def alertmanager_config(words: argparse.Namespace) -> str:
    from trainvitals.stack.alertmanager_knobs import make

    ways = make(words.path, words.out, os.environ)
    print(f"{words.out}: alerts go to the collector{' and by ' if ways else ''}{', '.join(ways)}")
    return ""


def gate(words: argparse.Namespace) -> str:
    from trainvitals.stack.gate import DOORS, problem, serve

    doors = words.doors or DOORS
    if words.check:
        return problem(doors)
    serve(doors, os.environ)
    return ""


def health(_: argparse.Namespace) -> str:
    from trainvitals.stack.health import problem

    return problem(os.environ)


def journal(words: argparse.Namespace) -> str:
    from trainvitals.stack.journal_folder import opened

    return opened(words.path, os.environ)


def password(words: argparse.Namespace) -> str:
    from trainvitals.stack.password import make

    path = make(words.path)
    if words.show:
        print(path.read_text(encoding="ascii"))
    return ""


def targets(words: argparse.Namespace) -> str:
    from trainvitals.stack.targets import write

    write(words.path, words.out, names(os.environ.get("COMPOSE_PROFILES", "")), host_name(), os.environ)
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    words = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], str] = words.command
    try:
        problem = command(words)
    except (TrainVitalsError, OSError) as error:
        problem = str(error)
    if problem:
        print(problem, file=sys.stderr)
    return 2 if problem else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trainvitals.stack")
    commands = parser.add_subparsers(required=True)
    checking = commands.add_parser("check-env", help="say what in a .env cannot be used")
    telling = commands.add_parser("alertmanager-config", help="write Alertmanager's configuration")
    guarding = commands.add_parser("gate", help="stand before Prometheus and Alertmanager")
    guarding.add_argument("doors", nargs="*", metavar="PORT:SERVICE:PORT")
    guarding.add_argument("--check", action="store_true", help="ask the gate in this container how it is")
    asking = commands.add_parser("health", help="ask the agent in this container how it is")
    opening = commands.add_parser("journal", help="open the journal's folder to whoever trains")
    making = commands.add_parser("password", help="make Grafana's password where there is none yet")
    making.add_argument("--show", action="store_true", help="and print it")
    listing = commands.add_parser("targets", help="write what Prometheus is to scrape")
    for each in (listing, telling):
        each.add_argument("--out", type=Path, required=True, metavar="DIR")
    for each, command in ((checking, check_env), (guarding, gate), (asking, health), (opening, journal),
                          (making, password), (listing, targets), (telling, alertmanager_config)):  # fmt: skip
        each.set_defaults(command=command)
        if each not in (asking, guarding):
            each.add_argument("path", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main())
