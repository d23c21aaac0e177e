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

run "spot_stops_and_comes_back" {
  variables {
    gpu_machines = { cheap = { machine_type = "p4d.24xlarge", spot = true, count = 2, disk_gb = 500 } }
  }

  assert {
    condition     = keys(aws_instance.gpu) == ["trainvitals-cheap-1", "trainvitals-cheap-2"]
    error_message = "count machines are made"
  }

  assert {
    condition = alltrue([for one in aws_instance.gpu : alltrue([
      one.instance_market_options[0].market_type == "spot",
      one.instance_market_options[0].spot_options[0].instance_interruption_behavior == "stop",
      one.instance_market_options[0].spot_options[0].spot_instance_type == "persistent",
      one.root_block_device[0].volume_size == 500,
    ])])
    error_message = "spot machines stop when they are taken back"
  }

  assert {
    condition     = keys(aws_ec2_instance_state.running) == ["trainvitals-monitoring"]
    error_message = "and start by themselves"
  }
}

run "all_on_one" {
  variables {
    gpu_machines = { b = { machine_type = "g5.xlarge" }, a = { machine_type = "g6.xlarge" } }
    monitoring   = null
    https_cidrs  = ["198.51.100.0/24"]
  }

  assert {
    condition = alltrue([
      length(aws_instance.monitoring) == 0,
      keys(yamldecode(output.inventory).monitoring.hosts) == ["trainvitals-a-1"],
      keys(yamldecode(output.inventory).gpu_nodes.hosts) == ["trainvitals-a-1", "trainvitals-b-1"],
    ])
    error_message = "the first by name does it too"
  }

  assert {
    condition = alltrue([
      aws_instance.gpu["trainvitals-a-1"].subnet_id == aws_subnet.public["us-east-1a"].id,
      aws_instance.gpu["trainvitals-b-1"].subnet_id == aws_subnet.private["us-east-1a"].id,
      aws_instance.gpu["trainvitals-a-1"].vpc_security_group_ids == toset([aws_security_group.machine.id, aws_security_group.monitoring.id]),
    ])
    error_message = "it is the one that the web reaches"
  }
}

run "the_newest_deep_learning_image" {
  assert {
    condition = alltrue([
      data.aws_ssm_parameter.image["deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"].name == "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
      aws_instance.gpu["trainvitals-gpu-1"].ami == "ami-0123456789abcdef0",
    ])
    error_message = "it is told by its maker"
  }
}

run "another_deep_learning_image" {
  variables {
    image = "base-oss-nvidia-driver-gpu-ubuntu-24.04"
  }

  assert {
    condition     = contains(keys(data.aws_ssm_parameter.image), "deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id")
    error_message = "it is known by its name"
  }
}

run "an_own_image" {
  variables {
    image = "ami-0fedcba9876543210"
  }

  assert {
    condition = alltrue([
      aws_instance.gpu["trainvitals-gpu-1"].ami == "ami-0fedcba9876543210",
      aws_instance.monitoring[0].ami == "ami-0123456789abcdef0",
    ])
    error_message = "it is taken as it is"
  }
}

run "debian_gets_the_agent_it_lacks" {
  variables {
    image = "debian-12"
  }

  assert {
    condition = alltrue([
      strcontains(aws_instance.gpu["trainvitals-gpu-1"].user_data, "amazon-ssm-agent.deb"),
      !strcontains(aws_instance.monitoring[0].user_data, "amazon-ssm-agent.deb"),
    ])
    error_message = "private access goes by it"
  }
}

run "another_zone_after_a_stock_out" {
  variables {
    zone = "us-east-1c"
  }

  assert {
    condition = alltrue([
      aws_instance.gpu["trainvitals-gpu-1"].subnet_id == aws_subnet.private["us-east-1c"].id,
      aws_instance.monitoring[0].subnet_id == aws_subnet.private["us-east-1c"].id,
      output.zone == "us-east-1c",
      aws_nat_gateway.packages[0].subnet_id == aws_subnet.public["us-east-1a"].id,
    ])
    error_message = "all machines are there, the network stays"
  }
}
