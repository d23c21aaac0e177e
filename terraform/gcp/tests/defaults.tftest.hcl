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

run "two_machines_nobody_reaches_from_outside" {
  assert {
    condition     = keys(google_compute_instance.gpu) == ["trainvitals-gpu-1"]
    error_message = "one GPU machine is made"
  }

  assert {
    condition     = google_compute_instance.monitoring[0].name == "trainvitals-monitoring"
    error_message = "a monitoring machine is made"
  }

  assert {
    condition     = alltrue([for one in local.instances : length(one.network_interface[0].access_config) == 0])
    error_message = "no machine has a public address"
  }

  assert {
    condition     = google_compute_firewall.ssh.source_ranges == toset(["35.235.240.0/20"])
    error_message = "SSH comes from Google's proxy alone"
  }

  assert {
    condition     = length(google_compute_router_nat.packages) == 1 && length(google_compute_firewall.https) == 0
    error_message = "there is a way out, and no open port"
  }

  assert {
    condition     = output.zone == "us-central1-a" && google_compute_subnetwork.stack.region == "us-central1"
    error_message = "the first zone is used"
  }
}

run "a_gpu_machine_is_stopped_for_maintenance_and_hardened" {
  assert {
    condition = (
      google_compute_instance.gpu["trainvitals-gpu-1"].scheduling[0].on_host_maintenance == "TERMINATE"
      && google_compute_instance.gpu["trainvitals-gpu-1"].scheduling[0].automatic_restart
      && google_compute_instance.gpu["trainvitals-gpu-1"].scheduling[0].provisioning_model == "STANDARD"
    )
    error_message = "a GPU machine cannot move while it works"
  }

  assert {
    condition = alltrue([for one in local.instances : alltrue([
      one.metadata["enable-oslogin"] == "TRUE",
      one.metadata["block-project-ssh-keys"] == "TRUE",
      one.shielded_instance_config[0].enable_vtpm,
      one.shielded_instance_config[0].enable_integrity_monitoring,
      one.service_account[0].email == google_service_account.machines.email,
    ])])
    error_message = "OS Login, a shielded VM, an account of its own"
  }

  assert {
    condition     = google_compute_instance.gpu["trainvitals-gpu-1"].metadata["install-nvidia-driver"] == "True"
    error_message = "a deep-learning image installs its driver"
  }

  assert {
    condition     = google_compute_instance.monitoring[0].shielded_instance_config[0].enable_secure_boot
    error_message = "a machine without a GPU boots what is signed"
  }
}

run "only_monitoring_scrapes_the_others" {
  assert {
    condition = (
      google_compute_firewall.scrape.source_tags == toset(["trainvitals-monitoring"])
      && google_compute_firewall.scrape.target_tags == toset(["trainvitals-node"])
      && one(google_compute_firewall.scrape.allow).ports == tolist(["8080", "9100", "9400", "9835"])
    )
    error_message = "the ports of the stack, from monitoring to nodes"
  }

  assert {
    condition = (
      google_compute_instance.gpu["trainvitals-gpu-1"].tags == toset(["trainvitals", "trainvitals-node"])
      && google_compute_instance.monitoring[0].tags == toset(["trainvitals", "trainvitals-monitoring"])
    )
    error_message = "the machines bear what the rules name"
  }
}

run "the_caller_logs_in_by_os_login" {
  assert {
    condition     = google_os_login_ssh_public_key.caller.user == "Ada.Lovelace@example.com"
    error_message = "the key is the caller's"
  }

  assert {
    condition     = yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-gpu-1"].ansible_user == "ada_lovelace_example_com"
    error_message = "the account is called after the mail address"
  }
}

run "a_robot_has_the_name_of_its_number" {
  override_data {
    target = data.google_client_openid_userinfo.caller
    values = { email = "deploy@watched-gpus.iam.gserviceaccount.com" }
  }

  override_data {
    target = data.google_service_account.caller[0]
    values = { unique_id = "1122334455" }
  }

  assert {
    condition     = yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-gpu-1"].ansible_user == "sa_1122334455"
    error_message = "OS Login calls service accounts sa_ and their number"
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
    condition     = output.zone == "us-central1-a"
    error_message = "it is as if nothing was said"
  }
}

run "what_is_named_twice_is_one" {
  command = plan

  variables {
    zones       = ["us-central1-a", "us-central1-a"]
    https_cidrs = ["0.0.0.0/0", "0.0.0.0/0"]
  }

  assert {
    condition     = output.zone == "us-central1-a"
    error_message = "one zone, open to everybody"
  }
}
