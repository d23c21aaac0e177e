"""Whether a Docker Engine is here for the stack, and whether it can give GPUs to containers.

findings(has_gpus=True)  ->  [("ok", "engine 28.5.2 answers"), ("ok", "containers get GPUs by CDI: nvidia.com/gpu=all")]

It is asked by the package `docker`, where that is installed.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

Finding = tuple[str, str]

TIMEOUT_SECONDS = 5
CDI_KIND = "nvidia.com/gpu="
# Compose files with several contexts, health checks that start often, and CDI without a switch.
OLDEST = 28
_GENERATE = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
_TOOLKIT = ("install the NVIDIA Container Toolkit, then `sudo nvidia-ctk runtime configure` and "
            "`sudo systemctl restart docker`")  # fmt: skip


def findings(has_gpus: bool) -> list[Finding]:
    try:
        import docker
    except ImportError:
        return []
    try:
        with closing(docker.from_env(timeout=TIMEOUT_SECONDS)) as client:
            return list(judge(client.info(), has_gpus))
    except (docker.errors.DockerException, OSError) as error:
        return [_silent(str(error))]


def judge(info: dict[str, Any], has_gpus: bool) -> Iterator[Finding]:
    """What an engine tells of itself, in words."""
    version = str(info.get("ServerVersion", ""))
    major = version.partition(".")[0]
    if major.isdigit() and int(major) < OLDEST:
        yield "note", f"engine {version} answers; the stack is made for {OLDEST} and newer: update it"
    else:
        yield "ok", f"engine {version} answers"
    if has_gpus:
        yield _gpus(info)


def _gpus(info: dict[str, Any]) -> Finding:
    devices = [str(device.get("ID", "")) for device in info.get("DiscoveredDevices") or []]
    if any(device == f"{CDI_KIND}all" for device in devices):
        return "ok", f"containers get GPUs by CDI: {CDI_KIND}all"
    if "nvidia" in (info.get("Runtimes") or {}):
        return "ok", "containers get GPUs by the NVIDIA runtime"
    if any(device.startswith(CDI_KIND) for device in devices):
        return "problem", f"its CDI specification has no {CDI_KIND}all: `{_GENERATE}`"
    return "problem", f"containers get no GPU: {_TOOLKIT}"


def _silent(error: str) -> Finding:
    if "Permission" in error or "permission" in error:
        return "note", "this user may not ask the engine: `sudo usermod -aG docker $USER`, then log in again"
    return "note", "no engine answers, so `make up` runs the agent alone: `sudo systemctl start docker`"
