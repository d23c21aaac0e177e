"""What one would write oneself: gauges of prometheus-client, set once a second, served by its own server.

python -m bench.plain_exporter --port 9000 --series 500 --interval 1
"""

import argparse
import itertools
import time

from prometheus_client import Gauge, start_http_server
from prometheus_client.registry import CollectorRegistry

LABELS = ("hostname", "index", "devicename", "uuid")
GPUS = 8


def gauges(registry: CollectorRegistry, series: int) -> list[Gauge]:
    """Named and labelled like an exporter's, so that a line has the usual length."""
    made = []
    for number in range(-(-series // GPUS)):
        gauge = Gauge(f"gpu_plain_reading_{number}", f"Reading {number} of a GPU.", LABELS, registry=registry)
        for gpu in range(min(GPUS, series - number * GPUS)):
            made.append(
                gauge.labels("node", str(gpu), "NVIDIA H100 80GB HBM3", f"GPU-0000100{gpu}-fa4e-4b1d-8000-00000000")
            )
    return made


def main() -> None:
    asked = _arguments()
    registry = CollectorRegistry()
    made = gauges(registry, asked.series)
    start_http_server(asked.port, "127.0.0.1", registry)
    for tick in itertools.count():
        for number, gauge in enumerate(made):
            gauge.set((tick + number) * 1.25)
        time.sleep(asked.interval)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--series", type=int, default=500)
    parser.add_argument("--interval", type=float, default=1.0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
