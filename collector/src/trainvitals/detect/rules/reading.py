"""alerts.yml, read: rules compiled, and what else it holds given through for others to check.

contents = read("alerts.yml", text)      # RuleError says where and what
contents.rules[0].name, contents.sections["thresholds"]
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from trainvitals.detect.advice import ADVICE
from trainvitals.detect.rules import grammar, message
from trainvitals.detect.rules.errors import ExpressionError, RuleError
from trainvitals.detect.rules.rule import Rule
from trainvitals.detect.rules.spans import AT_ONCE, Span, span
from trainvitals.detect.rules.tree import Tree
from trainvitals.detect.rules.windows import MOST_HELD
from trainvitals.errors import SettingError
from trainvitals.model import SEVERITIES

MAX_RULES = 200
MAX_NAME = 100
# Values that all windows together hold of a run.
MAX_HELD = 100_000
SECTIONS = ("thresholds", "notify", "heartbeat", "quiet_hours")
KEYS = ("name", "when", "for", "severity", "message", "cooldown", "advice")
Node = Any
Value = TypeVar("Value")


@dataclass(slots=True)
class Contents:
    rules: tuple[Rule, ...] = ()
    # As YAML has them; a section that is not there is not in it.
    sections: dict[str, Any] = field(default_factory=dict)
    _tree: Tree | None = None

    def located(self, error: SettingError) -> RuleError:
        """What somebody else says of a section, with its place: the error's key is `thresholds: name` or so."""
        if self._tree is None:
            return RuleError("", 0, 0, str(error))
        node = self._tree.nearest([word for word in error.key.replace(": ", ".").replace("[", ".").split(".") if word])
        return self._tree.marks.error(node, str(error))


def read(file: str, text: str) -> Contents:
    tree = Tree(file, text)
    if tree.root is None:
        return Contents()
    rules, sections = (tree.root, {}) if tree.is_list(tree.root) else _parts(tree)
    return Contents(tuple(_rules(tree, rules)) if rules is not None else (), sections, tree)


def _parts(tree: Tree) -> tuple[Node, dict[str, Any]]:
    known = tree.mapping(tree.root, ("rules", *SECTIONS), "the file")
    return known.pop("rules", None), {
        name: tree.plain(node) for name, node in known.items() if not tree.is_nothing(node)
    }


def _rules(tree: Tree, node: Node) -> Iterator[Rule]:
    if tree.is_nothing(node):
        return
    if not tree.is_list(node):
        tree.fail(node, "rules are a list: begin each with `- name: …`")
    if len(node.value) > MAX_RULES:
        tree.fail(node.value[MAX_RULES], f"there are more than {MAX_RULES} rules: leave some out")
    names: set[str] = set()
    windows: dict[str, int] = {}
    for each in node.value:
        rule = _Reader(tree, each).rule()
        if rule.name in names:
            tree.fail(each, f"two rules are called {rule.name!r}: give each a name of its own")
        names.add(rule.name)
        windows.update({window.key: window.span.steps or MOST_HELD for window in rule.windows})
        if sum(windows.values()) > MAX_HELD:
            tree.fail(each, f"all windows together hold more than {MAX_HELD:,} values: make some shorter")
        yield rule


class _Reader:
    """Of one rule."""

    def __init__(self, tree: Tree, node: Node) -> None:
        self._tree, self._node = tree, node
        self._nodes = tree.mapping(node, KEYS, "a rule")

    def rule(self) -> Rule:
        name = self._name()
        when = self._compiled("when", grammar.condition, "write when it holds, as `when: loss > 9`")
        said = self._compiled("message", message.message) if "message" in self._nodes else None
        cooldown = self._span("cooldown", Span(seconds=300.0))
        if cooldown.steps and not cooldown.is_bare:
            self._fail("cooldown", "it counts seconds: write it as 300s or 5m")
        rule = Rule(name, when, self._severity(), self._span("for", AT_ONCE), said,  # type: ignore[arg-type]
                    cooldown.seconds or float(cooldown.steps), self._text("advice"))  # fmt: skip
        self._check_scope(rule)
        return rule

    def _name(self) -> str:
        name = self._text("name").strip()
        if not name or len(name) > MAX_NAME or not name.isprintable():
            self._fail("name", f"give it a name of 1 to {MAX_NAME} characters")
        if name in ADVICE:
            self._fail("name", f"{name} is what a detector of ours finds: choose another name")
        return name

    def _severity(self) -> str:
        severity = self._text("severity") or "ticket"
        if severity not in SEVERITIES:
            self._fail("severity", f"{severity!r} is none: choose one of {', '.join(SEVERITIES)}")
        return severity

    def _span(self, key: str, default: Span) -> Span:
        text = self._text(key)
        if not text:
            return default
        try:
            found = span(text)
        except ValueError as error:
            self._fail(key, f"{text[:MAX_NAME]!r} is no stretch of time: {error}")
        if key == "for" and found.is_bare and found.steps:
            self._fail(key, f"say of what: {text} steps, or {text}s")
        return found

    def _check_scope(self, rule: Rule) -> None:
        if rule.scope != "run" and rule.lasting.steps:
            self._fail("for", f"a {rule.scope} has no steps: give a time, as 30s")
        seen = {"run": {"run", "gpu", "host"}, "gpu": {"gpu", "host"}, "host": {"host"}}[rule.scope]
        told = {scope for expression in rule.expressions for scope in expression.scopes}
        for scope in sorted(told - seen):
            self._fail("message", f"the rule is asked about each {rule.scope}, which has no fields of a {scope}: "
                                  "leave them out, or name one in `when`")  # fmt: skip

    def _compiled(self, key: str, parse: Callable[[str], Value], fix: str = "") -> Value:
        text = self._text(key)
        if not text.strip():
            self._fail(key, fix or "it is empty: leave it out, or write some words")
        try:
            return parse(text)
        except ExpressionError as error:
            raise self._tree.marks.error(self._nodes[key], str(error), error.at) from None

    def _text(self, key: str) -> str:
        node = self._nodes.get(key)
        if node is None:
            return ""
        if not self._tree.is_text(node):
            self._tree.fail(node, f"{key} is text: write it behind the colon, in quotes where it holds braces")
        return str(node.value)

    def _fail(self, key: str, problem: str) -> NoReturn:
        """Where the key is missing, at the rule."""
        self._tree.fail(self._nodes.get(key, self._node), f"{key}: {problem}")
