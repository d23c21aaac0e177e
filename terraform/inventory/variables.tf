variable "machines" {
  description = "What was made, by name: how each is reached, what it is for, what it costs."
  type = map(object({
    id           = string
    ansible_host = string
    private_ip   = string
    public_ip    = string
    proxy        = string
    gpu          = bool
    monitoring   = bool
    gpus         = optional(number)
    price        = optional(number)
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
  description = "The table of prices, for its date and its source."
  type        = object({ as_of = string, region = string, source = string })
}
