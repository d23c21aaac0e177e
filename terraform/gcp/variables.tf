variable "project" {
  description = "The Google Cloud project that everything is made in, and that pays."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "project: '${var.project}' is no id. `gcloud projects list` shows yours."
  }
}

variable "zones" {
  description = "Zones of one region, the best first. `make deploy` goes on to the next where machines are sold out."
  type        = list(string)
  default     = ["us-central1-a", "us-central1-b", "us-central1-c"]
  nullable    = false

  validation {
    condition     = length(var.zones) > 0
    error_message = "zones: name at least one zone, as in [\"us-central1-a\"]."
  }

  validation {
    condition     = alltrue([for zone in var.zones : can(regex("^[a-z]+-[a-z]+[0-9]+-[a-z]$", zone))])
    error_message = "zones: ${jsonencode(var.zones)} holds what is no zone. `gcloud compute zones list` shows them."
  }

  validation {
    condition     = length(distinct([for zone in var.zones : replace(zone, "/-[a-z]$/", "")])) <= 1
    error_message = "zones: ${jsonencode(var.zones)} are of several regions, the network is of one. Keep those of one."
  }
}

variable "zone" {
  description = "The zone in use; empty is the first of `zones`. `make deploy` writes it to zone.auto.tfvars.json."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = var.zone == "" || contains(var.zones, var.zone)
    error_message = "zone: '${var.zone}' is not among zones. Put it back: machines live in it; or make destroy first."
  }
}

variable "name" {
  description = "What every name begins with. Two deployments in one project need two."
  type        = string
  default     = "trainvitals"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,18}[a-z0-9]$", var.name))
    error_message = "name: '${var.name}' does not fit. Take 3 to 20 of a-z, 0-9 and -, a letter first, no dash last."
  }
}

variable "access" {
  description = "`private`: no public address, SSH by the cloud's own way. `public`: SSH from `ssh_cidrs`."
  type        = string
  default     = "private"
  nullable    = false

  validation {
    condition     = contains(["private", "public"], var.access)
    error_message = "access: '${var.access}' is neither \"private\" nor \"public\"."
  }
}

variable "ssh_cidrs" {
  description = "The addresses that SSH is open to with `access = \"public\"`."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for cidr in var.ssh_cidrs : can(cidrnetmask(cidr))])
    error_message = "ssh_cidrs: ${jsonencode(var.ssh_cidrs)} must be IPv4 ranges, as 203.0.113.7/32."
  }

  validation {
    condition     = alltrue([for cidr in var.ssh_cidrs : try(tonumber(split("/", cidr)[1]) >= 8, true)])
    error_message = "ssh_cidrs: ${jsonencode(var.ssh_cidrs)} opens SSH to the world. Name your own address."
  }

  validation {
    condition     = var.access != "public" || length(var.ssh_cidrs) > 0
    error_message = "ssh_cidrs: access = \"public\" needs the addresses that SSH is open to, as [\"203.0.113.7/32\"]."
  }

  validation {
    condition     = var.access != "private" || length(var.ssh_cidrs) == 0
    error_message = "ssh_cidrs: it opens nothing with access = \"private\". Leave it out, or set access = \"public\"."
  }

  validation {
    condition = alltrue([for cidr in var.ssh_cidrs : try(cidrhost(cidr, 0) == split("/", cidr)[0], true)])
    error_message = "ssh_cidrs: ${join(", ", [
      for cidr in var.ssh_cidrs : "${cidr} begins within ${cidrhost(cidr, 0)}/${split("/", cidr)[1]}"
      if try(cidrhost(cidr, 0) != split("/", cidr)[0], false)
    ])}. Write that range, or /32 for the one address."
  }
}

