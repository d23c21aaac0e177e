"""run.watch(model, optimizer): how long forward and backward take, and what gradients, parameters and layers do.

{"step": 20, "forward_seconds": 0.02, "backward_seconds": 0.04, "gradient_norm": 2.1, "parameter_norm": 41.0,
 "update_ratio": 0.001, "vanishing_layers": 0, "exploding_layers": 0}
"""

import logging
import sys
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

from trainvitals.run import cuda
from trainvitals.run import watch_options as options
from trainvitals.run.watch_histograms import histograms
from trainvitals.run.watch_hooks import Hooks
from trainvitals.run.watch_inside import NO_WEIGHTS, Inside
from trainvitals.run.watch_layers import bare, is_compiled
from trainvitals.run.watch_report import MAX_NAMES, Report, report
from trainvitals.run.watch_rounds import Rounds
from trainvitals.run.watch_sample import Sample
from trainvitals.run.watch_times import Times

torch: Any = sys.modules["torch"]
log = logging.getLogger("trainvitals.run")

# Histograms with every so many samples.
SAMPLES_A_HISTOGRAM = 10
MAX_WAITING = 20

_live: "weakref.WeakSet[Watch]" = weakref.WeakSet()


def watch(run: Any, model: Any, optimizer: Any = None, *, every: int = options.EVERY, layers: options.Patterns = None,
          activations: bool = False, attention: bool = False) -> "Watch":  # fmt: skip
    """`optimizer` may be several. `layers` are names of modules, or patterns as "blocks.*.mlp"."""
    watching = Watch(run)
    try:
        watching.begin(model, options.optimizers(optimizer), options.every(every), options.patterns(layers, model),
                       activations=activations, attention=attention)  # fmt: skip
    except Exception as error:
        watching.failed(error)
    return watching


