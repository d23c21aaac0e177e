"""The command that installs what is missing: it is the one that works where it is said."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import trainvitals
from trainvitals.errors import install_words

PACKAGE = Path(trainvitals.__file__).parent


def test_in_a_clone_it_names_the_clone_wherever_it_is_typed() -> None:
    command = re.fullmatch("`(.*)`", install_words("web"))
    assert command
    program, *words, place = shlex.split(command[1])
    assert (program, words) == (sys.executable, ["-m", "pip", "install", "--upgrade", "-e"])
    folder, extra = place.removesuffix("]").rsplit("[", 1)
    assert extra == "web" and (Path(folder) / "pyproject.toml").is_file()
    assert (Path(folder) / "src" / "trainvitals").samefile(PACKAGE)


def test_where_it_was_copied_to_it_says_where_to_type_it(tmp_path: Path) -> None:
    copied = tmp_path / "lib" / "site-packages" / "trainvitals"
    copied.mkdir(parents=True)
    shutil.copy(PACKAGE / "errors.py", copied)
    script = "from trainvitals.errors import install_words; print(install_words('wandb'))"
    (copied / "__init__.py").touch()  # else one that is installed goes before it
    environ = {**os.environ, "PYTHONPATH": str(copied.parent)}
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environ)
    words = f"`{sys.executable} -m pip install --upgrade './collector[wandb]'` in the clone of TrainVitals\n"
    assert said.stdout == words
