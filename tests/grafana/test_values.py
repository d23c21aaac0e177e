"""What panels say where several tell of one thing, with our rules and without: by promtool, as Grafana would ask.

asked("trainvitals-cost", "Energy") while the collector restarts and DCGM is behind it: what was drawn, and no more
"""

import shutil

import pytest

from tests.grafana.support import asked, proves

pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
RULES = ("thresholds", "normalize", "record")


@pytest.mark.parametrize("panel", ["Energy", "CO₂"])
def test_energy_counts_once_while_exporters_take_over_from_each_other(tmp_path, panel):
    """DCGM is half a minute behind, and numbers the GPU otherwise: half an hour of 500 W."""
    series = {
        'gpu_energy_joules_total{instance="a", gpu="0", uuid="GPU-a"}': "2000000000+15000x59 stale _x7 2001020000+15000x60",
        'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{instance="a", gpu="4", UUID="GPU-a"}': "1999985000000+15000000x130",
    }
    energy = asked("trainvitals-cost", panel, __range="30m")
    told = 0.25 * (1 if panel == "Energy" else 400)

    proves(tmp_path, series, (f"round(({energy}) / {told}, 0.02)", "55m", [("{}", 1)]), rules=RULES)
