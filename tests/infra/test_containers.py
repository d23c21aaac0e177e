"""Each container: it runs, it is well, and it may do no more than it must."""

from tests.infra.machine import JOBS, PROJECT, Machine

# With their reasons in docs/stack.md.
CAPABLE = {"caddy": ["NET_BIND_SERVICE"], "dcgm-exporter-profiling": ["SYS_ADMIN"]}
ROOT = {"dcgm-exporter-profiling"}


def test_what_the_profiles_name_runs_and_nothing_else(machine: Machine) -> None:
    there = set(machine.containers)
    machine.demand(machine.wanted <= there, f"{', '.join(machine.wanted - there)} is not there", "deploy again")
    machine.demand(
        there <= machine.wanted,
        f"{', '.join(there - machine.wanted)} runs, and no profile names it",
        "deploy again, which removes it",
    )


def test_every_container_is_well(machine: Machine) -> None:
    for name, one in machine.containers.items():
        state = one["State"]
        if name in JOBS:
            machine.demand(
                state["Status"] == "exited" and state["ExitCode"] == 0,
                f"the job {name} ended with {state['ExitCode']}",
                "its last words are below",
                container=name,
            )
            continue
        how = state.get("Health", {}).get("Status", "healthy")
        machine.demand(
            state["Status"] == "running" and how == "healthy",
            f"{name} is {state['Status']}, {how}",
            f"docker logs {PROJECT}-{name}-1, then deploy again",
            container=name,
        )


def test_every_container_comes_back_after_a_restart(machine: Machine) -> None:
    for name, one in machine.containers.items():
        policy = one["HostConfig"]["RestartPolicy"]["Name"]
        machine.demand(
            name in JOBS or policy == "unless-stopped", f"{name} is not started again: {policy}", "deploy again"
        )


def test_every_container_is_hardened(machine: Machine) -> None:
    for name, one in machine.containers.items():
        if name not in JOBS:
            for what in loose(name, one):
                machine.demand(
                    False,
                    f"{name}: {what}",
                    f"it runs otherwise than compose.yaml says: remove the container "
                    f"{PROJECT}-{name}-1 and deploy again",
                )


def loose(name: str, one: dict) -> list[str]:  # type: ignore[type-arg]
    """What it may do beyond what it must."""
    host, config = one["HostConfig"], one["Config"]
    held = {
        "its root file system can be written": host["ReadonlyRootfs"],
        f"it has the capabilities {host['CapAdd']}": [cap.removeprefix("CAP_") for cap in host["CapAdd"] or []]
        == CAPABLE.get(name, []),
        "it keeps capabilities": host["CapDrop"] == ["ALL"],
        "it may gain privileges": "no-new-privileges:true" in host["SecurityOpt"],
        "it is privileged": not host["Privileged"],
        "it is root": config["User"].split(":")[0] not in ("", "0", "root") or name in ROOT,
        "it may take all memory": host["Memory"] > 0,
        "it may start any number of processes": (host["PidsLimit"] or 0) > 0,
        "its log is not rotated": "max-size" in (host["LogConfig"]["Config"] or {}),
        "it has Docker's socket": not any("docker.sock" in mount["Source"] for mount in one["Mounts"]),
    }
    return [what for what, is_so in held.items() if not is_so]
