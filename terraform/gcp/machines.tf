locals {
  zone   = coalesce(var.zone, var.zones[0])
  region = replace(var.zones[0], "/-[a-z]$/", "")

  # A machine of each kind and number: gpu = { count = 2 } makes <name>-gpu-1 and <name>-gpu-2.
  numbered = flatten([for kind, machine in var.gpu_machines : [for number in range(machine.count) : merge(machine, {
    name = "${var.name}-${kind}-${number + 1}"
  })]])
  gpu_machines = { for machine in local.numbered : machine.name => machine }
  on_one       = var.monitoring == null
  monitoring   = local.on_one ? sort(keys(local.gpu_machines))[0] : "${var.name}-monitoring"

  image_families = {
    deep-learning      = "deeplearning-platform-release/common-cu129-ubuntu-2204-nvidia-580"
    ubuntu-accelerator = "ubuntu-os-accelerator-images/ubuntu-accelerator-2404-amd64-with-nvidia-580"
    debian-12          = "debian-cloud/debian-12"
    ubuntu-2204        = "ubuntu-os-cloud/ubuntu-2204-lts"
    ubuntu-2404        = "ubuntu-os-cloud/ubuntu-2404-lts-amd64"
  }
  own_image        = can(regex("^(projects|https:)/", var.image))
  driver_is_signed = startswith(var.image, "ubuntu-accelerator")
  makers           = local.driver_is_signed ? "ubuntu-os-accelerator-images" : "deeplearning-platform-release"
  family           = lookup(local.image_families, var.image, "${local.makers}/${var.image}")
  is_deep_learning = startswith(local.family, "deeplearning-platform-release/") && !local.own_image
  image            = local.own_image ? var.image : local.family

  metadata = {
    enable-oslogin         = "TRUE"
    block-project-ssh-keys = "TRUE"
    serial-port-enable     = "FALSE"
  }
}

resource "google_compute_instance" "gpu" {
  #checkov:skip=CKV_GCP_38: Google encrypts every disk; a key of the user's would be lost with the state, or stand in it
  #checkov:skip=CKV_GCP_32: it is in local.metadata, which is merged
  for_each = local.gpu_machines

  name                      = each.key
  machine_type              = each.value.machine_type
  zone                      = local.zone
  tags                      = [var.name, "${var.name}-${each.key == local.monitoring ? "monitoring" : "node"}"]
  allow_stopping_for_update = true
  desired_status            = "RUNNING"
  resource_policies         = google_compute_resource_policy.stop[*].self_link
  metadata                  = merge(local.metadata, local.is_deep_learning ? { install-nvidia-driver = "True" } : {})

  boot_disk {
    initialize_params {
      image = local.image
      size  = each.value.disk_gb
      # These take no other.
      type = can(regex("^(a3-ultragpu|a4|g4)-", each.value.machine_type)) ? "hyperdisk-balanced" : "pd-balanced"
    }
  }

  dynamic "guest_accelerator" {
    for_each = each.value.accelerator[*]

    content {
      type  = guest_accelerator.value.type
      count = guest_accelerator.value.count
    }
  }

  network_interface {
    subnetwork = google_compute_subnetwork.stack.id
    # These take no other.
    nic_type = can(regex("^(a3|a4|g4)-", each.value.machine_type)) ? "GVNIC" : null

    dynamic "access_config" {
      for_each = var.access == "public" || (each.key == local.monitoring && local.https) ? [1] : []

      content {
        #checkov:skip=CKV_GCP_40: only with access = "public", or for https_cidrs; by default there is no public address
        nat_ip = each.key == local.monitoring ? one(google_compute_address.monitoring[*].address) : null
      }
    }
  }

  # A GPU cannot be moved while it works.
  scheduling {
    on_host_maintenance         = "TERMINATE"
    automatic_restart           = !each.value.spot
    preemptible                 = each.value.spot
    provisioning_model          = each.value.spot ? "SPOT" : "STANDARD"
    instance_termination_action = each.value.spot ? "STOP" : null
  }

  service_account {
    email  = google_service_account.machines.email
    scopes = ["cloud-platform"]
  }

  shielded_instance_config {
    # It loads signed modules only. Canonical signs the driver of its accelerator images; elsewhere it is built on the
    # machine, or by others, and would not be loaded.
    enable_secure_boot          = local.driver_is_signed
    enable_vtpm                 = true
    enable_integrity_monitoring = true
  }

  depends_on = [google_project_iam_member.scheduler, google_compute_router_nat.packages]
}

resource "google_compute_instance" "monitoring" {
  #checkov:skip=CKV_GCP_38: Google encrypts every disk; a key of the user's would be lost with the state, or stand in it
  count = local.on_one ? 0 : 1

  name                      = local.monitoring
  machine_type              = var.monitoring.machine_type
  zone                      = local.zone
  tags                      = [var.name, "${var.name}-monitoring"]
  allow_stopping_for_update = true
  desired_status            = "RUNNING"
  metadata                  = local.metadata

  boot_disk {
    initialize_params {
      image = local.image_families.ubuntu-2404
      size  = var.monitoring.disk_gb
      type  = "pd-balanced"
    }
  }

  network_interface {
    subnetwork = google_compute_subnetwork.stack.id

    dynamic "access_config" {
      for_each = var.access == "public" || local.https ? [1] : []

      content {
        #checkov:skip=CKV_GCP_40: only with access = "public", or for https_cidrs; by default there is no public address
        nat_ip = one(google_compute_address.monitoring[*].address)
      }
    }
  }

  service_account {
    email  = google_service_account.machines.email
    scopes = ["cloud-platform"]
  }

  shielded_instance_config {
    enable_secure_boot          = true
    enable_vtpm                 = true
    enable_integrity_monitoring = true
  }

  depends_on = [google_compute_router_nat.packages]
}

locals {
  instances = merge(google_compute_instance.gpu, { for one in google_compute_instance.monitoring : one.name => one })
}
