"""Precision, recall and delays, per detector, per family and in all.

Tally().add(scenario, recording, judgement)
"""

from dataclasses import dataclass, field

from bench.detect.matching import Hit, Judgement
from bench.rows import quantile
from tests.detect.scenarios.scenario import Recording, Scenario

DAY = 86400.0


@dataclass
class Score:
    scenarios: int = 0
    # Those of which nothing false was said.
    clean: int = 0
    expected: int = 0
    hits: int = 0
    late: int = 0
    false: int = 0
    false_pages: int = 0
    repeats: int = 0
    seconds: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    watched: float = 0.0

    @property
    def precision(self) -> float | None:
        said = self.hits + self.false
        return self.hits / said if said else None

    @property
    def recall(self) -> float | None:
        return self.hits / self.expected if self.expected else None

    @property
    def worst(self) -> float:
        """Where nothing is to be found, the share of recordings met with silence."""
        if not self.expected:
            return self.clean / self.scenarios if self.scenarios else 1.0
        return min(self.precision if self.precision is not None else 0.0, self.recall or 0.0)

    @property
    def false_pages_a_day(self) -> float:
        return self.false_pages / (self.watched / DAY) if self.watched else 0.0

    def delay(self, share: float) -> tuple[float | None, float | None]:
        """In seconds and in steps."""
        return (quantile(self.seconds, share) if self.seconds else None,
                quantile(self.steps, share) if self.steps else None)  # fmt: skip


@dataclass
class Tally:
    whole: Score = field(default_factory=Score)
    families: dict[str, Score] = field(default_factory=dict)
    kinds: dict[str, Score] = field(default_factory=dict)
    cases: dict[str, Score] = field(default_factory=dict)
    # In words, one for each that went wrong.
    wrong: list[str] = field(default_factory=list)

    def add(self, scenario: Scenario, recording: Recording, judged: Judgement) -> None:
        for score in (self.whole, _of(self.families, scenario.family), _of(self.cases, scenario.case)):
            score.scenarios += 1
            score.clean += not judged.false
            score.expected += len(recording.expected)
            score.late += len(judged.late)
            score.false += len(judged.false)
            score.false_pages += judged.false_pages
            score.repeats += len(judged.repeats)
            score.watched += recording.ended - recording.began
            for hit in judged.hits:
                _count(score, hit, recording)
        self._by_kind(scenario, recording, judged)
        self.wrong += _words(scenario, recording, judged)

    def _by_kind(self, scenario: Scenario, recording: Recording, judged: Judgement) -> None:
        """A false finding counts against the detector that said it, in whichever family."""
        for expected in recording.expected:
            _of(self.kinds, expected.kind).expected += 1
        for kind in scenario.kinds:
            _of(self.kinds, kind).scenarios += 1
        for hit in judged.hits:
            _count(_of(self.kinds, hit.expected.kind), hit, recording)
        for one in judged.false:
            _of(self.kinds, one.kind).false += 1
            _of(self.kinds, one.kind).false_pages += one.severity == "page" and not one.cause
        for one in judged.late:
            _of(self.kinds, one.kind).late += 1


def _of(scores: dict[str, Score], name: str) -> Score:
    return scores.setdefault(name, Score())


def _count(score: Score, hit: Hit, recording: Recording) -> None:
    score.hits += 1
    score.seconds.append(hit.delay)
    if hit.expected.step is not None:
        steps = recording.steps_between(hit.expected.run, hit.expected.onset, hit.expected.onset + hit.delay)
        score.steps.append(float(steps))


def _words(scenario: Scenario, recording: Recording, judged: Judgement) -> list[str]:
    late = [one.kind for one in judged.late]
    missed = [f"{scenario.name}: missed{' (late)' * (one.kind in late)}: {one.kind}" for one in judged.missed]
    return missed + [
        f"{scenario.name}: false {one.severity}: {one.kind}, {one.when - recording.began:.0f} s after the start, "
        f"rank {one.rank}, gpu {one.gpu}, step {one.step}{f', under {one.cause}' * bool(one.cause)}: {one.what[:160]}"
        for one in judged.false
    ]
