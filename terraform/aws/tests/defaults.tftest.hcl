mock_provider "aws" {
  mock_resource "aws_instance" {
    defaults = { private_ip = "10.77.128.4", public_ip = "203.0.113.20", arn = "arn:aws:ec2:us-east-1:123456789012:instance/i-1" }
  }

  mock_resource "aws_eip" {
    defaults = { public_ip = "203.0.113.10" }
  }

  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/trainvitals" }
  }

  mock_data "aws_ssm_parameter" {
    defaults = { value = "ami-0123456789abcdef0" }
  }

  mock_data "aws_iam_policy_document" {
    defaults = { json = "{\"Version\": \"2012-10-17\", \"Statement\": []}" }
  }

  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
}

variables {
  ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9 ada@example"
}

run "two_machines_nobody_reaches_from_outside" {
  assert {
    condition = alltrue([
      keys(aws_instance.gpu) == ["trainvitals-gpu-1"],
      aws_instance.monitoring[0].instance_type == "t3.large",
    ])
    error_message = "a GPU machine and one for monitoring are made"
  }

  assert {
    condition = alltrue([
      aws_instance.gpu["trainvitals-gpu-1"].subnet_id == aws_subnet.private["us-east-1a"].id,
      aws_instance.monitoring[0].subnet_id == aws_subnet.private["us-east-1a"].id,
      alltrue([for one in aws_subnet.public : !one.map_public_ip_on_launch]),
    ])
    error_message = "no machine has a public address"
  }

  assert {
    condition = alltrue([
      length(aws_nat_gateway.packages) == 1,
      length(aws_vpc_security_group_ingress_rule.ssh) == 0,
      length(aws_vpc_security_group_ingress_rule.https) == 0,
      length(aws_eip.monitoring) == 0,
    ])
    error_message = "there is a way out, and no open port"
  }

  assert {
    condition = alltrue([
      output.zone == "us-east-1a",
      length(aws_subnet.private) == 4,
    ])
    error_message = "the first zone is used, the others are ready"
  }
}

run "each_machine_is_hardened" {
  assert {
    condition = alltrue([for one in local.instances : alltrue([
      one.metadata_options[0].http_tokens == "required",
      one.metadata_options[0].http_put_response_hop_limit == 1,
      one.root_block_device[0].encrypted,
      one.root_block_device[0].volume_type == "gp3",
      one.iam_instance_profile == "trainvitals-us-east-1-machines",
      one.instance_initiated_shutdown_behavior == "stop",
    ])])
    error_message = "IMDSv2 with one hop, an encrypted disk, a profile, and off is not gone"
  }
}

run "only_monitoring_scrapes_the_others" {
  assert {
    condition = alltrue([
      toset([for one in aws_vpc_security_group_ingress_rule.scrape : one.from_port]) == toset([8080, 9100, 9400, 9835]),
      alltrue([for one in aws_vpc_security_group_ingress_rule.scrape :
        one.referenced_security_group_id == aws_security_group.monitoring.id
      && one.security_group_id == aws_security_group.node.id]),
    ])
    error_message = "the ports of the stack, from monitoring to nodes"
  }

  assert {
    condition = alltrue([
      aws_instance.gpu["trainvitals-gpu-1"].vpc_security_group_ids == toset([aws_security_group.machine.id, aws_security_group.node.id]),
      aws_instance.monitoring[0].vpc_security_group_ids == toset([aws_security_group.machine.id, aws_security_group.monitoring.id]),
    ])
    error_message = "the machines are in the groups that the rules are for"
  }
}

run "the_same_user_on_every_image" {
  assert {
    condition = alltrue([
      yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-gpu-1"].ansible_user == "trainvitals",
      strcontains(aws_instance.gpu["trainvitals-gpu-1"].user_data, "AAAAC3NzaC1lZDI1NTE5AAAAIJ9"),
      !strcontains(aws_instance.gpu["trainvitals-gpu-1"].user_data, "amazon-ssm-agent"),
    ])
    error_message = "the first boot makes the user"
  }
}

run "null_is_the_default" {
  command = plan

  variables {
    zones        = null
    zone         = null
    name         = null
    image        = null
    access       = null
    ssh_cidrs    = null
    https_cidrs  = null
    node_to_node = null
    auto_stop    = null
    prices       = null
    labels       = null
  }

  assert {
    condition     = output.zone == "us-east-1a"
    error_message = "it is as if nothing was said"
  }
}

run "what_is_named_twice_is_one" {
  command = plan

  variables {
    zones       = ["us-east-1a", "us-east-1a"]
    https_cidrs = ["0.0.0.0/0", "0.0.0.0/0"]
  }

  assert {
    condition     = output.zone == "us-east-1a"
    error_message = "one zone, open to everybody"
  }
}
