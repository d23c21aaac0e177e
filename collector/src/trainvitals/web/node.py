"""GPUs and host over time, all charts of a view by one call.

GET /api/v1/node?from=&to=&points=1000&gpu=0,1&fields=utilization_percent&host=cpu_usage_percent&digits=4&peaks=4
"""

import time

from starlette.requests import Request
from starlette.responses import Response

from trainvitals.agent import query
from trainvitals.web.answers import from_disk


async def node(request: Request) -> Response:
    """What is not in memory is read from the journal."""
    agent, parameters = request.app.state.agent, request.query_params
    return await from_disk(request, lambda: query.node(agent, query.parse(parameters, time.time())))