variable "https_cidrs" {
  description = "Who reaches ports 80 and 443 of the monitoring machine, for the stack's profile `public`."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for cidr in var.https_cidrs : can(cidrnetmask(cidr))])
    error_message = "https_cidrs: ${jsonencode(var.https_cidrs)} holds what is no IPv4 range. Everybody is 0.0.0.0/0."
  }

  validation {
    condition = alltrue([for cidr in var.https_cidrs : try(cidrhost(cidr, 0) == split("/", cidr)[0], true)])
    error_message = "https_cidrs: ${join(", ", [
      for cidr in var.https_cidrs : "${cidr} begins within ${cidrhost(cidr, 0)}/${split("/", cidr)[1]}"
      if try(cidrhost(cidr, 0) != split("/", cidr)[0], false)
    ])}. Write that range, or /32 for the one address."
  }
}

variable "node_to_node" {
  description = "Whether GPU machines reach each other on every port, as training over several of them needs."
  type        = bool
  default     = false
  nullable    = false
}

variable "ssh_public_key" {
  description = "Your public SSH key, or its file."
  type        = string
  default     = "~/.ssh/id_ed25519.pub"
  nullable    = false

  validation {
    condition = can(regex(
      "^(ssh-|ecdsa-sha2-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/]+=*( [^\\n]*)?\\n?$",
      try(file(pathexpand(var.ssh_public_key)), var.ssh_public_key),
    ))
    error_message = "ssh_public_key: neither a public key nor the file of one. `ssh-keygen -t ed25519` makes one."
  }
}

variable "auto_stop" {
  description = "Stops GPU machines each day at `stop_at` (`20:00`), and after `idle_minutes` of idle GPUs."
  type = object({
    stop_at      = optional(string, "")
    time_zone    = optional(string, "UTC")
    idle_minutes = optional(number, 0)
  })
  default  = {}
  nullable = false

  validation {
    condition     = can(regex("^(|([01][0-9]|2[0-3]):[0-5][0-9])$", var.auto_stop.stop_at))
    error_message = "auto_stop: stop_at '${var.auto_stop.stop_at}' is no time of the day. Write 20:00, or leave it out."
  }

  validation {
    condition     = can(regex("^[A-Z][A-Za-z_]+(/[A-Z][A-Za-z0-9_+-]+)*$", var.auto_stop.time_zone))
    error_message = "auto_stop: time_zone '${var.auto_stop.time_zone}' is none. Write UTC, or one as Europe/Berlin."
  }

  validation {
    condition     = contains(concat([0], range(5, 1000)), var.auto_stop.idle_minutes)
    error_message = "auto_stop: idle_minutes must be a whole number from 5 to 999, or 0 for never."
  }

  validation {
    condition = var.auto_stop.stop_at == "" || var.auto_stop.idle_minutes > 0 || alltrue([
      for machine in var.gpu_machines : !can(regex("^(a2-ultragpu|a3|a4)-", machine.machine_type))
    ])
    error_message = "auto_stop: stop_at may fail for a2-ultragpu, a3 and a4, which have local SSDs. Add idle_minutes, by which they switch themselves off."
  }
}

variable "prices" {
  description = "Dollars an hour by machine type or accelerator; they go before those of prices.json."
  type        = map(object({ on_demand = optional(number), spot = optional(number) }))
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue(flatten([for price in var.prices : [for dollars in price : try(dollars >= 0, true)]]))
    error_message = "prices: one is below zero. Write dollars an hour, as { g2-standard-4 = { on_demand = 0.71 } }."
  }
}

variable "labels" {
  description = "More labels on everything that can bear them."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition = alltrue([
      for key, value in var.labels :
      can(regex("^[a-z][a-z0-9_-]{0,62}$", key)) && can(regex("^[a-z0-9_-]{0,63}$", value))
    ])
    error_message = "labels: ${jsonencode(var.labels)} must be up to 63 of a-z, 0-9, _ and - each."
  }

  validation {
    condition     = length(setintersection(keys(var.labels), ["app", "deployment"])) == 0
    error_message = "labels: app and deployment are set already. Choose other keys."
  }
}
