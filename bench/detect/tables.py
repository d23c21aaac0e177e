"""Scores as tables of docs/detection.md.

goals(results)  ->  "| what | must reach | measured |  | …"
"""

from collections.abc import Iterable, Sequence

from bench.detect.results import Results
from bench.detect.scores import Score
from bench.detect.stragglers import MOST_DELAY, Trace
from bench.rows import quantile

CASES = {"clear": "clear cases", "faint": "faint cases", "near": "near misses", "chain": "one fault, several signs",
         "healthy": "healthy life"}  # fmt: skip
GOAL, FAMILY_GOAL = 0.97, 0.9
MOST_MICROS = 20
Row = Sequence[str]


def table(head: Row, rows: Iterable[Row]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def goals(results: Results) -> str:
    return table(("what", "must reach", "measured", ""), _goals(results))


def missed(results: Results) -> list[str]:
    """What did not reach what it must."""
    return [what for what, *_, word in _goals(results) if word == verdict(is_met=False)]


def _goals(results: Results) -> list[Row]:
    return [*_labelled_goals(results), *_trace_goals(results), *_live_goals(results)]


def _labelled_goals(results: Results) -> Iterable[Row]:
    if (tally := results.labelled) is None:
        return
    for what, value in (("precision", tally.whole.precision), ("recall", tally.whole.recall)):
        yield f"{what}, all labelled scenarios", f"≥ {GOAL}", share(value), verdict((value or 0.0) >= GOAL)
    name, worst = min(tally.families.items(), key=lambda family: family[1].worst)
    yield "lowest family", f"≥ {FAMILY_GOAL}", f"{share(worst.worst)} ({name})", verdict(worst.worst >= FAMILY_GOAL)
    yield "false pages a day", "", f"{tally.whole.false_pages_a_day:.2f}", ""


def _trace_goals(results: Results) -> Iterable[Row]:
    if nanogpt := results.nanogpt:
        yield f"pages in {nanogpt.logs} nanogpt logs", "0", str(len(nanogpt.pages)), verdict(not nanogpt.pages)
        true = sum(ticket.is_true for ticket in nanogpt.tickets)
        yield ("tickets there, of spikes that were there", "all", f"{true} of {len(nanogpt.tickets)}",
               verdict(true == len(nanogpt.tickets)))  # fmt: skip
    for trace in results.stragglers or ():
        if trace.expected is not None:
            asked = f"worker {trace.expected} alone, within {MOST_DELAY} steps"
            yield f"stragglers of {trace.name}", asked, _named(trace), verdict(trace.is_right)


def _live_goals(results: Results) -> Iterable[Row]:
    if (live := results.live) is None:
        return
    for what, times, most in (
        ("a NaN", live.nan, 1.0),
        ("a fatal Xid", live.xid, 3.0),
        ("a lost GPU", live.lost, 3.0),
        ("a NaN → Alertmanager", live.passed, 5.0),
    ):
        worst = quantile(times, 0.99)
        yield (f"{what} → webhook, p99 of {len(times)}", f"< {most:g} s",
               f"{worst:.2f} s (p50 {quantile(times, 0.5):.2f} s)", verdict(worst < most))  # fmt: skip
    lines = {f"a line with all detectors, of {ranks} rank{'s' * (ranks > 1)}": micros
             for ranks, micros in live.micros.items()}  # fmt: skip
    samples = {"a GPU's sample with all detectors": live.gpu, "of one whose clocks are held down": live.throttled}
    for what, micros in (lines | samples).items():
        yield (what, f"≤ {MOST_MICROS} µs", f"{micros:.1f} µs (a mean by hand {live.floor:.2f} µs)",
               verdict(micros <= MOST_MICROS))  # fmt: skip
    yield "memory of a run of 8 ranks", "≤ 1 MiB", f"{live.kib:.0f} KiB", verdict(live.kib <= 1024)


def _named(trace: Trace) -> str:
    if not trace.named:
        return "nobody"
    steps = "" if trace.delay is None else f", {trace.delay} steps after"
    return f"worker {', '.join(map(str, sorted(trace.named)))}{steps}"


def scores(named: Iterable[tuple[str, Score]], first: str) -> str:
    head = (first, "scenarios", "to find", "found", "late", "false (pages)", "precision", "recall",
            "delay, steps: p50, p99", "delay: p50, p99")  # fmt: skip
    return table(head, [_score(name, score) for name, score in named])


def _score(name: str, score: Score) -> Row:
    (half, half_steps), (most, most_steps) = score.delay(0.5), score.delay(0.99)
    steps = "" if half_steps is None else f"{half_steps:,.0f}, {most_steps:,.0f}"
    seconds = "" if half is None else f"{lasting(half)}, {lasting(most or 0.0)}"
    counts = [str(count) for count in (score.scenarios, score.expected, score.hits, score.late)]
    false = f"{score.false} ({score.false_pages})"
    return (name, *counts, false, share(score.precision), share(score.recall), steps, seconds)


def silence(named: Iterable[tuple[str, Score]]) -> str:
    """Of families in which nothing is to be found."""
    head = ("healthy life", "scenarios", "met with silence", "false (pages)", "watched")
    return table(head, [(name.removeprefix("healthy: "), str(score.scenarios), share(score.clean / score.scenarios),
                         f"{score.false} ({score.false_pages})", lasting(score.watched))
                        for name, score in named])  # fmt: skip


def traces(results: Results) -> str:
    lines = [_nanogpt(results), *map(_trace, results.stragglers or ()), _nab(results)]
    said = [f"- {line}" for line in lines if line]
    return "\n".join([*said, *(f"- Not measured: {what}: {why}." for what, why in results.unmeasured.items())])


def _nanogpt(results: Results) -> str:
    if not (told := results.nanogpt):
        return ""
    listed = [
        f"log {ticket.log} step {ticket.step}: {ticket.kind}{'' if ticket.is_true else ' (not so)'}"
        for ticket in (*told.pages, *told.tickets)
    ]
    counts = f"{len(told.pages)} pages, {len(told.tickets)} tickets, {told.infos} infos"
    return (
        f"nanogpt, {told.logs} logs, {told.steps:,} steps, {told.spikes} spikes by the same measure: {counts}"
        f"{': ' * bool(listed)}{'; '.join(listed)}."
    )


def _trace(trace: Trace) -> str:
    others = {what: trace.others.count(what) for what in dict.fromkeys(trace.others)}
    listed = ", ".join(f"{count} {what}" for what, count in others.items())
    asked = "for information" if trace.expected is None else f"worker {trace.expected} is slow"
    listed = f"; besides {listed}" if listed else ""
    return f"Stragglers of {trace.name} ({asked}): named {_named(trace)}{listed}."


def _nab(results: Results) -> str:
    if not (told := results.nab):
        return ""
    return (f"NAB, {told.series} series, for information: {told.score:.0f} of 100 by a simplified standard profile; "
            f"{told.found} of {told.windows} windows found, {told.false} words outside of any.")  # fmt: skip


def share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def verdict(is_met: bool) -> str:
    return "met" if is_met else "**missed**"


def lasting(seconds: float) -> str:
    for unit, length in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"
