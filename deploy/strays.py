"""Machines that bear this deployment's label and that Terraform does not know: of a run that was ended while it asked.

found(CLOUDS["aws"], "trainvitals", "us-east-1")  ->  ["i-0123"], which cost money until somebody ends them

`where` is the region for AWS, the project for GCP. What cannot be asked is said, and is not taken for nothing.
"""

from deploy import say
from deploy.cloud import Cloud
from deploy.errors import DeployError
from deploy.run import ask

SECONDS = 60
_LIVE = "Name=instance-state-name,Values=pending,running,stopping,stopped"
_ASKS = {
    "aws": ("aws", "ec2", "describe-instances", "--region={where}", "--output=text",
            "--query=Reservations[].Instances[].[InstanceId]", "--filters", "Name=tag:app,Values=trainvitals",
            "Name=tag:deployment,Values={name}", _LIVE),
    "gcp": ("gcloud", "compute", "instances", "list", "--project={where}", "--format=value(name,zone.basename())",
            "--filter=labels.app=trainvitals AND labels.deployment={name}", "--quiet"),
}  # fmt: skip
_ENDS = {
    "aws": "aws ec2 terminate-instances --region={where} --instance-ids {machine}",
    "gcp": "gcloud compute instances delete --project={where} {machine}",
}


def check(cloud: Cloud, name: str, where: str) -> None:
    """When nothing is to be there any more."""
    left = found(cloud, name, where)
    if not left:
        return
    ends = "".join(f"\n  {_ENDS[cloud.name].format(where=where, machine=each)}" for each in left)
    raise DeployError(f"the cloud still has machines of the deployment {name} that are not in the state here, and cost "
                      f"money. Where no other clone made them, these end them:{ends}")  # fmt: skip


def found(cloud: Cloud, name: str, where: str) -> list[str]:
    words = [word.format(name=name, where=where) for word in _ASKS[cloud.name]]
    done = ask(words, folder=cloud.folder, seconds=SECONDS)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it failed"])[-1]
        say.line(f"Whether the cloud has machines that Terraform does not know was not looked at: {words[0]}: {why}")
        return []
    return [_named(cloud, line.split()) for line in done.stdout.splitlines() if line.strip()]


def _named(cloud: Cloud, told: list[str]) -> str:
    return f"{told[0]} --zone={told[1]}" if cloud.name == "gcp" else told[0]
