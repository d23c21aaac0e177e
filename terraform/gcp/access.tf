locals {
  key_is_text = can(regex("^[a-z0-9@.-]+ [A-Za-z0-9+/]+", var.ssh_public_key))
  key         = trimspace(local.key_is_text ? var.ssh_public_key : file(pathexpand(var.ssh_public_key)))

  caller            = data.google_client_openid_userinfo.caller.email
  caller_is_a_robot = endswith(local.caller, ".gserviceaccount.com")
  robot             = one(data.google_service_account.caller[*].unique_id)
  letters           = split("", replace(lower(local.caller), "/[^a-z0-9]/", "_"))
  # As OS Login names accounts.
  mailed_user = join("", slice(local.letters, 0, min(32, length(local.letters))))
  user        = local.caller_is_a_robot ? "sa_${local.robot}" : local.mailed_user
}

data "google_client_openid_userinfo" "caller" {}

data "google_service_account" "caller" {
  count = local.caller_is_a_robot ? 1 : 0

  account_id = local.caller
}

resource "google_os_login_ssh_public_key" "caller" {
  user    = local.caller
  key     = local.key
  project = var.project

  depends_on = [google_project_service.needed]
}

# Machines act as this account, which may do nothing: it has no role anywhere.
resource "google_service_account" "machines" {
  account_id   = "${var.name}-vm"
  display_name = "Machines of ${var.name}, without any right"

  depends_on = [google_project_service.needed]
}
