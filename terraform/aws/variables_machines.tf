variable "gpu_machines" {
  description = "GPU machines by kind: machine type, how many, spot or not, disk."
  type = map(object({
    machine_type = optional(string, "")
    count        = optional(number, 1)
    spot         = optional(bool, false)
    disk_gb      = optional(number, 200)
    accelerator  = optional(object({ type = string, count = optional(number, 1) }))
  }))
  default  = { gpu = { machine_type = "g6.xlarge" } }
  nullable = false

  validation {
    condition     = length(var.gpu_machines) > 0
    error_message = "gpu_machines: name at least one kind, as in { gpu = { machine_type = \"g6.xlarge\" } }."
  }

  validation {
    condition = alltrue([
      for kind in keys(var.gpu_machines) : can(regex("^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$", kind))
    ])
    error_message = "gpu_machines: a kind is 1 to 20 of a-z, 0-9 and -, a letter first."
  }

  validation {
    condition     = alltrue([for machine in var.gpu_machines : contains(range(1, 51), machine.count)])
    error_message = "gpu_machines: count must be a whole number from 1 to 50. Remove a kind that you do not want."
  }

  validation {
    condition = alltrue([
      for machine in var.gpu_machines :
      machine.disk_gb >= 50 && machine.disk_gb <= 65536 && floor(machine.disk_gb) == machine.disk_gb
    ])
    error_message = "gpu_machines: disk_gb must be a whole number from 50, which plain images take with Docker and driver, to 65536."
  }

  validation {
    condition = alltrue([
      for machine in var.gpu_machines : can(regex("^(g|gr|p)[0-9]+[a-z0-9-]*[.][a-z0-9-]+$", machine.machine_type))
    ])
    error_message = "gpu_machines: ${join(", ", [
      for kind, machine in var.gpu_machines : "${kind} has '${machine.machine_type}'"
      if !can(regex("^(g|gr|p)[0-9]+[a-z0-9-]*[.][a-z0-9-]+$", machine.machine_type))
    ])}, a machine_type without GPU. Take g4dn., g5., g6., g6e., p4d., p5. or a newer one."
  }

  validation {
    condition = alltrue([
      for machine in var.gpu_machines : contains(keys(var.prices), machine.machine_type)
      || !can(regex("^(g|gr|p)[0-9]+[a-z0-9-]*[.][a-z0-9-]+$", machine.machine_type)) || can(regex(
        "^(g4ad|g4dn|g5g?|g6[ef]?|gr6f?|p4de?|p5(e|en)?|p6-b[0-9]+|p6e-[a-z0-9]+)[.]([0-9]*xlarge|metal)$", machine.machine_type
      ))
    ])
    error_message = "gpu_machines: ${join(", ", [
      for kind, machine in var.gpu_machines : "${kind} has '${machine.machine_type}'"
      if !contains(keys(var.prices), machine.machine_type) && !can(regex(
        "^(g4ad|g4dn|g5g?|g6[ef]?|gr6f?|p4de?|p5(e|en)?|p6-b[0-9]+|p6e-[a-z0-9]+)[.]([0-9]*xlarge|metal)$", machine.machine_type
      ))
    ])}, a machine_type not known to run here. A newer one: give its price in prices."
  }

  validation {
    condition     = alltrue([for machine in var.gpu_machines : !startswith(machine.machine_type, "g4ad.")])
    error_message = "gpu_machines: g4ad has GPUs by AMD, the stack watches NVIDIA's. Take g4dn., g5. or g6."
  }

  validation {
    condition = !can(regex("^(deep-learning$|[a-z0-9.-]+-ubuntu-2[0-9][.]04$)", var.image)) || alltrue([
      for machine in var.gpu_machines : machine.disk_gb >= 100
    ])
    error_message = "gpu_machines: disk_gb must be 100 or more, deep-learning images take it. Or choose another image."
  }

  validation {
    condition     = alltrue([for machine in var.gpu_machines : !can(regex("^(g5g|p6e)", machine.machine_type))])
    error_message = "gpu_machines: g5g and p6e have ARM processors, for which there are no images here. Take g5. or p5."
  }

  validation {
    condition     = alltrue([for machine in var.gpu_machines : machine.accelerator == null])
    error_message = "gpu_machines: accelerator is for Google's n1- alone, types here bring their GPUs. Leave it out."
  }
}

variable "monitoring" {
  description = "The machine of Prometheus and Grafana; `null`: the first GPU machine by name does it too."
  type        = object({ machine_type = optional(string, "t3.large"), disk_gb = optional(number, 50) })
  default     = {}

  validation {
    condition     = var.monitoring == null || can(regex("^[a-z][a-z0-9-]*[.][a-z0-9-]+$", var.monitoring.machine_type))
    error_message = "monitoring: machine_type is no machine type. One looks like t3.large."
  }

  validation {
    condition     = try(contains(range(20, 1001), var.monitoring.disk_gb), true)
    error_message = "monitoring: disk_gb must be a whole number from 20, which Prometheus alone may take, to 1000."
  }

  validation {
    condition     = !can(regex("^(a1|[a-z]+[0-9]+g[a-z]*)[.]", var.monitoring.machine_type))
    error_message = "monitoring: ${try(var.monitoring.machine_type, "")} has an ARM processor, for which there is no image here. Take t3.large."
  }
}

variable "image" {
  description = "What GPU machines boot: `deep-learning`, `debian-12`, `ubuntu-2204`, `ubuntu-2404`, or one below."
  type        = string
  default     = "deep-learning"
  nullable    = false

  validation {
    condition = (
      contains(["deep-learning", "debian-12", "ubuntu-2204", "ubuntu-2404"], var.image)
      || can(regex("^[a-z0-9.-]+-ubuntu-2[0-9][.]04$", var.image)) || can(regex("^ami-[0-9a-f]{8,17}$", var.image))
    )
    error_message = "image: '${var.image}' is not known. Take deep-learning, ubuntu-2404 or another of the README."
  }
}
