locals {
  known = merge(var.table.machine_types, try(var.table.accelerators, {}))

  # What the user says goes before the table.
  rates = { for type in setunion(keys(local.known), keys(var.prices)) : type => {
    for kind in ["on_demand", "spot"] : kind => try(var.prices[type][kind] + 0, local.known[type][kind], null)
  } }

  # What nobody knows is null, and so is what it is a part of.
  prices = { for name, machine in var.machines : name => try(sum([
    for part in concat([{ type = machine.machine_type, count = 1 }], machine.accelerator[*]) :
    part.count * local.rates[part.type][machine.spot ? "spot" : "on_demand"]
  ]), null) }

  gpus = { for name, machine in var.machines : name => try(
    machine.accelerator.count, local.known[machine.machine_type].gpus, null
  ) }
}
