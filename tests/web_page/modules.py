"""The page's modules, run by Node without a page.

evaluate({"format": "./format.js"}, "format.duration(2460)")  ->  "41 min"
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from trainvitals.web.app import STATIC

# What the modules touch as they are loaded.
STUBS = """
class Element {
  constructor(tag) { Object.assign(this, { tag, attributes: {}, children: [] }); }
  setAttribute(name, value) { this.attributes[name] = value; }
  append(...children) { this.children.push(...children); }
  addEventListener() {}
}
const createElement = (tag) => new Element(tag);
globalThis.document = { documentElement: { dataset: {} }, getElementById: () => new Element(), createElement };
globalThis.matchMedia = () => ({ matches: false, addEventListener() {} });
globalThis.window = globalThis;
globalThis.addEventListener = () => {};
globalThis.location = { search: "", pathname: "/" };
globalThis.history = { pushState() {}, replaceState() {} };
"""


def evaluate(modules: Mapping[str, str], program: str, zone: str = "UTC") -> Any:
    """`program` is an expression that may await; what it gives is told as JSON."""
    node = shutil.which("node")
    if not node:
        pytest.skip("no Node here")
    loads = "".join(f"const {name} = await import({json.dumps((STATIC / 'js' / path).as_uri())});\n"
                    for name, path in modules.items())  # fmt: skip
    script = f"{STUBS}\n{loads}\nconsole.log(JSON.stringify(await ({program})))"
    done = subprocess.run([node, "--no-warnings", "--input-type=module", "-e", script], capture_output=True, text=True,
                          timeout=20, check=False, env={**os.environ, "TZ": zone})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
