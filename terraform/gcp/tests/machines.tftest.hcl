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

run "spot_stops_and_is_not_restarted" {
  variables {
    gpu_machines = { cheap = { machine_type = "a2-highgpu-1g", spot = true, count = 2, disk_gb = 500 } }
  }

  assert {
    condition     = keys(google_compute_instance.gpu) == ["trainvitals-cheap-1", "trainvitals-cheap-2"]
    error_message = "count machines are made"
  }

  assert {
    condition = alltrue([for one in google_compute_instance.gpu : alltrue([
      one.scheduling[0].provisioning_model == "SPOT",
      one.scheduling[0].preemptible,
      one.scheduling[0].instance_termination_action == "STOP",
      !one.scheduling[0].automatic_restart,
      one.boot_disk[0].initialize_params[0].size == 500,
    ])])
    error_message = "spot machines stop when they are taken back"
  }

  assert {
    condition     = length(google_compute_instance.monitoring[0].scheduling) == 0
    error_message = "the monitoring machine stays"
  }
}

run "n1_gets_its_accelerator" {
  variables {
    gpu_machines = { t4 = { machine_type = "n1-standard-4", accelerator = { type = "nvidia-tesla-t4", count = 2 } } }
  }

  assert {
    condition = (
      google_compute_instance.gpu["trainvitals-t4-1"].guest_accelerator[0].type == "nvidia-tesla-t4"
      && google_compute_instance.gpu["trainvitals-t4-1"].guest_accelerator[0].count == 2
    )
    error_message = "the T4 is attached"
  }

  assert {
    condition     = yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-t4-1"].stack_expected_gpus == 2
    error_message = "as many GPUs are expected"
  }
}

run "big_machines_have_the_network_card_and_disk_they_need" {
  variables {
    gpu_machines = {
      h100 = { machine_type = "a3-highgpu-8g" }
      h200 = { machine_type = "a3-ultragpu-8g" }
      b200 = { machine_type = "a4-highgpu-8g" }
    }
  }

  assert {
    condition = (
      google_compute_instance.gpu["trainvitals-h100-1"].network_interface[0].nic_type == "GVNIC"
      && google_compute_instance.gpu["trainvitals-h100-1"].boot_disk[0].initialize_params[0].type == "pd-balanced"
      && google_compute_instance.gpu["trainvitals-h200-1"].boot_disk[0].initialize_params[0].type == "hyperdisk-balanced"
      && google_compute_instance.gpu["trainvitals-b200-1"].boot_disk[0].initialize_params[0].type == "hyperdisk-balanced"
    )
    error_message = "a3 wants gVNIC, a3-ultragpu and a4 hyperdisks too"
  }
}

run "a_small_a3_is_made_as_spot_or_where_the_user_knows_its_price" {
  variables {
    gpu_machines = { spot = { machine_type = "a3-highgpu-1g", spot = true }, mine = { machine_type = "a3-highgpu-2g" } }
    prices       = { a3-highgpu-2g = { on_demand = 22 } }
  }

  assert {
    condition     = length(google_compute_instance.gpu) == 2
    error_message = "both are made"
  }
}

run "all_on_one" {
  variables {
    gpu_machines = { b = { machine_type = "g2-standard-4" }, a = { machine_type = "g2-standard-8" } }
    monitoring   = null
    https_cidrs  = ["198.51.100.0/24"]
  }

  assert {
    condition     = length(google_compute_instance.monitoring) == 0
    error_message = "there is no machine for monitoring alone"
  }

  assert {
    condition     = keys(yamldecode(output.inventory).monitoring.hosts) == ["trainvitals-a-1"]
    error_message = "the first by name does it too"
  }

  assert {
    condition     = keys(yamldecode(output.inventory).gpu_nodes.hosts) == ["trainvitals-a-1", "trainvitals-b-1"]
    error_message = "and is a GPU machine as the others"
  }

  assert {
    condition = (
      google_compute_instance.gpu["trainvitals-a-1"].tags == toset(["trainvitals", "trainvitals-monitoring"])
      && length(google_compute_instance.gpu["trainvitals-a-1"].network_interface[0].access_config) == 1
      && length(google_compute_instance.gpu["trainvitals-b-1"].network_interface[0].access_config) == 0
    )
    error_message = "it is the one that the web reaches"
  }
}

run "canonical_signs_its_driver" {
  variables {
    image = "ubuntu-accelerator"
  }

  assert {
    condition = (
      google_compute_instance.gpu["trainvitals-gpu-1"].boot_disk[0].initialize_params[0].image
      == "ubuntu-os-accelerator-images/ubuntu-accelerator-2404-amd64-with-nvidia-580"
      && google_compute_instance.gpu["trainvitals-gpu-1"].shielded_instance_config[0].enable_secure_boot
      && !contains(keys(google_compute_instance.gpu["trainvitals-gpu-1"].metadata), "install-nvidia-driver")
    )
    error_message = "secure boot is on, nothing is to be installed"
  }
}

run "a_family_by_its_name" {
  variables {
    image = "pytorch-2-7-cu128-ubuntu-2204-nvidia-570"
  }

  assert {
    condition = (
      google_compute_instance.gpu["trainvitals-gpu-1"].boot_disk[0].initialize_params[0].image
      == "deeplearning-platform-release/pytorch-2-7-cu128-ubuntu-2204-nvidia-570"
      && google_compute_instance.gpu["trainvitals-gpu-1"].metadata["install-nvidia-driver"] == "True"
    )
    error_message = "it is one of Google's deep-learning images"
  }
}

run "an_own_image" {
  variables {
    image = "projects/mine/global/images/golden-7"
  }

  assert {
    condition = (
      google_compute_instance.gpu["trainvitals-gpu-1"].boot_disk[0].initialize_params[0].image
      == "projects/mine/global/images/golden-7"
      && !contains(keys(google_compute_instance.gpu["trainvitals-gpu-1"].metadata), "install-nvidia-driver")
    )
    error_message = "it is taken as it is"
  }
}

run "a_plain_image" {
  variables {
    image = "debian-12"
  }

  assert {
    condition = (
      google_compute_instance.gpu["trainvitals-gpu-1"].boot_disk[0].initialize_params[0].image == "debian-cloud/debian-12"
      && !google_compute_instance.gpu["trainvitals-gpu-1"].shielded_instance_config[0].enable_secure_boot
      && !contains(keys(google_compute_instance.gpu["trainvitals-gpu-1"].metadata), "install-nvidia-driver")
    )
    error_message = "the driver is installed later, unsigned"
  }
}

run "another_zone_after_a_stock_out" {
  variables {
    zone = "us-central1-c"
  }

  assert {
    condition     = alltrue([for one in local.instances : one.zone == "us-central1-c"]) && output.zone == "us-central1-c"
    error_message = "all machines are there"
  }

  assert {
    condition     = strcontains(output.tunnel_command, "--zone=us-central1-c")
    error_message = "and are reached there"
  }
}
