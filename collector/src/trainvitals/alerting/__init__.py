"""Alerts on their way to people: Alertmanager's configuration, what it sends to the collector, and a trial of both."""
