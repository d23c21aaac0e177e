# What both clouds hand on: the inventory that Ansible reads, addresses, the way to the dashboards, the price.

locals {
  # A machine's keys are known by its id: one that is made anew under an old name is no intruder.
  ssh_options = { for name, machine in var.machines : name => join(" ", compact([
    "-o UserKnownHostsFile=~/.ssh/known_hosts.trainvitals",
    "-o StrictHostKeyChecking=accept-new",
    "-o HostKeyAlias=${machine.id}",
    machine.proxy == "" ? "" : "-o ProxyCommand=\"${machine.proxy}\"",
  ])) }

  key         = trimsuffix(var.ssh_public_key, ".pub")
  private_key = endswith(var.ssh_public_key, ".pub") ? (fileexists(pathexpand(local.key)) ? local.key : null) : null

  hosts = { for name, machine in var.machines : name => {
    for key, value in {
      ansible_host                 = machine.ansible_host
      ansible_user                 = var.user
      ansible_ssh_common_args      = local.ssh_options[name]
      ansible_ssh_private_key_file = local.private_key
      stack_address                = machine.private_ip
      stack_node_price             = local.prices[name]
      stack_expected_gpus          = machine.gpu ? local.gpus[name] : null
      stack_idle_stop_minutes      = machine.gpu ? var.idle_minutes : null
    } : key => value if value != null
  } }

  # Null while a deployment that was broken off has no machine yet.
  monitoring = one([for name, machine in var.machines : name if machine.monitoring])
  # What is said of a machine that is in both groups is said once.
  is_gpu     = try(var.machines[local.monitoring].gpu, false)
  said_there = { for key, value in try(local.hosts[local.monitoring], {}) : key => value if !local.is_gpu }
  # make tunnel reads the same table.
  pages  = jsondecode(file("${path.module}/pages.json"))
  tunnel = [for page in local.pages : "-L ${page.port}:127.0.0.1:${page.port}"]
}

# When it was first made: what it cost is told when it is destroyed.
resource "terraform_data" "since" {
  input = plantimestamp()

  lifecycle {
    ignore_changes = [input]
  }
}
