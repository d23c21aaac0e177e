"""A cloud on loopback: moto's server, and what it lacks of the parts of AWS that the module uses.

    python -m tests.terraform.aws_server 5000

It knows the images that AWS, Canonical and Debian publish, tells what a rule between groups is for, and asks for spot
machines as AWS does: a request that lasts starts its machine again until it is cancelled.
"""

import sys

from moto.ec2.models.instances import InstanceBackend
from moto.ec2.models.security_groups import SecurityGroupRule
from moto.ec2.models.spot_requests import SpotInstanceRequest
from moto.ec2.responses.instances import InstanceResponse
from moto.ec2.utils import random_spot_request_id
from moto.server import main
from moto.ssm import models

MAKERS = ("/aws/service/canonical/", "/aws/service/debian/", "/aws/service/deeplearning/")
# One of the images that moto has.
IMAGE = "ami-dca37ea5"

run_instances = InstanceResponse.run_instances
modify_groups = InstanceBackend.modify_instance_security_groups


class Parameters(models.ParameterDict):
    def _check_loading_status(self, key):
        super()._check_loading_status(key)
        if key.startswith(MAKERS) and not dict.__contains__(self, key):
            self[key] = [self._image(key)]

    def _image(self, name):
        kept = {"allowed_pattern": None, "keyid": None, "last_modified_date": 0, "description": None}
        return models.Parameter(self.account_id, name, IMAGE, "String", version=1, data_type="text", **kept)


class Spot(SpotInstanceRequest):
    # moto finds its classes by their module.
    __module__ = SpotInstanceRequest.__module__

    def __init__(self, backend, instance, options):
        self.instance = instance
        unsaid = dict.fromkeys(("valid_from", "valid_until", "launch_group", "availability_zone_group", "key_name"))
        unsaid |= dict.fromkeys(
            ("security_groups", "user_data", "placement", "kernel_id", "ramdisk_id", "spot_fleet_id")
        )
        super().__init__(
            backend,
            random_spot_request_id(),
            "1",
            instance.image_id,
            options.get("SpotInstanceType", "one-time"),
            instance_type=instance.instance_type,
            monitoring_enabled=False,
            subnet_id=instance.subnet_id,
            tags={},
            instance_interruption_behaviour=options.get("InstanceInterruptionBehavior"),
            **unsaid,
        )

    def launch_instance(self):
        return self.instance


def answer_and_ask(response):
    """The answer to RunInstances. moto forgets what was wanted of spot machines."""
    answer = run_instances(response)
    if market := response._get_param("InstanceMarketOptions", {}):
        for instance in answer.result.instances:
            request = Spot(response.ec2_backend, instance, market.get("SpotOptions", {}))
            response.ec2_backend.spot_instance_requests[request.id] = request
            instance.spot_instance_request_id = request.id
    return answer


def change_groups(backend, instance_id, groups):
    """moto takes every change of an attribute that it does not know for one to no groups."""
    return modify_groups(backend, instance_id, groups) if groups else None


if __name__ == "__main__":
    models.ParameterDict = Parameters
    InstanceResponse.run_instances = answer_and_ask
    InstanceBackend.modify_instance_security_groups = change_groups
    SecurityGroupRule.description = property(lambda rule: (rule.ip_range or rule.source_group or {}).get("Description"))
    main(["--port", sys.argv[1]])
