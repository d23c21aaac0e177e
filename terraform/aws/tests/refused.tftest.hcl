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

run "no_zone" {
  command = plan

  variables {
    zones = []
  }

  expect_failures = [var.zones]
}

run "a_region_as_a_zone" {
  command = plan

  variables {
    zones = ["us-east-1"]
  }

  expect_failures = [var.zones]
}

run "zones_of_two_regions" {
  command = plan

  variables {
    zones = ["us-east-1a", "us-west-2b"]
  }

  expect_failures = [var.zones]
}

run "a_zone_that_is_not_listed" {
  command = plan

  variables {
    zone = "us-east-1f"
  }

  expect_failures = [var.zone]
}

run "a_name_with_capitals" {
  command = plan

  variables {
    name = "TrainVitals"
  }

  expect_failures = [var.name]
}

run "a_long_name" {
  command = plan

  variables {
    name = "a23456789012345678901"
  }

  expect_failures = [var.name]
}

run "no_machine" {
  command = plan

  variables {
    gpu_machines = {}
  }

  expect_failures = [var.gpu_machines]
}

run "a_kind_with_a_dot" {
  command = plan

  variables {
    gpu_machines = { "a.b" = { machine_type = "g6.xlarge" } }
  }

  expect_failures = [var.gpu_machines]
}

run "no_count" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "g6.xlarge", count = 0 } }
  }

  expect_failures = [var.gpu_machines]
}

run "half_a_machine" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "g6.xlarge", count = 1.5 } }
  }

  expect_failures = [var.gpu_machines]
}

run "a_small_disk" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "g6.xlarge", disk_gb = 20 } }
  }

  expect_failures = [var.gpu_machines]
}

run "a_machine_without_gpu" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "t3.large" } }
  }

  expect_failures = [var.gpu_machines]
}

run "an_arm_machine" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "g5g.xlarge" } }
  }

  expect_failures = [var.gpu_machines]
}

run "an_accelerator" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "g6.xlarge", accelerator = { type = "nvidia-l4" } } }
  }

  expect_failures = [var.gpu_machines]
}

run "monitoring_of_no_type" {
  command = plan

  variables {
    monitoring = { machine_type = "big" }
  }

  expect_failures = [var.monitoring]
}

run "monitoring_on_a_small_disk" {
  command = plan

  variables {
    monitoring = { disk_gb = 10 }
  }

  expect_failures = [var.monitoring]
}

run "an_unknown_image" {
  command = plan

  variables {
    image = "windows-2022"
  }

  expect_failures = [var.image]
}

run "an_unknown_access" {
  command = plan

  variables {
    access = "vpn"
  }

  expect_failures = [var.access]
}

run "public_for_nobody" {
  command = plan

  variables {
    access = "public"
  }

  expect_failures = [var.ssh_cidrs]
}

run "ssh_for_the_world" {
  command = plan

  variables {
    access    = "public"
    ssh_cidrs = ["0.0.0.0/0"]
  }

  expect_failures = [var.ssh_cidrs]
}

run "ssh_for_half_the_world" {
  command = plan

  variables {
    access    = "public"
    ssh_cidrs = ["0.0.0.0/1", "128.0.0.0/1"]
  }

  expect_failures = [var.ssh_cidrs]
}

run "ssh_for_an_address_without_mask" {
  command = plan

  variables {
    access    = "public"
    ssh_cidrs = ["203.0.113.7"]
  }

  expect_failures = [var.ssh_cidrs]
}

run "ssh_cidrs_without_effect" {
  command = plan

  variables {
    ssh_cidrs = ["203.0.113.7/32"]
  }

  expect_failures = [var.ssh_cidrs]
}

run "https_for_a_name" {
  command = plan

  variables {
    https_cidrs = ["example.com"]
  }

  expect_failures = [var.https_cidrs]
}

run "a_key_that_is_not_there" {
  command = plan

  variables {
    ssh_public_key = "~/.ssh/no-such-key.pub"
  }

  expect_failures = [var.ssh_public_key]
}

run "a_private_key" {
  command = plan

  variables {
    ssh_public_key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n"
  }

  expect_failures = [var.ssh_public_key]
}

run "a_time_that_is_none" {
  command = plan

  variables {
    auto_stop = { stop_at = "25:00" }
  }

  expect_failures = [var.auto_stop]
}

run "a_time_zone_by_its_offset" {
  command = plan

  variables {
    auto_stop = { stop_at = "20:00", time_zone = "+02:00" }
  }

  expect_failures = [var.auto_stop]
}

run "idle_for_two_minutes" {
  command = plan

  variables {
    auto_stop = { idle_minutes = 2 }
  }

  expect_failures = [var.auto_stop]
}

run "a_price_below_zero" {
  command = plan

  variables {
    prices = { "g6.xlarge" = { spot = -1 } }
  }

  expect_failures = [var.prices]
}

run "a_label_of_ours" {
  command = plan

  variables {
    labels = { app = "other" }
  }

  expect_failures = [var.labels]
}

run "an_image_of_google" {
  command = plan

  variables {
    image = "projects/x/global/images/y"
  }

  expect_failures = [var.image]
}

run "a_label_of_amazon" {
  command = plan

  variables {
    labels = { "aws:name" = "x" }
  }

  expect_failures = [var.labels]
}

run "gpus_by_amd" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "g4ad.xlarge" } }
  }

  expect_failures = [var.gpu_machines]
}

run "a_size_that_is_none" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "g6.nonsense" } }
  }

  expect_failures = [var.gpu_machines]
}

run "gpus_that_the_images_driver_does_not_know" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "p3.2xlarge" } }
  }

  expect_failures = [var.gpu_machines]
}

run "a_disk_too_small_for_a_deep_learning_image" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "g6.xlarge", disk_gb = 99 } }
  }

  expect_failures = [var.gpu_machines]
}

run "a_machine_type_that_is_null" {
  command = plan

  variables {
    gpu_machines = { gpu = { machine_type = null } }
  }

  expect_failures = [var.gpu_machines]
}

run "monitoring_on_arm" {
  command = plan

  variables {
    monitoring = { machine_type = "t4g.large" }
  }

  expect_failures = [var.monitoring]
}

run "ssh_from_within_a_range" {
  command = plan

  variables {
    access    = "public"
    ssh_cidrs = ["203.0.113.7/24"]
  }

  expect_failures = [var.ssh_cidrs]
}

run "https_from_within_a_range" {
  command = plan

  variables {
    https_cidrs = ["203.0.113.7/24"]
  }

  expect_failures = [var.https_cidrs]
}
