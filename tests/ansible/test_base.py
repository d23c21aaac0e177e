"""What every machine gets, and that it can be taken away again."""

import pytest

from tests.ansible.conftest import wanted
from tests.ansible.support import Told, applied, state, told_by
from tests.rehearsal.machines import Site
from tests.stack.support import wait_for

PORTS = (9100, 8081, 9200, 8082)


def reached(site: Site, host: str, port: int, to: str = "gpu1") -> bool:
    """Refused or silent is not reached; that nothing is found there is."""
    address = to if to[0].isdigit() else site.addresses[to]
    script = (
        f"import socket; s = socket.create_connection(('{address}', {port}), 5);"
        " s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n'); s.recv(1) or exit(1)"
    )
    return site.ended(host, f'python3 -c "{script}"')[0] == 0


def firewall_holds(site: Site) -> None:
    """9100 and 8081 are for mon; nobody has said anything of 9200 and 8082."""
    wait_for(lambda: all(reached(site, "mon", port) for port in PORTS), 60)
    found = {port: reached(site, "other", port) for port in PORTS}
    assert found == {9100: False, 8081: False, 9200: True, 8082: True}


def test_looking_first_changes_nothing(site: Site, looked_at: Told) -> None:
    assert "apt.conf.d/52trainvitals" not in "\n".join(state(site, "mon"))
    assert all(count > 0 for count in looked_at.changed().values())


def test_a_second_run_changes_nothing(site: Site, converged: Told) -> None:
    assert all(count > 0 for count in converged.changed().values())
    again = applied(site, "base", "docker", "nvidia", limit="gpu1,mon", **wanted(site))
    assert again.changed() == {"gpu1": 0, "mon": 0}, again.text


def test_upgrades_leave_the_driver_alone_where_there_is_one(site: Site, converged: Told) -> None:
    asked = "apt-config dump | grep Unattended-Upgrade::Package-Blacklist::"
    assert '"^nvidia-"' in site.run("gpu1", asked)
    assert site.ended("mon", asked)[0] == 1
    site.run("gpu1", "unattended-upgrade --dry-run --debug 2>&1 | grep --max-count 1 -F '^libnvidia-'", seconds=300)


def test_kernel_parameters_are_never_lowered(site: Site, converged: Told) -> None:
    names = {"fs.inotify.max_user_instances": 1024, "fs.inotify.max_user_watches": 524288}
    for name, least in names.items():
        assert int(site.run("mon", f"sysctl -n {name}")) >= least
    before = int(site.run("mon", "sysctl -n fs.inotify.max_user_instances"))
    applied(site, "base", limit="other", base_sysctl={"fs.inotify.max_user_instances": 1})
    assert int(site.run("other", "sysctl -n fs.inotify.max_user_instances")) == before


def test_time_is_kept_where_it_is_asked_for(site: Site) -> None:
    """In a container it is the host's; asked for, chrony runs, though it may set nothing here."""
    folder = "/etc/systemd/system/chrony.service.d"
    site.run("other", f"mkdir {folder} && printf '[Unit]\\nConditionCapability=\\n' >{folder}/anyway.conf")
    site.run("other", "echo 'DAEMON_OPTS=-x' >/etc/default/chrony")
    applied(site, "base", limit="other", base_time_sync="chrony")
    assert "active" in site.run("other", "systemctl is-active chrony")
    assert applied(site, "base", limit="other", base_time_sync="chrony").changed() == {"other": 0}
    assert applied(site, "base", limit="other").changed() == {"other": 0}


def test_the_firewall_holds_for_what_docker_published_too(serving: Site) -> None:
    firewall_holds(serving)
    for port in (9100, 8081):
        assert reached(serving, "gpu1", port, "127.0.0.1")
        assert reached(serving, "gpu1", port)


def test_the_firewall_holds_after_docker_restarted(serving: Site) -> None:
    serving.run("gpu1", "systemctl restart docker")
    firewall_holds(serving)


@pytest.mark.parametrize("verb", ["start", "reload", "restart", "stop"])
def test_the_firewall_holds_after_the_distribution_s_took_all_rules_away(serving: Site, verb: str) -> None:
    """Docker's rules go by it too, so that only what listens on the machine itself is asked."""
    serving.run("gpu1", "systemctl stop nftables" if verb == "start" else "systemctl start nftables")
    serving.run("gpu1", "nft add table inet others")
    serving.run("gpu1", f"systemctl {verb} nftables")
    assert "others" not in serving.run("gpu1", "nft list tables")
    assert (reached(serving, "mon", 8081), reached(serving, "other", 8081)) == (True, False)
    assert reached(serving, "other", 8082)
    serving.run("gpu1", "systemctl stop nftables; systemctl reset-failed docker; systemctl restart docker")


def test_with_no_sources_the_machine_itself_alone_comes_in(serving: Site) -> None:
    applied(serving, "base", limit="gpu1", base_firewall_ports=[9100, 8081], base_firewall_sources=[])
    assert [reached(serving, "mon", port) for port in (9100, 8081)] == [False, False]
    assert reached(serving, "gpu1", 8081)
    sources = [serving.addresses["mon"]]
    applied(serving, "base", limit="gpu1", base_firewall_ports=[9100, 8081], base_firewall_sources=sources)
    firewall_holds(serving)


def test_the_firewall_holds_after_a_reboot(serving: Site) -> None:
    serving.reboot("gpu1")
    firewall_holds(serving)


def test_with_default_deny_ssh_alone_stays_open(serving: Site) -> None:
    sources = {"base_firewall_sources": [serving.addresses["mon"]], "base_firewall_ports": [9100, 8081]}
    applied(serving, "base", limit="gpu1", base_firewall_default_deny=True, base_firewall_open_ports=[9200], **sources)
    found = {port: (reached(serving, "mon", port), reached(serving, "other", port)) for port in PORTS}
    assert found == {9100: (True, False), 8081: (True, False), 9200: (True, True), 8082: (False, False)}
    # What goes out from a container comes back.
    serving.run("gpu1", f"docker exec at9200 busybox nc -w 5 {serving.addresses['mon']} 22 </dev/null | grep -q SSH")
    applied(serving, "base", limit="gpu1", **sources)
    firewall_holds(serving)


def test_an_address_that_is_none_is_named(site: Site, converged: Told) -> None:
    told = told_by(site, "base", limit="other", base_firewall_ports=[9100], base_firewall_sources=["mon"])
    assert "base_firewall_sources: 'mon' is no address" in " ".join(told.text.split())
    assert told.recaps["other"].failed == 1
