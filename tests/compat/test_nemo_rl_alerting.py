import json
import logging
import math
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

import trainvitals as tv
from tests.compat.smtp_server import MailServer, make_certificate
from tests.compat.test_gpu_training import bare
from tests.integrations.journal import told
from trainvitals.compat import mail
from trainvitals.compat.nemo_rl import PerformanceAlerting

PASSWORD = "correct horse battery"
ALERT = {"type": "loss_increase", "message": "the loss is 2.6", "severity": "warning"}


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("mail"))


@pytest.fixture
def server(context, request):
    server = MailServer(context, **getattr(request, "param", {}))
    yield server
    server.close()


def config_of(server, **more):
    return {"smtp_server": "127.0.0.1", "smtp_port": server.port, "username": "me", "password": PASSWORD,
            "from": "me@example.org", "to": "you@example.org", **more}  # fmt: skip


@pytest.mark.parametrize(
    ("call", "parameters"),
    [(PerformanceAlerting, "(email_config)"),
     (PerformanceAlerting.check_alerts, "(self, current_metrics, baseline_metrics)"),
     (PerformanceAlerting.send_alert, "(self, alert)")],
)  # fmt: skip
def test_signatures_are_those_of_the_other_tool(call, parameters):
    assert bare(call) == parameters


def gpu(allocated, **more):
    return {"gpu_memory": {"gpu_0": {"memory_allocated": allocated, **more}}}


@pytest.mark.parametrize(
    ("now", "before", "types"),
    [
        ({"loss": 2.3}, {"loss": 2.0}, ["loss_increase"]),
        ({"loss": 2.19}, {"loss": 2.0}, []),
        ({"loss": -1.0}, {"loss": -2.0}, ["loss_increase"]),
        ({"loss": -2.0}, {"loss": -2.0}, []),
        ({"loss": math.nan}, {}, ["loss_increase"]),
        ({"loss": 3.0}, {"loss": 0.0}, []),
        ({"loss": 3.0}, {"loss": math.nan}, []),
        (gpu(950, memory_reserved=1000), {}, ["gpu_memory"]),
        (gpu(800, memory_reserved=1000), {}, []),
        (gpu(950, memory_reserved=1000, memory_total=4000), {}, []),
        (gpu(0, memory_reserved=0), {}, []),
        ({"gpu_metrics": {"gpu_0": {"memory_allocated": 950, "memory_reserved": 1000}}}, {}, ["gpu_memory"]),
        ({"gpu_memory": 0.95}, {}, ["gpu_memory"]),
        ({"cpu_percent": 96.0}, {}, ["cpu_usage"]),
        ({"cpu_percent": 94.0}, {}, []),
        ({"cpu_usage": 0.97}, {}, ["cpu_usage"]),
        ({"training_speed": 4.0}, {"training_speed": 10.0}, ["training_speed"]),
        ({"training_speed": 6.0}, {"training_speed": 10.0}, []),
        ({"samples_per_second": 4.0}, {"samples_per_second": 10.0}, ["training_speed"]),
        ({"loss": 9.0, "cpu_percent": 99, "training_speed": 1}, {"loss": 1.0, "training_speed": 9},
         ["loss_increase", "cpu_usage", "training_speed"]),
        ({}, {}, []), ({"loss": 3.0}, None, []), (None, None, []),
        ({"loss": "high", "gpu_memory": [1], "cpu_percent": {}, "training_speed": None}, {"training_speed": "x"}, []),
    ],
)  # fmt: skip
def test_what_is_worse_than_it_was_is_an_alert_and_what_is_not_known_is_none(now, before, types, caplog):
    found = PerformanceAlerting({}).check_alerts(now, before)
    assert [alert["type"] for alert in found] == types
    assert all(alert["message"] and alert["severity"] in ("warning", "critical") for alert in found)
    assert not caplog.records


def test_its_thresholds_can_be_set():
    alerting = PerformanceAlerting({})
    assert alerting.alert_thresholds == {"loss_increase": 0.1, "gpu_memory": 0.9, "cpu_usage": 0.95,
                                         "training_speed": 0.5}  # fmt: skip
    alerting.alert_thresholds["cpu_usage"] = 0.5
    assert alerting.check_alerts({"cpu_percent": 60}, {})


@pytest.mark.parametrize("server", [{"starttls": True}, {"starttls": False}], indirect=True)
def test_an_alert_is_sent_over_tls_with_a_login(server):
    alerting = PerformanceAlerting(config_of(server, tls="starttls" if server.starttls else "tls"))
    assert alerting.send_alert(ALERT) is True
    assert server.logins == [("me", PASSWORD, True)]
    (text,) = server.mails
    for line in ("Subject: NeMo RL alert: loss_increase", "From: me@example.org", "To: you@example.org",
                 "the loss is 2.6", "severity: warning"):  # fmt: skip
        assert line in text.splitlines()


