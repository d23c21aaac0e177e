"""What tests of rules need."""

import pytest


def rules_of(text):
    """Of the list's text, as it stands in alerts.yml."""
    pytest.importorskip("yaml", reason="yaml is not installed")
    from trainvitals.detect.rules.reading import read
    from trainvitals.detect.rules.rules import Rules

    return Rules(read("alerts.yml", text).rules)


def one(when, **keys):
    """Rules of one rule, called r."""
    more = "".join(f"\n  {name.rstrip('_')}: {value}" for name, value in keys.items())
    return rules_of(f"- name: r\n  when: '{when}'{more}\n")


def train(rules, values, run="a", rank=0, first=1, every=1.0):
    """A step each; the steps of which something was found."""
    found = []
    for step, value in enumerate(values, first):
        line = value if isinstance(value, dict) else {"loss": value}
        found += [finding.step for finding in rules.training(run, rank, 1000 + step * every, {"step": step, **line})]
    return found
