locals {
  # a4x has a message of its own.
  gpu_types = join("|", [
    "n1-(standard|highmem|highcpu)-(1|2|4|8|16|32|64|96)", "n1-custom-[0-9]+-[0-9]+(-ext)?",
    "g2-standard-(4|8|12|16|24|32|48|96)", "g2-custom-[0-9]+-[0-9]+", "g4-standard-(6|12|24|48|96|192|384)",
    "a2-highgpu-[1248]g", "a2-megagpu-16g", "a2-ultragpu-[1248]g(-nolssd)?",
    "a3-highgpu-[1248]g", "a3-(edge|mega|ultra)gpu-8g(-nolssd)?", "a4-highgpu-8g(-nolssd)?", "a4x-[a-z0-9-]+",
  ])
}

variable "gpu_machines" {
  description = "GPU machines by kind: machine type, how many, spot or not, disk; for N1 the accelerator."
  type = map(object({
    machine_type = optional(string, "")
    count        = optional(number, 1)
    spot         = optional(bool, false)
    disk_gb      = optional(number, 200)
    accelerator  = optional(object({ type = string, count = optional(number, 1) }))
  }))
  default  = { gpu = { machine_type = "g2-standard-4" } }
  nullable = false

  validation {
    condition     = length(var.gpu_machines) > 0
    error_message = "gpu_machines: name at least one kind, as in { gpu = { machine_type = \"g2-standard-4\" } }."
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
    error_message = "gpu_machines: disk_gb must be a whole number from 50, which deep-learning images take, to 65536."
  }

  validation {
    condition = alltrue([
      for machine in var.gpu_machines : can(regex("^(n1|a2|a3|a4|a4x|g2|g4)-[a-z0-9-]+$", machine.machine_type))
    ])
    error_message = "gpu_machines: ${join(", ", [
      for kind, machine in var.gpu_machines : "${kind} has '${machine.machine_type}'"
      if !can(regex("^(n1|a2|a3|a4|a4x|g2|g4)-[a-z0-9-]+$", machine.machine_type))
    ])}, a machine_type without GPU. Take g2-, g4-, a2-, a3-, a4-, or n1- with an accelerator."
  }

  validation {
    condition = alltrue([
      for machine in var.gpu_machines : anytrue([
        contains(keys(var.prices), machine.machine_type),
        !can(regex("^(n1|a2|a3|a4|a4x|g2|g4)-[a-z0-9-]+$", machine.machine_type)),
        can(regex("^(${local.gpu_types})$", machine.machine_type)),
      ])
    ])
    error_message = "gpu_machines: ${join(", ", [
      for kind, machine in var.gpu_machines : "${kind} has '${machine.machine_type}'"
      if !contains(keys(var.prices), machine.machine_type) && !can(regex("^(${local.gpu_types})$", machine.machine_type))
    ])}, a machine_type not known to run here. A newer one: give its price in prices."
  }

  validation {
    condition     = alltrue([for machine in var.gpu_machines : !startswith(machine.machine_type, "a4x-")])
    error_message = "gpu_machines: a4x has ARM processors, for which there are no images here. Take a4- or a3-."
  }

  validation {
    condition = alltrue([
      for machine in var.gpu_machines : anytrue([
        machine.spot,
        contains(keys(var.prices), machine.machine_type),
        !can(regex("^a3-highgpu-[124]g$", machine.machine_type)),
      ])
    ])
    error_message = "gpu_machines: a3-highgpu of 1, 2 or 4 GPUs is offered as spot. Set spot = true, or where you get it otherwise its price in prices."
  }

  validation {
    condition = alltrue([
      for machine in var.gpu_machines : startswith(machine.machine_type, "n1-") || machine.accelerator == null
    ])
    error_message = "gpu_machines: accelerator is for n1- alone, other types bring their GPUs. Leave accelerator out."
  }

  validation {
    condition = alltrue([
      for machine in var.gpu_machines : !startswith(machine.machine_type, "n1-") || machine.accelerator != null
    ])
    error_message = "gpu_machines: n1- has no GPU by itself. Add accelerator = { type = \"nvidia-tesla-t4\" }."
  }

  validation {
    condition = alltrue([
      for machine in var.gpu_machines : try(
        startswith(machine.accelerator.type, "nvidia-") && contains([1, 2, 4, 8], machine.accelerator.count),
        machine.accelerator == null,
      )
    ])
    error_message = "gpu_machines: accelerator.type begins with nvidia-, as nvidia-tesla-t4; its count is 1, 2, 4 or 8."
  }
}

variable "monitoring" {
  description = "The machine of Prometheus and Grafana; `null`: the first GPU machine by name does it too."
  type        = object({ machine_type = optional(string, "e2-standard-2"), disk_gb = optional(number, 50) })
  default     = {}

  validation {
    condition     = var.monitoring == null || can(regex("^[a-z][a-z0-9]*-[a-z0-9-]+$", var.monitoring.machine_type))
    error_message = "monitoring: machine_type is no machine type. One looks like e2-standard-2."
  }

  validation {
    condition     = try(contains(range(20, 1001), var.monitoring.disk_gb), true)
    error_message = "monitoring: disk_gb must be a whole number from 20, which Prometheus alone may take, to 1000."
  }

  validation {
    condition     = !can(regex("^(t2a|c4a|n4a|a4x)-", var.monitoring.machine_type))
    error_message = "monitoring: ${try(var.monitoring.machine_type, "")} has an ARM processor, for which there is no image here. Take e2-standard-2."
  }
}

variable "image" {
  description = "What GPU machines boot: `deep-learning`, `debian-12`, `ubuntu-2204`, `ubuntu-2404`, or one below."
  type        = string
  default     = "deep-learning"
  nullable    = false

  validation {
    condition = (
      contains(["deep-learning", "ubuntu-accelerator", "debian-12", "ubuntu-2204", "ubuntu-2404"], var.image)
      || can(regex("^(common|pytorch|tf|ubuntu-accelerator)-[a-z0-9-]+$", var.image))
      || can(regex("^(https://[a-z.]+/compute/v1/)?projects/[^/]+/global/images/(family/)?[a-z0-9-]+$", var.image))
    )
    error_message = "image: '${var.image}' is not known. Take deep-learning, ubuntu-2404 or another of the README."
  }
}
