"""YAML as a tree whose leaves know where they stand.

Safe, and bounded: no anchors, no aliases, no deep nesting, no key twice.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

from trainvitals.detect.rules.errors import RuleError
from trainvitals.detect.rules.marks import Marks
from trainvitals.errors import nearest

MAX_DEPTH = 20
Node = Any


class Tree:
    def __init__(self, file: str, text: str) -> None:
        import yaml

        self.marks = Marks(file, text)
        self._yaml = yaml
        self._loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            self._check(text)
            self.root: Node = yaml.compose(text, Loader=self._loader)
        except yaml.MarkedYAMLError as error:
            raise self._refused(error) from None
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise RuleError(file, 0, 0, f"it is no YAML: {' '.join(str(error).split())[:200]}") from None

    def is_list(self, node: Node) -> bool:
        return isinstance(node, self._yaml.SequenceNode)

    def is_text(self, node: Node) -> bool:
        return isinstance(node, self._yaml.ScalarNode)

    def is_nothing(self, node: Node) -> bool:
        return self.is_text(node) and node.tag == "tag:yaml.org,2002:null"

    def mapping(self, node: Node, known: Sequence[str], what: str) -> dict[str, Node]:
        if not isinstance(node, self._yaml.MappingNode):
            self.fail(node, f"{what} has keys and values: write them as `key: value`")
        found: dict[str, Node] = {}
        for key, value in node.value:
            name = str(key.value)[:100] if self.is_text(key) else ""
            if name not in known:
                self.fail(key, f"{name!r} is no key of {what}: the nearest is {nearest(name, known)!r}")
            if name in found:
                self.fail(key, f"{name!r} stands twice: leave one out")
            found[name] = value
        return found

    def plain(self, node: Node) -> Any:
        """As safe_load gives it."""
        loader = self._loader("")
        try:
            return loader.construct_document(node)
        except self._yaml.MarkedYAMLError as error:
            raise self._refused(error) from None
        except (ValueError, OverflowError, RecursionError) as error:
            self.fail(node, f"a value in it cannot be read: {' '.join(str(error).split())[:200]}")
        finally:
            loader.dispose()

    def nearest(self, path: Sequence[str]) -> Node:
        """The deepest node on the way there."""
        node = self.root
        for word in path:
            if not isinstance(node, self._yaml.MappingNode):
                break
            found = next((pair for pair in node.value if str(pair[0].value) == word), None)
            if found is None:
                break
            node = found[1]
        return node

    def fail(self, node: Node, problem: str) -> NoReturn:
        raise self.marks.error(node, problem)

    def _check(self, text: str) -> None:
        """Before anything is built of it. Events come one by one, however deep they are."""
        depth = 0
        for event in self._yaml.parse(text, Loader=self._loader):
            if getattr(event, "anchor", None):
                raise self.marks.at(event.start_mark, "anchors and aliases are not read: write it out")
            depth += isinstance(event, self._yaml.CollectionStartEvent)
            depth -= isinstance(event, self._yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise self.marks.at(event.start_mark, f"it is nested deeper than {MAX_DEPTH}")

    def _refused(self, error: Any) -> RuleError:
        problem = f"this is no YAML: {error.problem or error.context}"
        mark = error.problem_mark or error.context_mark
        problem += ": text that holds a colon, or begins with a brace, a bracket or a backquote, stands in quotes"
        return self.marks.at(mark, problem) if mark else RuleError(self.marks.file, 0, 0, problem)