def test_a_password_may_lie_in_a_file(server, tmp_path):
    (tmp_path / "password").write_text(PASSWORD + "\n")
    alerting = PerformanceAlerting(config_of(server, password="", password_file=str(tmp_path / "password")))
    assert alerting.send_alert(ALERT)
    assert server.logins[0][1] == PASSWORD


def test_an_alert_writes_no_headers_of_its_own(server):
    alerting = PerformanceAlerting(config_of(server))
    assert alerting.send_alert({"type": "x\r\nBcc: everybody@example.org", "message": "é\nBcc: a"})
    head = server.mails[0].partition("\n\n")[0]
    assert "Subject: NeMo RL alert: x Bcc: everybody@example.org" in head
    assert "\nBcc:" not in head


@pytest.mark.parametrize("server", [{"fault": "echoes"}], indirect=True)
def test_a_password_is_in_no_log_even_where_the_server_repeats_it(server, caplog):
    alerting = PerformanceAlerting(config_of(server))
    with caplog.at_level(logging.DEBUG):
        assert alerting.send_alert(ALERT) is False
        assert alerting.send_alert(ALERT) is False
    (record,) = caplog.records
    assert "was not sent by e-mail" in record.message and "535" in record.message
    assert PASSWORD not in record.message and mail._encoded(f"\0me\0{PASSWORD}") not in record.message


@pytest.mark.parametrize("server", [{"fault": "hangs"}, {"fault": "closes"}], indirect=True)
def test_a_server_that_fails_raises_nothing_and_keeps_nobody_waiting_long(server, caplog, monkeypatch):
    monkeypatch.setattr(mail, "WAIT_SECONDS", 0.5)
    began = time.monotonic()
    alerting = PerformanceAlerting(config_of(server))
    assert alerting.send_alert(ALERT) is False
    assert alerting.send_alert(ALERT) is False
    assert time.monotonic() - began < 20
    assert "and training goes on" in caplog.records[0].message


def test_a_password_does_not_leave_this_machine_without_tls(monkeypatch, server, caplog):
    monkeypatch.setattr(mail, "_is_here", lambda host: False)
    assert PerformanceAlerting(config_of(server, tls="none")).send_alert(ALERT) is False
    assert "give starttls or tls" in caplog.records[0].message
    assert not server.logins
    caplog.clear()
    assert PerformanceAlerting(config_of(server)).send_alert(ALERT) is False
    assert "CERTIFICATE_VERIFY_FAILED" in caplog.records[0].message
    assert not server.logins


@pytest.mark.parametrize("config", [{"smtp_server": "x"}, {"to": "x"}, {"smtp_server": "x", "to": []}, "mail", 3,
                                    {"smtp_server": "x", "smtp_port": "y", "to": "z"},
                                    {"smtp_server": "x", "to": "z", "tls": "yes"}])  # fmt: skip
def test_a_configuration_that_cannot_be_used_is_one_warning(config, caplog):
    alerting = PerformanceAlerting(config)
    assert alerting.send_alert(ALERT) is False
    (record,) = caplog.records
    assert "no e-mail is sent" in record.message


@pytest.mark.parametrize("alert", [None, "text", {}, {"type": None, "message": 3}, {"severity": []}])
def test_no_alert_is_too_odd_to_survive(alert, server):
    PerformanceAlerting(config_of(server)).send_alert(alert)


def test_an_alert_is_an_event_of_the_run_under_way(journal):
    run = tv.start("x")
    PerformanceAlerting({}).send_alert(ALERT)
    run.finish()
    (event,) = told(journal).events_of("alert")
    assert (event["name"], event["severity"], event["message"]) == ("loss_increase", "ticket", "the loss is 2.6")


def test_slack_is_told_where_it_is_wanted_and_its_address_is_a_secret(caplog):
    got = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200 if len(got) == 1 else 500)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    alerting = PerformanceAlerting(None)
    alerting.slack_webhook_url = f"http://127.0.0.1:{server.server_address[1]}/services/T0/B0/hidden-token"
    assert alerting.send_alert(ALERT) is True
    assert got == [{"text": "*loss_increase* (warning): the loss is 2.6"}]
    assert alerting.send_alert(ALERT) is False
    assert "500" in caplog.records[0].message and "hidden-token" not in caplog.records[0].message
    server.shutdown()
    server.server_close()


def test_switched_off_it_sends_nothing(server, monkeypatch):
    monkeypatch.setenv("TRAINVITALS", "off")
    alerting = PerformanceAlerting(config_of(server))
    assert alerting.check_alerts({"cpu_percent": 99}, {})
    assert alerting.send_alert(ALERT) is False
    assert not server.mails
