output "inventory" {
  value = yamlencode({
    gpu_nodes  = { hosts = { for name, machine in var.machines : name => local.hosts[name] if machine.gpu } }
    monitoring = { hosts = { (local.monitoring) = local.said_there } }
  })
}

output "addresses" {
  value = { for name, machine in var.machines : name => {
    private = machine.private_ip
    public  = machine.public_ip == "" ? null : machine.public_ip
  } }
}

output "tunnel_command" {
  value = join(" ", compact(concat(["ssh -N"], local.tunnel, [
    local.ssh_options[local.monitoring],
    local.private_key == null ? "" : "-i ${local.private_key}",
    "${var.user}@${var.machines[local.monitoring].ansible_host}",
  ])))
}

output "price_per_hour" {
  value = {
    # Unknown as soon as one of them is.
    total    = anytrue([for price in local.prices : price == null]) ? null : sum(local.prices)
    machines = { for name, machine in var.machines : name => machine.price }
    currency = "USD"
    as_of    = var.table.as_of
    region   = var.table.region
    source   = var.table.source
  }
}
