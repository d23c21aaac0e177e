"""What disks and networks carry, from counters that rise, begin anew, come and go."""

from trainvitals.agent.host_rates import HostRates
from trainvitals.model import Reading


def disk(name: str, when: float, read: float, written: float = 0.0, busy: float = 0.0) -> Reading:
    values = {"read_bytes_total": read, "written_bytes_total": written, "busy_seconds_total": busy}
    return Reading("disk", (("device", name),), values, when)


def network(name: str, when: float, received: float, sent: float = 0.0) -> Reading:
    return Reading(
        "network", (("interface", name),), {"receive_bytes_total": received, "transmit_bytes_total": sent}, when
    )


def test_the_first_reading_tells_no_rate() -> None:
    assert HostRates().update([disk("sda", 1, 5e12), network("eth0", 1, 7e12)]) == {}


def test_devices_are_added_up_and_the_busiest_one_counts() -> None:
    rates = HostRates()
    rates.update([disk("sda", 0, 0), disk("nvme0n1", 0, 0), network("eth0", 0, 0), network("ib0", 0, 0)])
    told = rates.update([disk("sda", 10, 1000, 500, 1), disk("nvme0n1", 10, 3000, 0, 9),
                         network("eth0", 10, 100, 10), network("ib0", 10, 900, 20)])  # fmt: skip
    assert told == {"disk_read_bytes_per_second": 400, "disk_written_bytes_per_second": 50, "disk_busy_ratio": 0.9,
                    "network_receive_bytes_per_second": 100, "network_transmit_bytes_per_second": 3}  # fmt: skip


def test_between_two_readings_the_last_rate_holds() -> None:
    rates = HostRates()
    rates.update([network("eth0", 0, 0)])
    told = rates.update([network("eth0", 10, 100)])
    assert rates.update([network("eth0", 10, 100)]) == told != {}


def test_a_device_that_comes_is_no_flood_and_one_that_goes_no_drought() -> None:
    rates = HostRates()
    rates.update([network("eth0", 0, 0)])
    told = rates.update([network("eth0", 10, 100), network("usb0", 10, 1e12)])
    assert told["network_receive_bytes_per_second"] == 10
    assert rates.update([network("usb0", 20, 1e12)]) == {"network_receive_bytes_per_second": 0.0,
                                                         "network_transmit_bytes_per_second": 0.0}  # fmt: skip
    assert rates.update([]) == {}


def test_a_counter_that_begins_anew_is_unknown_once() -> None:
    rates = HostRates()
    rates.update([network("eth0", 0, 1e9)])
    assert rates.update([network("eth0", 10, 500)]) == {"network_transmit_bytes_per_second": 0.0}
    assert rates.update([network("eth0", 20, 1500)])["network_receive_bytes_per_second"] == 100
