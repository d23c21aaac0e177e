"""The containers and the network that the rehearsal's machines are, and their removal, whatever happens."""

import contextlib
import io
import os
import random
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LABEL = "trainvitals-rehearsal"
# The second word is what Debian 13's init wants where the kernel's control groups are those of old.
_INIT = ["/sbin/init", "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"]
# No machine may set this one's clock. (Not --privileged: it is refused where the engine itself lacks a capability.)
_DROPPED = ["SYS_TIME"]
_CONTROL_GROUPS = Path("/sys/fs/cgroup")


@contextmanager
def network(client: Any) -> Iterator[Any]:
    remove_abandoned(client)
    made = _made_network(client)
    try:
        yield made
    finally:
        made.remove()


def _made_network(client: Any) -> Any:
    """With a range that is given: only then does a machine keep its address while it is stopped."""
    import docker.errors

    for _ in range(20):
        subnet = f"10.{random.randint(200, 250)}.{random.randint(0, 255)}.0/24"
        with contextlib.suppress(docker.errors.APIError):
            return client.networks.create(
                f"rehearsal-{random.randbytes(3).hex()}", driver="bridge", labels={LABEL: _owner()},
                ipam={"Config": [{"Subnet": subnet}]})  # fmt: skip
    raise RuntimeError(
        "the engine takes no network from 10.200.0.0 to 10.250.255.0: docker network ls shows those in use"
    )


def created(client: Any, image: str, host: str, address: str, where: Any, *,
            shared: Mapping[Path, str], tmpfs: Mapping[str, str]) -> Any:  # fmt: skip
    binds = {str(path): {"bind": target, "mode": "ro"} for path, target in shared.items()}
    binds[str(_CONTROL_GROUPS)] = {"bind": str(_CONTROL_GROUPS), "mode": "rw"}
    volumes = [] if "/var/lib/docker" in tmpfs else [{"Type": "volume", "Target": "/var/lib/docker"}]
    settings = client.api.create_host_config(
        cap_add=["ALL"], cap_drop=_DROPPED, security_opt=["seccomp=unconfined", "apparmor=unconfined"],
        tmpfs={"/run": "exec", "/run/lock": "", "/tmp": "exec", **tmpfs}, mounts=volumes, binds=binds,
        cgroupns="host")  # fmt: skip
    endpoint = client.api.create_endpoint_config(ipv4_address=address, aliases=[host])
    made = client.api.create_container(
        image, command=_INIT, hostname=host, name=f"{where.name}-{host}", labels={LABEL: _owner()},
        host_config=settings, networking_config={"EndpointsConfig": {where.name: endpoint}})  # fmt: skip
    return client.containers.get(made["Id"])


def packed(files: Iterable[tuple[str, int, bytes]], user: int) -> bytes:
    """Path, mode and content of each as a tar file; what is under /home is the user's."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, mode, content in files:
            told = tarfile.TarInfo(path)
            told.size, told.mode = len(content), mode
            told.uid = told.gid = user if path.startswith("home/") else 0
            tar.addfile(told, io.BytesIO(content))
    return buffer.getvalue()


def remove(container: Any) -> None:
    """And what its own engine's containers leave of control groups, for these outlive it."""
    status, told = container.exec_run(["timeout", "10", "docker", "ps", "--all", "--quiet", "--no-trunc"])
    container.remove(force=True, v=True)
    for name in told.decode().split() if status == 0 else ():
        for group in _CONTROL_GROUPS.glob(f"*/docker/{name}"):
            with contextlib.suppress(OSError):
                group.rmdir()


def _owner() -> str:
    """This process, as no other is called while it lives."""
    return f"{os.getpid()}@{os.readlink('/proc/self/ns/pid')}"


def remove_abandoned(client: Any) -> None:
    """What a run left that was killed."""
    for one in client.containers.list(all=True, filters={"label": LABEL}):
        if _is_abandoned(one.labels[LABEL]):
            one.remove(force=True, v=True)
    for one in client.networks.list(filters={"label": LABEL}):
        if _is_abandoned(one.attrs["Labels"][LABEL]):
            one.remove()


def _is_abandoned(owner: str) -> bool:
    pid, _, where = owner.partition("@")
    return where == _owner().partition("@")[2] and not Path("/proc", pid).exists()
