"""How long a model's forward and backward take, by hooks on the module that the training calls.

A forward counts once a gradient comes back to what it returned: evaluation, with or without `no_grad`, never does.
Backward is from then until autograd is done, gradients of other ranks included. No hook of torch's on a module's
backward is used: those put nodes of their own into the graph and forbid changes in place.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from time import perf_counter as clock
from typing import Any, Protocol

from trainvitals.run import cuda
from trainvitals.run.watch_hooks import Hooks

torch: Any = sys.modules["torch"]

MAX_WAITING = 200
MAX_DEPTH = 3
MAX_OUTPUTS = 16
# Calls that wait for a gradient at the same node of the graph.
MAX_FORWARDS = 16


class Span(Protocol):
    def close(self) -> None: ...
    def seconds(self) -> float | None: ...


class HostSpan:
    def __init__(self) -> None:
        self._began, self._took = clock(), 0.0

    def close(self) -> None:
        self._took = clock() - self._began

    def seconds(self) -> float | None:
        return self._took


class Forward:
    """One call of the module; its time is given away once."""

    __slots__ = ("span",)

    def __init__(self, span: Span | None) -> None:
        self.span = span


class Times:
    device = torch.device("cpu")

    def __init__(self, run: Any, hooks: Hooks, backward_ended: Callable[[], None]) -> None:
        self._run, self._hooks, self._tell = run, hooks, backward_ended
        self._forward: Span | None = None
        self._backward: Span | None = None
        self._task = -1
        self._waiting: deque[tuple[str, Span]] = deque(maxlen=MAX_WAITING)

    def forward_begins(self, *_: Any) -> None:
        """What is computed anew during backward, for a checkpoint, is part of backward."""
        is_training = torch.is_grad_enabled() and torch._C._current_graph_task_id() == -1
        self._forward = self._open() if is_training else None

    def forward_ends(self, _module: Any, _inputs: Any, output: Any) -> None:
        span, self._forward = self._forward, None
        if span is not None:
            self._close(span)
        if torch.is_grad_enabled():
            forward = Forward(span)
            for node in grad_nodes(output):
                self._wait_at(node, forward)

    def _wait_at(self, node: Any, forward: Forward) -> None:
        """One hook a node, for a node that the model keeps is returned by each of its calls."""
        forwards = node.metadata.get(self)
        if forwards is None:
            forwards = node.metadata[self] = deque(maxlen=MAX_FORWARDS)
            node.register_prehook(self._hooks.wrap(partial(self._backward_reaches, forwards)))
        forwards.append(forward)

    def _backward_reaches(self, forwards: deque[Forward], *_: Any) -> None:
        while forwards:
            self._count(forwards.popleft())
        task = torch._C._current_graph_task_id()
        if task != self._task:
            self._task, self._backward = task, self._open()
            self._at_the_end(self._backward_nearly_ends)

    def _count(self, forward: Forward) -> None:
        if forward.span is not None:
            self._keep("forward", forward.span)
            forward.span = None

    def _backward_nearly_ends(self) -> None:
        """Others wait for their gradients at the end too, and have put themselves in line by now."""
        self._at_the_end(self._backward_ends)

    def _backward_ends(self) -> None:
        span, self._backward, self._task = self._backward, None, -1
        if span is not None:
            self._close(span)
            self._keep("backward", span)
        self._tell()

    def _at_the_end(self, act: Callable[[], None]) -> None:
        torch.autograd.Variable._execution_engine.queue_callback(self._hooks.wrap(act))

    def _keep(self, name: str, span: Span) -> None:
        self._waiting.append((name, span))
        self.give()

    def give(self) -> None:
        """Times that are known by now; a GPU's own come when its events are past."""
        while self._waiting and (seconds := self._waiting[0][1].seconds()) is not None:
            name, _ = self._waiting.popleft()
            self._run.add_seconds(**{name: seconds})

    def _open(self) -> Span | None:
        if self.device.type != "cuda":
            return HostSpan()
        with torch.cuda.device(self.device):
            return cuda.span()

    def _close(self, span: Span) -> None:
        if isinstance(span, HostSpan):
            span.close()
            return
        with torch.cuda.device(self.device):
            span.close()


def grad_nodes(output: Any) -> list[Any]:
    """Where backward enters what the module returned, each place once."""
    nodes: dict[int, Any] = {}
    for tensor in tensors(output):
        if tensor.grad_fn is not None:
            nodes |= {id(node): node for node in _entrances(tensor.grad_fn)}
        if len(nodes) >= MAX_OUTPUTS:
            break
    return list(nodes.values())


def _entrances(node: Any) -> Iterator[Any]:
    """Also what comes next: a view that is changed in place after it was returned gets another node of its own. Never
    a parameter's, which outlives the graph."""
    yield node
    yield from (each for each, _ in node.next_functions if each is not None and not hasattr(each, "variable"))


def tensors(output: Any, depth: int = MAX_DEPTH) -> Iterator[Any]:
    if isinstance(output, torch.Tensor):
        yield output
    elif depth > 0:
        for part in _parts(output):
            yield from tensors(part, depth - 1)


def _parts(output: Any) -> Iterator[Any]:
    if isinstance(output, Mapping):
        yield from output.values()
    elif isinstance(output, (tuple, list)):
        yield from output
    elif is_dataclass(output):
        yield from (getattr(output, field.name) for field in fields(output))
