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

run "public_opens_ssh_to_the_addresses_given" {
  variables {
    access    = "public"
    ssh_cidrs = ["203.0.113.7/32"]
  }

  assert {
    condition     = google_compute_firewall.ssh.source_ranges == toset(["203.0.113.7/32"])
    error_message = "SSH comes from ssh_cidrs alone"
  }

  assert {
    condition     = alltrue([for one in local.instances : length(one.network_interface[0].access_config) == 1])
    error_message = "each machine has a public address"
  }

  assert {
    condition     = length(google_compute_router_nat.packages) == 0
    error_message = "a public address is a way out already"
  }

  assert {
    condition     = !strcontains(output.inventory, "ProxyCommand")
    error_message = "machines are reached directly"
  }
}

run "private_goes_by_the_proxy" {
  assert {
    condition = strcontains(
      yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-gpu-1"].ansible_ssh_common_args,
      "start-iap-tunnel %h 22 --listen-on-stdin --verbosity=warning --project=watched-gpus --zone=us-central1-a"
    )
    error_message = "SSH goes by IAP"
  }

  assert {
    condition     = yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-gpu-1"].ansible_host == "trainvitals-gpu-1"
    error_message = "IAP knows a machine by its name"
  }

  assert {
    condition     = endswith(output.tunnel_command, " ada_lovelace_example_com@trainvitals-monitoring")
    error_message = "the tunnel goes to the monitoring machine"
  }
}

run "https_reaches_the_monitoring_machine_alone" {
  variables {
    https_cidrs = ["0.0.0.0/0"]
  }

  assert {
    condition = (
      google_compute_firewall.https[0].target_tags == toset(["trainvitals-monitoring"])
      && toset(flatten(google_compute_firewall.https[0].allow[*].ports)) == toset(["80", "443"])
      && google_compute_firewall.https[0].source_ranges == toset(["0.0.0.0/0"])
    )
    error_message = "80 and 443 are open"
  }

  assert {
    condition     = google_compute_instance.monitoring[0].network_interface[0].access_config[0].nat_ip == "203.0.113.10"
    error_message = "the address stays"
  }

  assert {
    condition     = length(google_compute_instance.gpu["trainvitals-gpu-1"].network_interface[0].access_config) == 0
    error_message = "the GPU machine stays private"
  }

  assert {
    condition     = output.addresses["trainvitals-monitoring"].public == "203.0.113.10"
    error_message = "the address is told, for the DNS"
  }
}

run "gpu_machines_do_not_reach_each_other" {
  assert {
    condition     = length(google_compute_firewall.node_to_node) == 0
    error_message = "nobody asked for it"
  }
}

run "they_do_where_training_over_several_is_wanted" {
  variables {
    node_to_node = true
    monitoring   = null
    gpu_machines = { gpu = { machine_type = "g2-standard-4", count = 2 } }
  }

  assert {
    condition = alltrue([for one in google_compute_firewall.node_to_node : alltrue([
      one.source_tags == toset(["trainvitals-node", "trainvitals-monitoring"]),
      one.target_tags == toset(["trainvitals-node", "trainvitals-monitoring"]),
    ])]) && length(google_compute_firewall.node_to_node) == 1
    error_message = "from each GPU machine to each other, the one that monitors too"
  }
}
