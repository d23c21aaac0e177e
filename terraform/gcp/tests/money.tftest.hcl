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

run "the_table_knows_prices_and_gpus" {
  variables {
    gpu_machines = { a = { machine_type = "a2-highgpu-1g", count = 2 }, t = { machine_type = "n1-standard-4", accelerator = { type = "nvidia-tesla-t4" } } }
  }

  assert {
    condition = alltrue([
      output.price_per_hour.machines["trainvitals-a-2"] == local.table.machine_types["a2-highgpu-1g"].on_demand,
      output.price_per_hour.machines["trainvitals-t-1"] == (
        local.table.machine_types["n1-standard-4"].on_demand + local.table.accelerators["nvidia-tesla-t4"].on_demand
      ),
      output.price_per_hour.total == sum(values(output.price_per_hour.machines)),
      length(output.price_per_hour.machines) == 4,
    ])
    error_message = "prices are those of the table, N1's with its accelerator's"
  }

  assert {
    condition = (
      yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-a-1"].stack_node_price
      == local.table.machine_types["a2-highgpu-1g"].on_demand
    )
    error_message = "the price reaches the metrics"
  }
}

run "spot_has_a_price_of_its_own" {
  variables {
    gpu_machines = { a = { machine_type = "a2-highgpu-1g", spot = true } }
  }

  assert {
    condition     = output.price_per_hour.machines["trainvitals-a-1"] == local.table.machine_types["a2-highgpu-1g"].spot
    error_message = "it is that of spot"
  }
}

run "the_user_goes_before_the_table" {
  variables {
    gpu_machines = { a = { machine_type = "a2-highgpu-1g" }, b = { machine_type = "a3-megagpu-8g" } }
    prices       = { a2-highgpu-1g = { on_demand = 3 }, a3-megagpu-8g = { on_demand = 70 }, e2-standard-2 = { on_demand = 0 } }
  }

  assert {
    condition     = output.price_per_hour.total == 73
    error_message = "the user's prices count"
  }
}

run "an_unknown_type_has_no_price" {
  variables {
    gpu_machines = { new = { machine_type = "g4-standard-384" }, gpu = { machine_type = "g2-standard-4" } }
  }

  assert {
    condition     = output.price_per_hour.total == null && output.price_per_hour.machines["trainvitals-new-1"] == null
    error_message = "what nobody knows is not summed up"
  }

  assert {
    condition = alltrue([for key in ["stack_node_price", "stack_expected_gpus"] :
      !contains(keys(yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-new-1"]), key)
    ])
    error_message = "nor told to the machine"
  }
}

run "nothing_stops_by_itself" {
  assert {
    condition = alltrue([
      length(google_compute_resource_policy.stop) == 0,
      length(google_project_iam_member.scheduler) == 0,
      yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-gpu-1"].stack_idle_stop_minutes == 0,
    ])
    error_message = "auto_stop is off"
  }
}

run "a_schedule_stops_gpu_machines" {
  variables {
    auto_stop = { stop_at = "08:05", time_zone = "Europe/Berlin" }
  }

  assert {
    condition = (
      google_compute_resource_policy.stop[0].instance_schedule_policy[0].vm_stop_schedule[0].schedule == "5 8 * * *"
      && google_compute_resource_policy.stop[0].instance_schedule_policy[0].time_zone == "Europe/Berlin"
    )
    error_message = "at that time of that zone"
  }

  assert {
    condition = (
      google_compute_instance.gpu["trainvitals-gpu-1"].resource_policies
      == tolist([google_compute_resource_policy.stop[0].self_link])
      && google_compute_instance.monitoring[0].resource_policies == null
    )
    error_message = "GPU machines stop, monitoring stays"
  }

  assert {
    condition = (
      google_project_iam_custom_role.scheduler[0].permissions
      == toset(["compute.instances.start", "compute.instances.stop"])
      && google_project_iam_member.scheduler[0].member
      == "serviceAccount:service-123456789@compute-system.iam.gserviceaccount.com"
    )
    error_message = "Google's own account may start and stop"
  }

  assert {
    condition     = can(regex("^trainvitals_scheduler_[0-9]{14}$", google_project_iam_custom_role.scheduler[0].role_id))
    error_message = "the role has an id that none before had"
  }
}

run "machines_with_local_ssds_stop_by_themselves_where_the_schedule_does_not" {
  variables {
    gpu_machines = { a = { machine_type = "a3-highgpu-8g" } }
    auto_stop    = { stop_at = "20:00", idle_minutes = 60 }
  }

  assert {
    condition     = yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-a-1"].stack_idle_stop_minutes == 60
    error_message = "idle_minutes is for them"
  }
}

run "idle_machines_stop_themselves" {
  variables {
    auto_stop = { idle_minutes = 45 }
  }

  assert {
    condition = (
      yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-gpu-1"].stack_idle_stop_minutes == 45
      && length(google_compute_resource_policy.stop) == 0
    )
    error_message = "the inventory tells it to Ansible"
  }

  assert {
    condition = !contains(
      keys(yamldecode(output.inventory).monitoring.hosts["trainvitals-monitoring"]), "stack_idle_stop_minutes"
    )
    error_message = "monitoring is never idle"
  }
}
