#!/usr/bin/python
"""The files of the repository that a host runs, as one archive that bears the hash of what is in it.

    {"release": "3f2a90c1b7de", "source": "91bb…", "archive": "….tar.gz", "images": {"prom/…": ["server"], …}}

Runs on the controller. Each image is told with the profiles that run it. The source's hash is of what the collector's
image is made of, so that the image is built where that changed and nowhere else.
"""

import gzip
import hashlib
import io
import os
import tarfile
from pathlib import Path

import yaml
from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: stack_release
short_description: Pack what a host of the stack runs
options:
  root: {description: The repository., type: path, required: true}
  folder: {description: Where the archive goes., type: path, required: true}
author: [TrainVitals]
"""

SOURCE = ("collector/Dockerfile", "collector/.dockerignore", "collector/pyproject.toml", "collector/src/**/*",
          "requirements/runtime.txt", "requirements/build.txt")  # fmt: skip
SHIPPED = (
    *SOURCE, "compose/compose*.yaml", "compose/.env.example", "compose/Caddyfile", "compose/*.csv",
    "compose/web/README.md", "prometheus/prometheus.yml", "prometheus/rules/*.yml", "prometheus/targets/*.yml",
    "grafana/provisioning/**/*", "grafana/dashboards/*.json", "scripts/stack",
)  # fmt: skip


def files(root, patterns):
    found = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    return sorted(path for path in found if "__pycache__" not in path.parts and ".egg-info" not in str(path))


def digest(root, paths):
    hasher = hashlib.sha256()
    for path in paths:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        hasher.update(f"{path.relative_to(root)} {os.access(path, os.X_OK)} {content}\n".encode())
    return hasher.hexdigest()[:12]


def packed(root, paths, source):
    """Root's, without times: the same files make the same archive."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        for folder in folders(root, paths):
            tar.addfile(_folder(folder))
        for path in paths:
            name = str(path.relative_to(root))
            _add(tar, name, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
        _add(tar, ".source", f"{source}\n".encode(), 0o644)
    return buffer.getvalue()


def folders(root, paths):
    """Above the files, so that they are as they should be whatever the host's umask is."""
    return sorted({str(folder) for path in paths for folder in path.relative_to(root).parents} - {"."})


def _folder(name):
    told = tarfile.TarInfo(name)
    told.type, told.mode = tarfile.DIRTYPE, 0o755
    return told


def _add(tar, name, content, mode):
    told = tarfile.TarInfo(name)
    told.size, told.mode = len(content), mode
    tar.addfile(told, io.BytesIO(content))


def missing(root):
    return [pattern for pattern in SHIPPED if not files(root, [pattern])]


def images(root):
    found = {}
    for service in yaml.safe_load((root / "compose" / "compose.yaml").read_text())["services"].values():
        found.setdefault(service["image"], set()).update(service["profiles"])
    return {image: sorted(profiles) for image, profiles in sorted(found.items())}


def main():
    module = AnsibleModule({"root": {"type": "path", "required": True}, "folder": {"type": "path", "required": True}},
                           supports_check_mode=True)  # fmt: skip
    root, folder = Path(module.params["root"]).resolve(), Path(module.params["folder"])
    if lacking := missing(root):
        module.fail_json(
            msg=f"{root}: {', '.join(lacking)} is not there: run this from a whole clone of the repository"
        )
    paths = files(root, SHIPPED)
    release, source = digest(root, paths), digest(root, files(root, SOURCE))
    archive = folder / f"release-{release}.tar.gz"
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = archive.with_name(f"{archive.name}.{os.getpid()}")
        unfinished.write_bytes(packed(root, paths, source))
        unfinished.replace(archive)
    module.exit_json(changed=False, release=release, source=source, archive=str(archive), images=images(root))


if __name__ == "__main__":
    main()
