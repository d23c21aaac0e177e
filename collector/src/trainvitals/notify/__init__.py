"""From findings to people: Alertmanager, e-mail, Slack, a webhook, and by apprise everything else.

plan(settings["notify"], environ)   ->   Plan: which channels, quiet hours, the dead man's switch
Notifier(plan.channels, folder, host, …)   ->   takes changes, and waits for nobody
"""

from trainvitals.notify.channel import Channel
from trainvitals.notify.notifier import Notifier
from trainvitals.notify.settings import Plan, channels, plan

__all__ = ["Channel", "Notifier", "Plan", "channels", "plan"]
