"""What panels say when somebody is silent, and whom they choose: by promtool, which evaluates what Grafana would ask.

asked("trainvitals-gpu", "Xid errors") after its agent died: nothing, where a word once said that no Xid was seen
"""

import shutil

import pytest

from tests.grafana.support import asked, board, proves

pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
# Every half minute for ten minutes, and then no more.
LIVES = "10m"
DEAD = "40m"
GPU_0 = '{instance="node-a", job="j", gpu="0", uuid="GPU-a"}'
GPU_1 = '{instance="node-a", job="j", gpu="1", uuid="GPU-b"}'


@pytest.mark.parametrize("name", ["sft+dpo (v1.0)", "it's", 'the "best"', r"a\b", "x|y.*[z]{2}$"])
def test_a_run_of_any_name_is_shown_and_no_other(tmp_path, name):
    label = name.replace("\\", r"\\").replace('"', r"\"")
    series = {
        f'training_run_status{{run="{label}", status="running", job="j"}}': "1x20",
        'training_run_status{run="sft-dpo v1.0", status="finished", job="j"}': "1x20",
        f'training_step{{run="{label}", rank="0", job="j"}}': "7x20",
        f'training_last_step_timestamp_seconds{{run="{label}", rank="0", job="j"}}': "540x20",
    }
    status, apart = asked("trainvitals-run", "Status", run=name), asked("trainvitals-ranks", "Apart in steps", run=name)
    proves(tmp_path, series, (status, LIVES, [(f'{{run="{label}"}}', 1)]), (apart, LIVES, [("{}", 0)]))


def test_a_gpu_without_an_xid_says_so_while_its_agent_lives(tmp_path):
    series = {
        f"gpu_temperature_celsius{GPU_0}": "60x20",
        f"gpu_temperature_celsius{GPU_1}": "60x20",
        'gpu_xid_last_timestamp_seconds{instance="node-a", job="j", gpu="1", uuid="GPU-b", xid="79"}': "300x20",
    }
    xids = asked("trainvitals-gpu", "Xid errors", instance="node-a")
    # The clock of promtool begins at the epoch.
    told = [('{gpu="0", uuid="GPU-a", xid="none"}', 600), ('{gpu="1", uuid="GPU-b", xid="79"}', 300)]
    proves(tmp_path, series, (xids, LIVES, told), (xids, DEAD, []))


def test_a_gpu_that_dcgm_alone_reads_says_so_too(tmp_path):
    series = {
        'DCGM_FI_DEV_XID_ERRORS{instance="node-a", gpu="0", UUID="GPU-a"}': "0x20",
        # Without our rules nobody knows when it came, but that it came.
        'DCGM_FI_DEV_XID_ERRORS{instance="node-a", gpu="1", UUID="GPU-b"}': "79x20",
    }
    xids = asked("trainvitals-gpu", "Xid errors", instance="node-a")
    proves(tmp_path, series, (xids, LIVES, [('{gpu="0", uuid="GPU-a", xid="none"}', 600)]), (xids, DEAD, []))


def test_where_no_xid_was_seen_there_is_a_word_for_its_age():
    table = next(panel for panel in board("trainvitals-gpu")["panels"] if panel["title"] == "Xid errors")
    (ages,) = [each for each in table["fieldConfig"]["overrides"] if each["matcher"]["options"] == "Seen, ago"]
    (mapping,) = next(each["value"] for each in ages["properties"] if each["id"] == "mappings")
    assert (mapping["options"]["from"], mapping["options"]["result"]["text"]) == (1e9, "never")


COUNTERS = {
    "Rules failing": 'prometheus_rule_evaluation_failures_total{instance="prometheus"}',
    "Notifications failing": 'alertmanager_notifications_failed_total{instance="alertmanager"}',
    "Records lost": 'trainvitals_journal_records_dropped_total{instance="node-a", job="j"}',
}


@pytest.mark.parametrize("panel", COUNTERS)
def test_nothing_failed_is_told_only_while_the_one_who_counts_lives(tmp_path, panel):
    expr = asked("trainvitals-monitoring", panel)
    proves(tmp_path, {COUNTERS[panel]: "0x20"}, (expr, LIVES, [("{}", 0)]), (expr, DEAD, []))


@pytest.mark.parametrize("panel", COUNTERS)
def test_what_failed_is_told_after_the_death_of_the_one_who_counted(tmp_path, panel):
    expr = asked("trainvitals-monitoring", panel)
    proves(tmp_path, {COUNTERS[panel]: "0x9 6x10"}, (f"({expr}) > bool 5", DEAD, [("{}", 1)]))


def test_no_run_goes_on_is_told_only_by_an_agent_that_lives(tmp_path):
    series = {'trainvitals_build_info{job="j"}': "1x20", 'up{job="j"}': "1x20 0x80"}
    running = asked("trainvitals-fleet", "Running")
    proves(tmp_path, series, (running, LIVES, [("{}", 0)]), (running, DEAD, []))


def test_a_gpu_that_tells_no_reasons_is_not_said_to_run_free(tmp_path):
    slowed = asked("trainvitals-gpu", "Slowed by hardware now", instance="node-a")
    reasons = 'gpu_throttle_active{instance="node-a", job="j", gpu="0", uuid="GPU-a", reason="hw_slowdown"}'
    proves(tmp_path, {f"gpu_temperature_celsius{GPU_0}": "60x20"}, (slowed, LIVES, []))
    proves(tmp_path, {reasons: "0x20"}, (slowed, LIVES, [("{}", 0)]))
    proves(tmp_path, {reasons: "1x20"}, (slowed, LIVES, [("{}", 1)]))


def test_fleet_counts_the_pages_of_the_chosen_node_and_those_of_none(tmp_path):
    firing = 'alertstate="firing", severity="page"'
    series = {
        f'ALERTS{{alertname="GpuMissing", instance="node-a", {firing}}}': "1x20",
        f'ALERTS{{alertname="GpuXidFatal", instance="node-b", {firing}}}': "1x20",
        f'ALERTS{{alertname="AgentsDownMany", {firing}}}': "1x20",
        'ALERTS{alertname="Watchdog", alertstate="firing", severity="none"}': "1x20",
    }
    one, all_ = asked("trainvitals-fleet", "Pages", instance="node-b"), asked("trainvitals-fleet", "Pages")
    proves(tmp_path, series, (one, LIVES, [("{}", 2)]), (all_, LIVES, [("{}", 3)]), (one, DEAD, []))


def test_fleet_counts_the_idle_gpus_and_the_cost_of_the_chosen_nodes(tmp_path):
    series = {
        f"gpu:utilization:ratio{GPU_0}": "0x20",
        'gpu:utilization:ratio{instance="node-b", gpu="0", uuid="GPU-c"}': "0.9x20",
        'gpu:utilization:ratio{instance="node-c", gpu="0", uuid="GPU-d"}': "0.01x20",
        'node:price:dollars_per_hour{instance="node-a"}': "12x20",
        'node:price:dollars_per_hour{instance="node-b"}': "30x20",
    }
    answers = [
        (asked("trainvitals-fleet", "Idle GPUs", instance=chosen), LIVES, [("{}", count)])
        for chosen, count in (("node-a", 1), ("node-b", 0), ("(node-a|node-b)", 1), (".*", 2))
    ]
    cost = asked("trainvitals-fleet", "Cost per hour", instance="node-b")
    proves(tmp_path, series, *answers, (cost, LIVES, [("{}", 30)]))
