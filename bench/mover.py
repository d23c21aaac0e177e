"""Makes the stand-in's GPUs move as a training does: what varies on hardware gets new values, over and over.

    python -m bench.mover SCENARIO GPUS SECONDS

Counters grow by themselves. Limits, error counts and links stand still, as they do on a healthy machine.
"""

import random
import select
import sys
from pathlib import Path

from tests.fakenvml import Scenario


def lines(gpu: int, chance: random.Random) -> list[str]:
    values = {
        "utilization_gpu": chance.randint(60, 100),
        "utilization_memory": chance.randint(40, 80),
        "memory_used": chance.randint(55, 65) * 10**9,
        "temperature": chance.randint(50, 80),
        "memory_temperature": chance.randint(60, 90),
        "power_usage": chance.randint(400_000, 700_000),
        "clock_graphics": chance.randint(1600, 1980),
        "clock_sm": chance.randint(1600, 1980),
        "pcie_throughput_tx": chance.randint(1_000_000, 3_000_000),
        "pcie_throughput_rx": chance.randint(1_000_000, 3_000_000),
        "fan_speed": chance.randint(30, 60),
    }
    return [f"gpu {gpu} {name} {value}" for name, value in values.items()]


def main() -> None:
    path, gpus, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    scenario, chance = Scenario(path, f"gpus {gpus}"), random.Random(7)
    while not select.select([sys.stdin], [], [], seconds)[0]:
        moved = [line for gpu in range(gpus) for line in lines(gpu, chance)]
        scenario.write("\n".join([f"gpus {gpus}", *moved, ""]))


if __name__ == "__main__":
    main()
