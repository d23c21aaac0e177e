"""Writes grafana/dashboards/*.json: `python -m grafana.build`, from the root of the repository.

grafana/gpu.py  ->  grafana/dashboards/trainvitals-gpu.json
"""

import json
from pathlib import Path

from grafana import cost, fleet, gpu, monitoring, ranks, run
from grafana.lib import Dashboard

FOLDER = Path(__file__).with_name("dashboards")
DASHBOARDS = tuple(module.DASHBOARD for module in (fleet, gpu, run, ranks, cost, monitoring))


def text(dashboard: Dashboard) -> str:
    return json.dumps(dashboard.json(), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    for dashboard in DASHBOARDS:
        (FOLDER / f"{dashboard.uid}.json").write_text(text(dashboard), encoding="utf-8")


if __name__ == "__main__":
    main()
