"""A driver that works is kept, and containers get its GPUs by CDI; without a GPU nothing happens."""

from tests.ansible.support import Told, applied
from tests.rehearsal.machines import Site
from tests.stack.support import wait_for

HOLD = "/etc/apt/apt.conf.d/52trainvitals"
INSIDE = "docker run --rm --device nvidia.com/gpu=all tiny sh -c 'busybox ls /usr/lib/x86_64-linux-gnu && busybox env'"


def test_a_driver_and_a_toolkit_that_work_are_kept(site: Site, converged: Told) -> None:
    assert "gpu1: driver 580.95.05 is kept" in converged.text
    assert "no packages found" in site.run("gpu1", "dpkg-query -W 'nvidia-*'", check=False)


def test_nothing_happens_where_there_is_no_gpu(site: Site, converged: Told) -> None:
    assert "mon: no NVIDIA GPU, nothing to do" in converged.text
    assert site.ended("mon", "ls /etc/cdi /etc/systemd/system/trainvitals-cdi.service")[0] != 0


def test_a_container_gets_the_gpus(serving: Site) -> None:
    told = serving.run("gpu1", INSIDE)
    assert "libnvidia-ml.so.1" in told
    assert "FAKENVML_SCENARIO=/etc/fakenvml/scenario" in told


def test_the_specification_is_made_anew_with_another_driver(serving: Site) -> None:
    assert "nvidia.com/gpu=2" not in serving.run("gpu1", "nvidia-ctk cdi list && cat /etc/cdi/nvidia.yaml")
    serving.scenarios["gpu1"].add("gpus 3")
    # As an upgrade does.
    serving.run("gpu1", "cp -a /usr/bin/nvidia-smi /usr/bin/new && mv /usr/bin/new /usr/bin/nvidia-smi")
    wait_for(lambda: '"name": "2"' in serving.run("gpu1", "cat /etc/cdi/nvidia.yaml"), 30)
    serving.scenarios["gpu1"].add("gpus 2")
    serving.run("gpu1", "systemctl start trainvitals-cdi.service")
    assert '"name": "2"' not in serving.run("gpu1", "cat /etc/cdi/nvidia.yaml")


def test_the_specification_is_there_after_a_reboot(serving: Site) -> None:
    serving.run("gpu1", "rm /etc/cdi/nvidia.yaml")
    serving.reboot("gpu1")
    wait_for(lambda: serving.ended("gpu1", "test -s /etc/cdi/nvidia.yaml")[0] == 0, 30)
    assert "libnvidia-ml.so.1" in serving.run("gpu1", INSIDE)


def test_a_container_with_gpus_comes_back_after_a_reboot(serving: Site) -> None:
    """Though there is no specification at first: the engine waits for it, and tries once."""
    command = "docker run --detach --restart always --device nvidia.com/gpu=all --name needs tiny busybox sleep 1000000"
    serving.run("gpu1", f"{command} && rm /etc/cdi/nvidia.yaml")
    serving.reboot("gpu1")
    wait_for(lambda: "true" in serving.run("gpu1", "docker inspect --format '{{.State.Running}}' needs"), 30)
    serving.run("gpu1", "docker rm --force needs")


def test_what_the_roles_wrote_can_be_removed(serving: Site) -> None:
    applied(serving, "base", "nvidia", limit="gpu1", entry="remove")
    left = (
        "ls -d /etc/trainvitals /etc/cdi/* /etc/systemd/system/trainvitals* /etc/*/*trainvitals* /etc/*/*/*trainvitals*"
    )
    assert serving.run("gpu1", f"{left} 2>/dev/null", check=False).split() == [HOLD]
    held = serving.run("gpu1", f"cat {HOLD}")
    assert '"^nvidia-"' in held
    assert "Periodic" not in held
    assert "trainvitals" not in serving.run("gpu1", "nft list tables")
    assert applied(serving, "base", "nvidia", limit="gpu1", entry="remove").changed() == {"gpu1": 0}
