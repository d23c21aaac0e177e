"""The runs that are over, as far as screens still show them: what befell them waits for what goes on.

ended_runs(agent)  ->  {"gemma-2"}
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainvitals.agent.service import Agent


def ended_runs(agent: "Agent") -> set[str]:
    """Of a run of other machines alone it is not known."""
    lately = {state.run for state in agent.runs.states() if state.status not in ("", "running")}
    return lately | {reading.label("run") for reading in agent.snapshot.past}
