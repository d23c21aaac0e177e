locals {
  table = jsondecode(file("${path.module}/prices.json"))
  public_addresses = { for name, instance in local.instances : name => (
    local.has_fixed_address[name] ? one(aws_eip.monitoring[*].public_ip) : local.is_public[name] ? instance.public_ip : ""
  ) }
}

module "inventory" {
  source = "../inventory"

  user           = local.user
  ssh_public_key = var.ssh_public_key
  idle_minutes   = var.auto_stop.idle_minutes
  table          = local.table
  prices         = var.prices

  machines = { for name, instance in local.instances : name => {
    id           = instance.id
    machine_type = instance.instance_type
    spot         = try(local.gpu_machines[name].spot, false)
    gpu          = contains(keys(local.gpu_machines), name)
    monitoring   = name == local.monitoring
    private_ip   = instance.private_ip
    public_ip    = local.public_addresses[name]
    ansible_host = var.access == "public" ? local.public_addresses[name] : instance.id
    proxy = var.access == "public" ? "" : join(" ", [
      "aws ssm start-session --target %h --document-name AWS-StartSSHSession --parameters portNumber=22",
      "--region ${local.region}",
    ])
  } }
}

output "inventory" {
  description = "For Ansible: the groups gpu_nodes and monitoring, and how each machine is reached."
  value       = module.inventory.inventory
}

output "addresses" {
  description = "Each machine's private address, and its public one if it has one."
  value       = module.inventory.addresses
}

output "tunnel_command" {
  description = "Brings Grafana, Prometheus, Alertmanager and the collector's page to this machine's loopback."
  value       = module.inventory.tunnel_command
}

output "price_per_hour" {
  description = "What machines cost while they run; null is unknown. Disks, addresses and traffic come on top."
  value       = module.inventory.price_per_hour
}

output "zone" {
  description = "Where it runs."
  value       = local.zone
}

output "since" {
  description = "When it was first made."
  value       = module.inventory.since
}

output "monitoring" {
  description = "The machine that Prometheus and Grafana run on, with their history on its disk."
  value       = local.monitoring
}
