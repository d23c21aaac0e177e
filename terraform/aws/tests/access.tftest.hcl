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

run "public_opens_ssh_to_the_addresses_given" {
  variables {
    access    = "public"
    ssh_cidrs = ["203.0.113.7/32"]
  }

  assert {
    condition     = [for one in aws_vpc_security_group_ingress_rule.ssh : [one.cidr_ipv4, one.from_port, one.to_port]] == [["203.0.113.7/32", 22, 22]]
    error_message = "SSH comes from ssh_cidrs alone"
  }

  assert {
    condition = alltrue([
      aws_instance.gpu["trainvitals-gpu-1"].subnet_id == aws_subnet.public["us-east-1a"].id,
      aws_subnet.public["us-east-1a"].map_public_ip_on_launch,
      length(aws_nat_gateway.packages) == 0,
      length(aws_iam_role.machines) == 0,
    ])
    error_message = "each machine has a public address, which is a way out already"
  }

  assert {
    condition = alltrue([
      !strcontains(output.inventory, "ProxyCommand"),
      yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-gpu-1"].ansible_host == "203.0.113.20",
    ])
    error_message = "machines are reached directly"
  }
}

run "private_goes_by_systems_manager" {
  assert {
    condition = strcontains(
      yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-gpu-1"].ansible_ssh_common_args,
      "aws ssm start-session --target %h --document-name AWS-StartSSHSession --parameters portNumber=22 --region us-east-1"
    )
    error_message = "SSH goes by SSM"
  }

  assert {
    condition     = yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-gpu-1"].ansible_host == aws_instance.gpu["trainvitals-gpu-1"].id
    error_message = "SSM knows a machine by its id"
  }

  assert {
    condition     = endswith(output.tunnel_command, " trainvitals@${aws_instance.monitoring[0].id}")
    error_message = "the tunnel goes to the monitoring machine"
  }
}

run "https_reaches_the_monitoring_machine_alone" {
  variables {
    https_cidrs = ["0.0.0.0/0"]
  }

  assert {
    condition     = toset([for one in aws_vpc_security_group_ingress_rule.https : "${one.ip_protocol}-${one.from_port}"]) == toset(["tcp-80", "tcp-443", "udp-443"])
    error_message = "80 and 443 are open"
  }

  assert {
    condition = alltrue([
      aws_instance.monitoring[0].subnet_id == aws_subnet.public["us-east-1a"].id,
      aws_instance.gpu["trainvitals-gpu-1"].subnet_id == aws_subnet.private["us-east-1a"].id,
      output.addresses["trainvitals-monitoring"].public == "203.0.113.10",
      output.addresses["trainvitals-gpu-1"].public == null,
    ])
    error_message = "it has an address that stays, the GPU machine has none"
  }
}

run "gpu_machines_do_not_reach_each_other" {
  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.node_to_node) == 0
    error_message = "nobody asked for it"
  }
}

run "they_do_where_training_over_several_is_wanted" {
  variables {
    node_to_node = true
  }

  assert {
    condition     = keys(aws_vpc_security_group_ingress_rule.node_to_node) == ["node-to-node"]
    error_message = "from GPU machine to GPU machine alone"
  }
}

run "the_one_that_monitors_too_is_reached" {
  variables {
    node_to_node = true
    monitoring   = null
    gpu_machines = { gpu = { machine_type = "g6.xlarge", count = 2 } }
  }

  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.node_to_node) == 4
    error_message = "from each to each"
  }
}
