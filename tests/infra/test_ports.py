"""What others may reach on each machine: the ports that Docker publishes, and the firewall before them."""

from tests.infra.machine import Machine, read

LOOPBACK = {"127.0.0.1", "::1"}
# For the world, in the profile public.
PUBLIC = {"caddy"}
# What curl says where nobody answers: refused, or silent.
SHUT = (7, 28)


def for_others(machine: Machine) -> list[int]:
    """The ports of exporters on a machine that Prometheus is not on."""
    bind = machine.knobs["TRAINVITALS_BIND"].strip("[]")
    return sorted({port for _, address, port in machine.published if address == bind} if bind not in LOOPBACK else ())


def closed(machine: Machine) -> list[int]:
    """Those that the firewall is to close, by the inventory's word or by itself."""
    told = machine.told.get("base_firewall_ports")
    return sorted(map(int, told)) if isinstance(told, list) else for_others(machine)


def test_ports_are_open_only_where_they_should_be(machine: Machine) -> None:
    bind = machine.knobs["TRAINVITALS_BIND"].strip("[]")
    machine.demand(
        "server" not in machine.profiles or bind == "127.0.0.1",
        f"TRAINVITALS_BIND is {bind} beside Prometheus, which asks for no password",
        "deploy again",
    )
    machine.demand(machine.published, "Docker publishes no port of the stack", "docker ps, then deploy again")
    services = {port: service for service, _, port in machine.published}
    listening = {(services[port], address, port) for address, port in machine.listening if port in services}
    for service, address, port in sorted(machine.published | listening):
        machine.demand(
            service in PUBLIC or address in {*LOOPBACK, bind},
            f"{service} listens on {address}:{port}, others may reach it",
            f"look at TRAINVITALS_BIND in {machine.home}/compose/.env and deploy again",
        )


def test_what_others_may_reach_wants_tls_and_a_password(machine: Machine) -> None:
    bind = machine.knobs["TRAINVITALS_BIND"]
    for port in for_others(machine):
        ask = "curl --silent --max-time 20 --output /dev/null --write-out '%{http_code}'"
        plain = machine.run(f"{ask} http://{bind}:{port}/metrics")[1]
        unnamed = machine.run(f"{ask} --insecure https://{bind}:{port}/metrics")[1]
        machine.demand(
            plain != "200", f"{bind}:{port} answers without TLS", "look at EXPORTERS_WEB_CONFIG, deploy again"
        )
        machine.demand(
            unnamed == "401",
            f"https://{bind}:{port}/metrics answers {unnamed} without a password, not 401",
            "look at web-….yml in compose/web, deploy again",
        )


def test_the_firewall_closes_what_prometheus_alone_may_ask(machine: Machine) -> None:
    wanted = closed(machine)
    if not wanted:
        return
    unit = machine.host.service("trainvitals-firewall")
    machine.demand(
        unit.is_running and unit.is_enabled,
        "the firewall is not loaded now and at boot",
        "systemctl enable --now trainvitals-firewall, or deploy again",
        unit="trainvitals-firewall",
    )
    told = machine.run("/usr/sbin/nft --json list set inet trainvitals ports")[1]
    open_to_all = set(wanted) - set(elements(told))
    machine.demand(
        not open_to_all,
        f"the kernel's rules leave {sorted(open_to_all)} open to everybody",
        "systemctl restart trainvitals-firewall, or deploy again",
        unit="trainvitals-firewall",
    )


def elements(told: str) -> list[int]:
    """Of the set that nft tells of; none where it tells of none."""
    return [port for one in read(told).get("nftables", ()) for port in one.get("set", {}).get("elem", ())]


def test_other_machines_do_not_get_through(machine: Machine, neighbour: Machine | None) -> None:
    """Only where the inventory lets nobody else in, and another machine is looked at too."""
    if neighbour is None or "base_firewall_sources" in machine.told:
        return
    for port in closed(machine):
        url = f"https://{machine.knobs['TRAINVITALS_BIND']}:{port}/metrics"
        status = neighbour.run(f"curl --silent --insecure --max-time 3 --output /dev/null {url}")[0]
        machine.demand(
            status in SHUT,
            f"{neighbour.name} gets through to {url}, which is for Prometheus alone",
            "nft list table inet trainvitals; systemctl restart trainvitals-firewall, or deploy again",
            unit="trainvitals-firewall",
        )
