#!/usr/bin/python
"""What a host's compose/.env says of some knobs, where that is not what .env.example says anyway.

{"knobs": {"SLACK_WEBHOOK_URL": "https://…"}}

Whom alerts go to is given to one deployment and must hold at the next, which may come from elsewhere.
"""

import re
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: stack_kept
short_description: Read knobs that an earlier deployment set
options:
  home: {description: The stack's folder., type: path, required: true}
  names: {description: The knobs., type: list, elements: str, required: true}
author: [TrainVitals]
"""

# As env.j2 writes a line: between quotes of either kind, or as it is.
LINE = re.compile(r"""(\w+)=(?:'([^']*)'|"((?:[^"\\]|\\.)*)"|(.*?))(?:\s+#.*)?""")
ESCAPED = re.compile(r'\\([\\$"])')


def read(path):
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        match = LINE.fullmatch(line.strip())
        if match:
            found[match[1]] = match[2] or ESCAPED.sub(r"\1", match[3] or "") or match[4] or ""
    return found


def newest(home):
    """That of the release that runs; where a run was broken off before there is one, what it wrote last."""
    current = home / "current" / "compose" / ".env"
    written = sorted(home.glob("releases/*/compose/.env"), key=lambda path: path.stat().st_mtime)
    return current if current.is_file() or not written else written[-1]


def kept(home, names):
    path = newest(home)
    found, usual = read(path), read(path.with_name(".env.example"))
    return {name: found[name] for name in names if name in found and found[name] != usual.get(name, "")}


def main():
    module = AnsibleModule({"home": {"type": "path", "required": True},
                            "names": {"type": "list", "elements": "str", "required": True}},
                           supports_check_mode=True)  # fmt: skip
    module.exit_json(changed=False, knobs=kept(Path(module.params["home"]), module.params["names"]))


if __name__ == "__main__":
    main()