class Watch:
    _inside: Inside
    _rounds: Rounds
    _times: Times

    def __init__(self, run: Any) -> None:
        self._run = run
        self._hooks, self._inner = Hooks(self.failed), Hooks(self.failed)
        self._model: Any = lambda: None
        self._patterns: Sequence[str] = ()
        self._sent: deque[Sample] = deque(maxlen=MAX_WAITING)
        self._told: tuple[list[str], list[str]] = ([], [])
        self._warned: set[str] = set()
        self.label = ""

    def begin(self, model: Any, optimizers: Sequence[Any], every: int, patterns: Sequence[str], *,
              activations: bool, attention: bool) -> None:  # fmt: skip
        self._replace_or_name(model)
        self._patterns = patterns
        self._inside = Inside(self._inner, patterns, activations=activations, attention=attention)
        self._rounds = Rounds(every, len(optimizers), self._new_sample, self._send)
        self._times = Times(self._run, self._hooks, self._backward_ended)
        self._times.device = _device(model)
        self._hooks.add(model.register_forward_pre_hook, self._forward_begins)
        self._hooks.add(model.register_forward_hook, self._forward_ends)
        for optimizer in optimizers:
            self._hooks.add(optimizer.register_step_pre_hook, self._step_begins)
            self._hooks.add(optimizer.register_step_post_hook, self._step_ends)
        _live.add(self)

    def remove(self) -> None:
        """Takes all of it away from the model and the optimizer; what a GPU has told by now is still logged."""
        _live.discard(self)
        self._hooks.remove()
        self._inner.remove()
        try:
            self._read()
        except Exception as error:
            self._warn(f"watch: what was measured last is not recorded: {error!r}")
        self._sent.clear()
        if hasattr(self, "_rounds"):
            self._rounds.forget()

    def failed(self, error: Exception) -> None:
        self._sent.clear()
        self.remove()
        self._warn(f"watch: the model is no longer watched, and training goes on: {type(error).__name__}: {error}")

    def _replace_or_name(self, model: Any) -> None:
        """One watch a model and run; values of a second model go by its class, so that none mixes with the first's."""
        others = [other for other in _live if other._run is self._run and other._model() is not None]
        same = [other for other in others if other._model() is model]
        self._model = weakref.ref(model)
        for other in same:
            self.label = other.label
            other.remove()
        if others and not same:
            name = type(bare(model)).__name__
            taken = sum(other.label.partition("-")[0] == name for other in others)
            self.label = f"{name}-{taken + 1}" if taken else name

    def _forward_begins(self, module: Any, *_: Any) -> None:
        self._inside.close()  # of a forward that failed
        sample = self._rounds.sample() if self._looks_inside(module) else None
        if sample is not None and not any(kind.startswith(("activation_", "attention_")) for kind in sample.parcel):
            self._inside.open(module, sample.parcel)
        self._times.forward_begins()

    def _forward_ends(self, module: Any, inputs: Any, output: Any) -> None:
        self._times.forward_ends(module, inputs, output)
        if not self._inside.close():
            self._warn(NO_WEIGHTS)

    def _looks_inside(self, module: Any) -> bool:
        if not (self._inside.activations or self._inside.attention):
            return False
        if not (module.training and torch.is_grad_enabled()) or _is_capturing():
            return False
        if compiled := is_compiled(module):
            self._warn("activations and attention: nothing can be seen inside a compiled model; "
                       "leave them out of watch(), or compile it later")  # fmt: skip
        return not compiled

    def _backward_ended(self) -> None:
        if not _is_capturing():
            self._rounds.backward_ended(self._run.number)

    def _step_begins(self, optimizer: Any, arguments: Any, named: Any) -> None:
        if not _is_capturing():
            self._rounds.step_begins(optimizer, arguments, named)

    def _step_ends(self, optimizer: Any, *_: Any) -> None:
        if not _is_capturing():
            self._times.give()
            self._rounds.step_ends(optimizer, self._run.number)
            self._read()

    def _new_sample(self, number: int) -> Sample:
        histograms_due = bool(self._patterns) and number % SAMPLES_A_HISTOGRAM == 0
        if histograms_due and torch.are_deterministic_algorithms_enabled() and cuda.is_used():
            self._warn("watch: no histograms: torch counts them on a GPU only without deterministic algorithms")
            histograms_due = False
        model = self._model()
        self._times.device = _device(model)
        return Sample(model, self._patterns, with_histograms=histograms_due)

    def _send(self, sample: Sample) -> None:
        sample.send()
        self._sent.append(sample)
        self._read()

    def _read(self) -> None:
        while self._sent and (numbers := self._sent[0].parcel.values()) is not None:
            sample = self._sent.popleft()
            told, norms = report(sample, numbers)
            self._run.log({self._named(name): value for name, value in told.values.items()}, step=sample.number)
            self._tell_layers(told, sample.number)
            if found := histograms(numbers, norms.scale):
                self._run.write_event("histograms", step=sample.number, histograms=found)

    def _tell_layers(self, told: Report, number: int) -> None:
        if (told.vanishing, told.exploding) != self._told:
            self._told = told.vanishing, told.exploding
            self._run.write_event("gradients", step=number, vanishing=told.vanishing[:MAX_NAMES],
                                  exploding=told.exploding[:MAX_NAMES])  # fmt: skip

    def _named(self, name: str) -> str:
        if not self.label:
            return name
        kind, slash, layer = name.partition("/")
        return f"{kind}/{self.label}.{layer}" if slash else f"{kind}/{self.label}"

    def _warn(self, text: str) -> None:
        """Each once."""
        if text not in self._warned:
            self._warned.add(text)
            log.warning("%s", text)


def _device(model: Any) -> Any:
    """The first parameter's: times of a model that lies on several GPUs are told by this one."""
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))


def _is_capturing() -> bool:
    """Into a CUDA graph nothing of ours may go."""
    return cuda.is_used() and bool(torch.cuda.is_current_stream_capturing())
