"""GPUs for a machine of the rehearsal: the NVML stand-in as its driver's library, and two programs beside it.

    files(host="gpu1", count=2)  ->  {"usr/bin/nvidia-smi": (0o755, b"#!/usr/bin/env python3 ..."), ...}

The scenario lies in SCENARIO on the machine, a folder that the controller shares with it.
"""

import uuid
from collections.abc import Iterator
from pathlib import Path

from tests import fakenvml
from tests.rehearsal.images import CACHE

DRIVER = "580.95.05"
SCENARIO = "/etc/fakenvml"
LIBRARY = f"usr/lib/x86_64-linux-gnu/{fakenvml.LIBRARY}"
_PROGRAMS = Path(__file__).parent / "programs"


def scenario(host: str, count: int) -> str:
    """As fakenvml's README has it. No two machines have a GPU of one name."""
    named = (f"gpu {index} uuid GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{index}.{host}')}" for index in range(count))
    return "\n".join([f"driver {DRIVER}", f"gpus {count}", *named, ""])


def files(count: int, *, toolkit: bool) -> Iterator[tuple[str, int, bytes]]:
    """Path, mode and content of each. The nodes under /dev are made at boot, for /dev is."""
    yield LIBRARY, 0o644, fakenvml.build(CACHE / "fakenvml").read_bytes()
    nodes = ["nvidiactl", "nvidia-uvm", *(f"nvidia{index}" for index in range(count))]
    yield "etc/tmpfiles.d/nvidia.conf", 0o644, "".join(f"f /dev/{node} 0666\n" for node in nodes).encode()
    for name in ("nvidia-smi", *(["nvidia-ctk"] if toolkit else [])):
        yield f"usr/bin/{name}", 0o755, (_PROGRAMS / name).read_bytes()
