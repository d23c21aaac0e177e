"""From nothing to a watched GPU machine: `make deploy CLOUD=gcp`, or `make deploy INVENTORY=hosts.yml` for one's own.

Each command can be broken off and typed again: it goes on with what is missing.
"""

import argparse
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

from deploy import kept, say, ways
from deploy.cloud import CLOUDS
from deploy.errors import DeployError, FileToEdit
from deploy.machines import Machines
from deploy.site import CLOUD_SECONDS, OWN_SECONDS, Site

STAGES = ("Machines", "SSH", "Set-up", "Verification", "Done")
CHANGING = ("plan", "deploy", "destroy")
LONGEST_WAIT = 7200


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    told, status = None, 0
    try:
        told = _arguments()
        _act(told)
    except FileToEdit as turn:
        print(f"deploy: {turn}")
        # A script that goes on would take it for deployed.
        status = 0 if say.somebody_answers() else 2
    except DeployError as error:
        return _failed(str(error), 2)
    except subprocess.TimeoutExpired as error:
        return _failed(f"{error.cmd[0]} did not end within {error.timeout:g} s: run this again", 2)
    except ValueError as error:
        return _failed(f"an answer could not be read ({error}): run this again. If it stays so, terraform "
                       "-chdir=terraform/CLOUD plan says more; or terraform.tfvars is no UTF-8", 2)  # fmt: skip
    except OSError as error:
        return _failed(f"{error.filename or 'this machine'}: {error.strerror}: is it yours to write, is there room?", 2)
    except KeyboardInterrupt:
        return _failed(_broken_off(told), 130)
    return status


def _act(told: argparse.Namespace) -> None:
    # Of a file that is not there nothing is left behind.
    there = bool(told.cloud) or Path(told.inventory).expanduser().exists()
    with kept.alone(told.name) if told.action in CHANGING and there else nullcontext():
        ACTIONS[told.action](told)


def _failed(why: str, status: int) -> int:
    say.note(f"deploy: {why}")
    print(f"deploy: {why}", file=sys.stderr)
    if path := say.kept_in():
        print(f"deploy: all that was said is in {os.path.relpath(path)}", file=sys.stderr)
    return status


def _broken_off(told: argparse.Namespace | None) -> str:
    """Machines go on costing money while nobody looks."""
    if not told or not told.cloud or told.action not in ("deploy", "destroy"):
        return "broken off; run this again and it goes on"
    return (f"broken off. What is there stays, is known, and costs money while it runs: make deploy {told.chosen} goes "
            f"on, make destroy {told.chosen} takes it down")  # fmt: skip


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="deploy", description=__doc__)
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("--cloud", default=os.environ.get("CLOUD", ""), help="gcp or aws")
    parser.add_argument("--inventory", default=os.environ.get("INVENTORY", ""), help="the hosts of one's own")
    told = parser.parse_args()
    if bool(told.cloud) == bool(told.inventory):
        clouds = f"make {told.action} CLOUD=gcp or CLOUD=aws"
        of_clouds = told.action in ("plan", "destroy")
        raise DeployError(f"say which: {clouds if of_clouds else f'{clouds}, or INVENTORY=hosts.yml'}")
    if told.cloud and told.cloud not in CLOUDS:
        raise DeployError(f"CLOUD: '{told.cloud}' is none that there is a module for: take gcp or aws")
    told.name = kept.name_of(told.cloud, told.inventory)
    told.chosen = f"CLOUD={told.cloud}" if told.cloud else f"INVENTORY={told.inventory}"
    return told


def _reach_seconds(told: argparse.Namespace) -> int:
    usual = CLOUD_SECONDS if told.cloud else OWN_SECONDS
    value = os.environ.get("REACH_SECONDS") or str(usual)
    if not value.isdecimal() or not 1 <= int(value) <= LONGEST_WAIT:
        raise DeployError(
            f"REACH_SECONDS: '{value}' is no whole number from 1 to {LONGEST_WAIT}: how long SSH is waited for, "
            f"{usual} where it is not said"
        )
    return int(value)


def _machines(told: argparse.Namespace, *, new: bool = False) -> Machines:
    if not told.cloud:
        other = f"make deploy {told.chosen} sets them up" if told.action == "plan" else (
            f"{ways.removal(told.inventory)} takes the stack off them"
        )  # fmt: skip
        raise DeployError(f"machines of one's own are not made here, so there is nothing to {told.action}; {other}")
    cloud = CLOUDS[told.cloud]
    cloud.check(new=new)
    if told.action != "destroy":
        cloud.need_account()
    return Machines(cloud)


def _site(told: argparse.Namespace) -> Site:
    return Site(_machines(told).inventory() if told.cloud else Path(told.inventory).expanduser())


def plan(told: argparse.Namespace) -> None:
    _machines(told, new=True).plan()


def deploy(told: argparse.Namespace) -> None:
    seconds = _reach_seconds(told)
    machines = _machines(told, new=True) if told.cloud else None
    site = None if machines else _site(told)
    _begin(told)
    if machines:
        _stage(told, "Machines")
        machines.make()
    site = site or _site(told)
    _stage(told, "SSH")
    site.wait(seconds, booting=bool(machines))
    _stage(told, "Set-up")
    site.play("site.yml")
    if machines:
        machines.settled()
    _stage(told, "Verification")
    site.verify()
    _stage(told, "Done")
    ways.tell(site, told.chosen)
    site.complete()


def _stage(told: argparse.Namespace, name: str) -> None:
    stages = STAGES if told.cloud else STAGES[1:]
    say.stage(stages.index(name) + 1, len(stages), name)


def _begin(told: argparse.Namespace) -> None:
    say.line(f"All that is said will be in {os.path.relpath(say.keep(kept.log_of(told.name)))}")


def verify(told: argparse.Namespace) -> None:
    site = _site(told)
    site.verify()
    site.complete()


def tunnel(told: argparse.Namespace) -> None:
    ways.open_tunnel(_site(told))


def destroy(told: argparse.Namespace) -> None:
    machines = _machines(told)
    _begin(told)
    machines.destroy()


ACTIONS = {"plan": plan, "deploy": deploy, "verify": verify, "tunnel": tunnel, "destroy": destroy}

if __name__ == "__main__":
    sys.exit(main())
