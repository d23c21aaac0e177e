"""From nothing to a watched GPU machine: `make deploy CLOUD=gcp`, or `make deploy INVENTORY=hosts.yml` for one's own.

Each command can be broken off and typed again: it goes on with what is missing.
"""

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

from deploy import say
from deploy.cloud import CLOUDS, ROOT
from deploy.errors import DeployError
from deploy.machines import Machines
from deploy.site import PORTS, Site, tell


def main() -> int:
    try:
        told = _arguments()
        ACTIONS[told.action](told)
    except DeployError as error:
        print(f"deploy: {error}", file=sys.stderr)
        return 2
    except subprocess.TimeoutExpired as error:
        print(f"deploy: {error.cmd[0]} did not end within {error.timeout:g} s: run this again", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ndeploy: broken off; run this again and it goes on", file=sys.stderr)
        return 130
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="deploy", description=__doc__)
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("--cloud", default="", help="gcp or aws")
    parser.add_argument("--inventory", default="", help="the hosts of one's own")
    told = parser.parse_args()
    if bool(told.cloud) == bool(told.inventory):
        raise DeployError(f"say which: make {told.action} CLOUD=gcp, CLOUD=aws or INVENTORY=hosts.yml")
    if told.cloud and told.cloud not in CLOUDS:
        raise DeployError(f"CLOUD: '{told.cloud}' is none that there is a module for: take gcp or aws")
    return told


def _machines(told: argparse.Namespace) -> Machines:
    if not told.cloud:
        raise DeployError(f"machines of one's own are not made here, so there is nothing to {told.action}; "
                          "ansible-playbook ansible/remove.yml takes the stack off them")  # fmt: skip
    return Machines(CLOUDS[told.cloud])


def _site(told: argparse.Namespace) -> Site:
    return Site(_machines(told).inventory() if told.cloud else Path(told.inventory))


def plan(told: argparse.Namespace) -> None:
    _machines(told).plan()


def deploy(told: argparse.Namespace) -> None:
    stages = iter(range(1, 6))
    of = 5 if told.cloud else 4
    machines = _machines(told) if told.cloud else None
    if machines:
        say.stage(next(stages), of, "Machines")
        machines.make()
    site = Site(machines.inventory()) if machines else _site(told)
    site.check()
    say.stage(next(stages), of, "SSH")
    site.wait()
    say.stage(next(stages), of, "Set-up")
    site.play("site.yml")
    if machines:
        machines.settled()
    say.stage(next(stages), of, "Verification")
    site.verify()
    say.stage(next(stages), of, "Done")
    tell(site)


def verify(told: argparse.Namespace) -> None:
    _site(told).verify()


def tunnel(told: argparse.Namespace) -> None:
    command = _site(told).tunnel()
    say.line(command)
    for name, port in PORTS.items():
        say.line(f"{name}: http://localhost:{port}")
    say.line("Ctrl-C ends it.")
    subprocess.run(shlex.split(command), check=False, cwd=ROOT)


def destroy(told: argparse.Namespace) -> None:
    _machines(told).destroy()


ACTIONS = {"plan": plan, "deploy": deploy, "verify": verify, "tunnel": tunnel, "destroy": destroy}

if __name__ == "__main__":
    sys.exit(main())
