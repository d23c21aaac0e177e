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
        'gpu_energy_joules_total{instance="a", gpu="0", uuid="GPU-a"}': "2e9+15000x59 stale _x7 2001020000+15000x60",
        'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{instance="a", gpu="4", UUID="GPU-a"}': "1999985000000+15000000x130",
    }
    energy = asked("trainvitals-cost", panel, __range="30m")
    told = 0.25 * (1 if panel == "Energy" else 400)

    proves(tmp_path, series, (f"round(({energy}) / {told}, 0.02)", "55m", [("{}", 1)]), rules=RULES)


# Rank 0 runs on a, whose agent reads what all ranks wrote; rank 1 runs on b, and b's agent tells it once more.
TOLD_BY = (("a", 0), ("a", 1), ("b", 1))


def told_twice(name, value, **labels):
    """A series of each rank, as two machines with one storage tell it."""
    rest = "".join(f', {key}="{text}"' for key, text in labels.items())
    return {
        f'{name}{{instance="{node}", run="demo-gpt", rank="{rank}", job="j"{rest}}}': value for node, rank in TOLD_BY
    }


SHARED = {
    **told_twice("training_step", "0+30x40"),
    **told_twice("training_steps_total", "0+30x40"),
    **told_twice("training_last_step_timestamp_seconds", "0+30x40"),
    **told_twice("training_throughput_samples_per_second", "100x40"),
    **told_twice("training_tokens_per_second", "9000x40"),
    **told_twice("training_nonfinite_total", "1x40", field="loss"),
    **told_twice("training_phase_seconds_total", "0+6x40", phase="forward"),
    **told_twice("training_phase_seconds_total", "0+24x40", phase="backward"),
    **told_twice("training_gpu_info", "1x40", gpu="3", uuid="GPU-3"),
    'training_run_status{instance="a", run="demo-gpt", status="running", job="j"}': "1x40",
    'training_run_status{instance="b", run="demo-gpt", status="running", job="j"}': "1x40",
}
with_rules_and_without = pytest.mark.parametrize("rules", [RULES, ()], ids=["rules", "no-rules"])


@with_rules_and_without
def test_where_storage_is_shared_each_rank_counts_once(tmp_path, rules):
    shown = {"Samples per second": 200, "Tokens per second": 18000, "NaN or infinite": 2}
    answers = [
        (asked("trainvitals-run", panel, __rate_interval="2m"), "10m", [('{run="demo-gpt"}', value)])
        for panel, value in shown.items()
    ]
    proves(tmp_path, SHARED, *answers, rules=rules)


@with_rules_and_without
def test_where_storage_is_shared_a_rank_has_one_place(tmp_path, rules):
    places = [f'{{run="demo-gpt", rank="{rank}", instance="{node}", gpu="3"}}' for rank, node in ((0, "a"), (1, "b"))]
    ratios = asked("trainvitals-ranks", "Ranks", __rate_interval="2m")
    proves(tmp_path, SHARED, (ratios, "10m", [(place, 1) for place in places]), rules=rules)


def test_a_rank_that_only_rank_0s_machine_tells_is_shown_there(tmp_path):
    alone = {name: values for name, values in SHARED.items() if 'instance="b"' not in name}
    count = f"count({asked('trainvitals-ranks', 'Ranks', __rate_interval='2m')})"
    proves(tmp_path, alone, (count, "10m", [("{}", 2)]))


def ranks_of(*forward):
    """Steps of 15 s, of which each rank spends so much before it waits."""
    series = {'training_run_status{instance="a", run="demo-gpt", status="running", job="j"}': "1x80"}
    for rank, own in enumerate(forward):
        it = f'instance="a", run="demo-gpt", rank="{rank}", job="j"'
        series |= {f'training_phase_seconds_total{{{it}, phase="forward"}}': f"0+{own}x80",
                   f'training_phase_seconds_total{{{it}, phase="backward"}}': f"0+{30 - own}x80",
                   f"training_steps_total{{{it}}}": "0+2x80", f"training_step{{{it}}}": "0+2x80",
                   f"training_last_step_timestamp_seconds{{{it}}}": "0+30x80",
                   f'training_gpu_info{{{it}, gpu="{rank}", uuid="GPU-{rank}"}}': "1x80"}  # fmt: skip
    return series


@with_rules_and_without
@pytest.mark.parametrize(("forward", "slowest"), [((10, 13), 1.3), ((10, 12, 15), 1.25)])
def test_the_slowest_rank_is_as_slow_without_rules_as_the_alert_says(tmp_path, forward, slowest, rules):
    """Of two ranks the faster one is what the other is compared with."""
    expr = f"round(max({asked('trainvitals-ranks', 'Slowest rank', __rate_interval='2m')}), 0.01)"
    proves(tmp_path, ranks_of(*forward), (expr, "15m", [("{}", slowest)]), rules=rules)


def test_a_node_with_more_gpus_than_expected_hides_no_missing_ones(tmp_path):
    series = {
        'gpu_expected_count{instance="a"}': "8x20", 'gpu_count{instance="a"}': "6x20",
        'gpu_expected_count{instance="b"}': "4x20", 'gpu_count{instance="b"}': "8x20",
    }  # fmt: skip
    missing = asked("trainvitals-fleet", "GPUs missing")
    well = {name: values for name, values in series.items() if '"b"' in name}
    proves(tmp_path, series, (missing, "5m", [("{}", 2)]), rules=RULES)
    proves(tmp_path, well, (missing, "5m", [("{}", 0)]), rules=RULES)
