"""GPUs and host over time, all charts of a view by one call.

GET /api/v1/node?from=&to=&points=1000&gpu=0,1&fields=utilization_percent&host=cpu_usage_percent&digits=4&peaks=0
"""

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from trainvitals.agent import query
from trainvitals.web.answers import from_disk
from trainvitals.web.shortened import MAX_DIGITS, Columns, shortened


async def node(request: Request) -> Response:
    """What is not in memory is read from the journal."""
    agent, parameters = request.app.state.agent, request.query_params

    def work() -> dict[str, Any]:
        digits = query.whole_number(parameters.get("digits"), "digits", MAX_DIGITS, 1, MAX_DIGITS)
        peaks = query.whole_number(parameters.get("peaks"), "peaks", query.MAX_GPUS, 0, query.MAX_GPUS)
        told = query.node(agent, query.parse(parameters, time.time()))
        has_peaks = len(told["gpus"]) <= peaks
        gpus = {gpu: _short(fields, digits, has_peaks) for gpu, fields in told["gpus"].items()}
        return {**told, "gpus": gpus, "host": _short(told["host"], digits)}

    return await from_disk(request, work)


def _short(fields: dict[str, Columns], digits: int, peaks: bool = True) -> dict[str, Columns]:
    kept = {name: {key: column for key, column in columns.items() if peaks or key != "peak"}
            for name, columns in fields.items()}  # fmt: skip
    return {name: shortened(columns, digits) for name, columns in kept.items()}
