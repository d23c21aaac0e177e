locals {
  table = jsondecode(file("${path.module}/prices.json"))

  # What the user says goes before the table. A price that nobody knows is null.
  prices = { for name in setunion(keys(local.table.machine_types), keys(local.table.accelerators), keys(var.prices)) :
    name => { for kind in ["on_demand", "spot"] : kind => try(coalesce(
      try(var.prices[name][kind], null),
      try(local.table.machine_types[name][kind], null),
      try(local.table.accelerators[name][kind], null),
    ), null) }
  }

  gpu_prices = { for name, machine in local.gpu_machines : name => try(
    local.prices[machine.machine_type][machine.spot ? "spot" : "on_demand"] + (machine.accelerator == null ? 0 :
    local.prices[machine.accelerator.type][machine.spot ? "spot" : "on_demand"] * machine.accelerator.count), null
  ) }

  gpus = { for name, machine in local.gpu_machines : name => try(
    machine.accelerator.count, local.table.machine_types[machine.machine_type].gpus, null
  ) }
}
