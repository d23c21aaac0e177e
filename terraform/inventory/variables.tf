variable "machines" {
  description = "What was made, by name: what it is, how it is reached, what it is for."
  type = map(object({
    id           = string
    ansible_host = string
    private_ip   = string
    public_ip    = string
    proxy        = string
    gpu          = bool
    monitoring   = bool
    machine_type = string
    spot         = optional(bool, false)
    accelerator  = optional(object({ type = string, count = number }))
  }))
}

variable "user" {
  description = "Who logs in by SSH."
  type        = string
}

variable "ssh_public_key" {
  description = "The public key, or the path of its file, as the user gave it."
  type        = string
}

variable "idle_minutes" {
  description = "After how many idle minutes a GPU machine switches itself off; 0 never."
  type        = number
}

variable "table" {
  description = "What prices.json says."
  type        = any
}

variable "prices" {
  description = "The user's own prices, by machine type."
  type        = map(object({ on_demand = optional(number), spot = optional(number) }))
}
