"""Fetches what google's schema is published in, once a clone: an npm package, and a wheel of Python's."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

NPM = "@cdktf/provider-google@16.12.1"
PYTHON = "pulumi-gcp"
SECONDS = 300


def npm_archive(cache):
    """The package of the version that the modules pin."""
    return _fetched(cache, "*provider-google-16.12.1.tgz", ["npm", "pack", "--silent", NPM])


def wheel(cache):
    """Of the newest version that the index has."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", PYTHON]
    return _fetched(cache, "pulumi_gcp-*.whl", pip)


def _fetched(cache, pattern, words):
    cache.mkdir(parents=True, exist_ok=True)
    if not (found := sorted(cache.glob(pattern))):
        _fetch(cache, words)
        found = sorted(cache.glob(pattern))
    return found[-1] if found else None


def _fetch(cache, words):
    if not shutil.which(words[0]):
        return
    try:
        subprocess.run(words, cwd=cache, check=False, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return


def sources(archive, folders):
    """The index.js of each of these folders of the npm package."""
    wanted = {f"package/lib/{folder}/index.js" for folder in folders}
    with tarfile.open(archive) as packed:
        return [packed.extractfile(member).read().decode() for member in packed if member.name in wanted]


def folder(kind, name):
    """google_compute_instance is published in compute-instance, data google_project in data-google-project."""
    words = name.removeprefix("google_").replace("_", "-")
    return f"data-google-{words}" if kind == "data" else words


def used(terraform_folder):
    """The resources and data sources that a module names, as (kind, name)."""
    texts = [path.read_text() for path in sorted(Path(terraform_folder).glob("*.tf"))]
    lines = [line.split('"') for text in texts for line in text.splitlines()]
    return sorted({(words[0].strip(), words[1]) for words in lines if words[0] in ("resource ", "data ")})
