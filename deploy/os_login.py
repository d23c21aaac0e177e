"""The user that OS Login gives a person on Google's machines, where it is another than the mail address tells.

named(CLOUDS["gcp"], '"ansible_user": "ada_example_com"')  ->  '"ansible_user": "ext_ada_example_com"'

People from outside the organisation have ext_ before it; an administrator may have chosen any other.
"""

import re

from deploy.cloud import Cloud
from deploy.run import ask

SECONDS = 60
LONGEST = 32
_PROFILE = ("gcloud", "compute", "os-login", "describe-profile", "--format=value(posixAccounts[0].username)", "--quiet")


def named(cloud: Cloud, inventory: str) -> str:
    """As it was where gcloud does not tell, or is logged in as somebody else than Terraform."""
    if not cloud.account:
        return inventory
    mail = _asked(cloud, cloud.account)
    by_mail = re.sub("[^a-z0-9]", "_", mail.lower())[:LONGEST]
    told = f'"ansible_user": "{by_mail}"'
    user = _asked(cloud, _PROFILE) if mail and told in inventory else ""
    return inventory.replace(told, f'"ansible_user": "{user}"') if user else inventory


def _asked(cloud: Cloud, words: tuple[str, ...]) -> str:
    done = ask(words, folder=cloud.folder, seconds=SECONDS)
    return "" if done.returncode else done.stdout.strip().partition("\n")[0]
