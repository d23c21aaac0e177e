#!/usr/bin/python
"""What a host has that the stack must know: GPUs, ports that are taken, what of the stack runs.

{"gpus": ["NVIDIA L4"], "dcgm": "dcgm", "taken": [{"port": 9090, "by": "nginx"}], "release": "3f2a…", …}
"""

import hashlib
import json
import os
import re
import socket
import subprocess
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: stack_facts
short_description: Look at a host before the stack is brought to it
options:
  home: {description: The stack's folder., type: path, required: true}
  address: {description: What other machines call it by., type: str, default: ''}
  dcgm: {description: Whether DCGM's exporter is wanted., type: str, default: auto}
  ports: {description: Those that the stack would listen on., type: list, elements: int, default: []}
  source: {description: The hash of the image's source., type: str, default: ''}
  images: {description: Those that the stack would run., type: list, elements: str, default: []}
author: [TrainVitals]
"""

PROJECT = "label=com.docker.compose.project=trainvitals"
LABEL = "trainvitals.source"
# What GPUs for desks have in their names, of which DCGM's exporter tells little.
FOR_DESKS = re.compile(r"GeForce|TITAN|Quadro|\bRTX\b|\bGTX\b")
CDI = re.compile(r'^\s*"?kind"?\s*:\s*"?nvidia\.com/gpu', re.MULTILINE)


def told(*words, seconds=30):
    """What a program says; nothing where it is not there or fails."""
    try:
        done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def gpus():
    lines = told("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").splitlines()
    return [line.strip() for line in lines if line]


def dcgm_profile(wanted, names, driver):
    """Nothing where no container gets GPUs either."""
    if not driver:
        return ""
    if wanted == "profiling":
        return "dcgm-profiling"
    for_data_centres = bool(names) and not any(FOR_DESKS.search(name) for name in names)
    return "dcgm" if wanted == "always" or (wanted == "auto" and for_data_centres) else ""


def gpu_driver():
    """How the engine gives GPUs to a container: cdi, nvidia, or nothing where it cannot."""
    if not any(Path(path).exists() for path in ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg")):
        return ""
    files = [path for folder in ("/etc/cdi", "/var/run/cdi") for path in Path(folder).glob("*") if path.is_file()]
    if any(CDI.search(path.read_text(errors="replace")) for path in files):
        return "cdi"
    return "nvidia" if "nvidia" in told("docker", "info", "--format", "{{json .Runtimes}}") else ""


def listening():
    """Each port and the programs that listen there, as the kernel and ss tell."""
    found = {}
    for line in told("ss", "-Hltnp").splitlines():
        port = line.split()[3].rpartition(":")[2]
        by = re.search(r'users:\(\("([^"]+)"', line)
        found.setdefault(int(port), by[1] if by else "another program")
    return found


def own_ports():
    ports = told("docker", "ps", "--filter", PROJECT, "--format", "{{.Ports}}")
    return {int(port) for port in re.findall(r":(\d+)->", ports)}


def taken(ports):
    own = own_ports()
    return [{"port": port, "by": by} for port, by in sorted(listening().items()) if port in ports and port not in own]


def bind(address):
    """The address of its own that this host is reached by: behind a NAT it is not what others call it."""
    try:
        called = [found[4][0] for found in socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)]
    except OSError:
        called = []
    for one in called:
        if not one.startswith("127.") and one != "::1" and _is_own(one):
            return one
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: the kernel says by which address it would go.
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return ""


def _is_own(address):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def link(path):
    return os.path.basename(os.readlink(path)) if path.is_symlink() else ""


def digest(path):
    return hashlib.sha1(path.read_bytes()).hexdigest() if path.is_file() else ""


def missing(images):
    here = set(told("docker", "images", "--format", "{{.Repository}}:{{.Tag}}").split())
    return [image for image in images if image not in here]


def services():
    """What runs of the stack, and how it is."""
    lines = told("docker", "ps", "--all", "--filter", PROJECT, "--format", "{{json .}}").splitlines()
    return {one["Names"]: one["Status"] for one in map(json.loads, lines)}


def main():
    module = AnsibleModule(
        {"home": {"type": "path", "required": True}, "address": {"type": "str", "default": ""},
         "dcgm": {"type": "str", "default": "auto"}, "ports": {"type": "list", "elements": "int", "default": []},
         "source": {"type": "str", "default": ""}, "images": {"type": "list", "elements": "str", "default": []}},
        supports_check_mode=True)  # fmt: skip
    wanted, home = module.params, Path(module.params["home"])
    names, driver, current = gpus(), gpu_driver(), home / "current"
    image = told("docker", "images", "--quiet", "--filter", f"label={LABEL}={wanted['source']}").split()
    module.exit_json(
        changed=False, gpus=names, dcgm=dcgm_profile(wanted["dcgm"], names, driver), gpu_driver=driver,
        taken=taken(wanted["ports"]), bind=bind(wanted["address"]),
        missing=missing(wanted["images"]), image=image[0] if image and wanted["source"] else "", release=link(current),
        healthy=link(home / "healthy"), env_sha1=digest(current / "compose" / ".env"), services=services(),
        idle=Path("/etc/systemd/system/trainvitals-idle.timer").exists())  # fmt: skip


if __name__ == "__main__":
    main()
