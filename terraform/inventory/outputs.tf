output "inventory" {
  value = local.monitoring == null ? null : yamlencode({
    gpu_nodes  = { hosts = { for name, machine in var.machines : name => local.hosts[name] if machine.gpu } }
    monitoring = { hosts = { for name in local.monitoring[*] : name => local.said_there } }
  })
}

output "addresses" {
  value = { for name, machine in var.machines : name => {
    private = machine.private_ip
    public  = machine.public_ip == "" ? null : machine.public_ip
  } }
}

output "tunnel_command" {
  value = try(join(" ", compact(concat(["ssh -N"], local.tunnel, [
    local.ssh_options[local.monitoring],
    local.private_key == null ? "" : "-i ${local.private_key}",
    "${var.user}@${var.machines[local.monitoring].ansible_host}",
  ]))), null)
}

output "price_per_hour" {
  value = {
    # Sums of fractions have long tails.
    total    = try(floor(sum(values(local.prices)) * 10000 + 0.5) / 10000, null)
    machines = local.prices
    currency = var.table.currency
    as_of    = var.table.as_of
    region   = var.table.region
    source   = var.table.source
  }
}

output "since" {
  value = terraform_data.since.output
}
