"""Alertmanager as the distribution builds it, started from a folder: program(Path("bin/alertmanager"), folder)."""

import os
from pathlib import Path

TOOLS = Path(__file__).parents[2] / ".cache" / "tools"
# Where the distribution's program looks for the templates of its package, and as long a name for the folder it runs in.
_PACKAGED, _HERE = b"/usr/share/prometheus/alertmanager", b"/proc/self/cwd" + b"/." * 10


def program(found: Path, folder: Path) -> tuple[Path, Path]:
    """The program and the folder to run it in: a copy that finds the package's templates where they were fetched to,
    unless they are installed."""
    content = found.read_bytes()
    if os.path.isdir(_PACKAGED) or _PACKAGED + b"/" not in content:
        return found, folder
    copy = folder / "alertmanager"
    copy.write_bytes(content.replace(_PACKAGED, _HERE))
    copy.chmod(0o755)
    return copy, TOOLS / "share" / "alertmanager"
