mock_provider "google" {
  mock_data "google_client_openid_userinfo" {
    defaults = { email = "Ada.Lovelace@example.com" }
  }

  mock_data "google_project" {
    defaults = { number = "123456789" }
  }

  mock_resource "google_compute_instance" {
    defaults = {
      instance_id       = "4711"
      network_interface = { network_ip = "10.77.0.2", access_config = { nat_ip = "203.0.113.20" } }
    }
  }

  mock_resource "google_compute_address" {
    defaults = { address = "203.0.113.10" }
  }
}

variables {
  project        = "watched-gpus"
  ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9 ada@example"
}

run "a_project_that_is_a_number" {
  command = plan

  variables {
    project = "1234"
  }

  expect_failures = [var.project]
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
    zones = ["us-central1"]
  }

  expect_failures = [var.zones]
}

run "zones_of_two_regions" {
  command = plan

  variables {
    zones = ["us-central1-a", "us-east1-b"]
  }

  expect_failures = [var.zones]
}

run "a_zone_that_is_not_listed" {
  command = plan

  variables {
    zone = "us-central1-f"
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
    gpu_machines = { "a.b" = { machine_type = "g2-standard-4" } }
  }

  expect_failures = [var.gpu_machines]
}

run "no_count" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "g2-standard-4", count = 0 } }
  }

  expect_failures = [var.gpu_machines]
}

run "half_a_machine" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "g2-standard-4", count = 1.5 } }
  }

  expect_failures = [var.gpu_machines]
}

run "a_small_disk" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "g2-standard-4", disk_gb = 20 } }
  }

  expect_failures = [var.gpu_machines]
}

run "a_machine_without_gpu" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "e2-standard-4" } }
  }

  expect_failures = [var.gpu_machines]
}

run "an_accelerator_on_g2" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "g2-standard-4", accelerator = { type = "nvidia-l4" } } }
  }

  expect_failures = [var.gpu_machines]
}

run "n1_without_accelerator" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "n1-standard-4" } }
  }

  expect_failures = [var.gpu_machines]
}

run "three_accelerators" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "n1-standard-4", accelerator = { type = "nvidia-tesla-t4", count = 3 } } }
  }

  expect_failures = [var.gpu_machines]
}

run "an_accelerator_of_another_maker" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "n1-standard-4", accelerator = { type = "ct5lp" } } }
  }

  expect_failures = [var.gpu_machines]
}

run "an_arm_machine" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "a4x-highgpu-4g" } }
  }

  expect_failures = [var.gpu_machines]
}

run "a_small_a3_that_is_not_spot" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "a3-highgpu-1g" } }
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

run "an_ami" {
  command = plan

  variables {
    image = "ami-0123456789abcdef0"
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

run "local_ssds_and_a_schedule_alone" {
  command = plan

  variables {
    gpu_machines = { a = { machine_type = "a2-ultragpu-1g" } }
    auto_stop    = { stop_at = "20:00" }
  }

  expect_failures = [var.auto_stop]
}

run "a_price_below_zero" {
  command = plan

  variables {
    prices = { g2-standard-4 = { spot = -1 } }
  }

  expect_failures = [var.prices]
}

run "a_label_with_capitals" {
  command = plan

  variables {
    labels = { Team = "ml" }
  }

  expect_failures = [var.labels]
}

run "a_label_of_ours" {
  command = plan

  variables {
    labels = { app = "other" }
  }

  expect_failures = [var.labels]
}

run "a_shape_that_the_family_has_not" {
  command = plan

  variables {
    gpu_machines = { gpu = { machine_type = "g2-standard-5" } }
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
    monitoring = { machine_type = "t2a-standard-2" }
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
