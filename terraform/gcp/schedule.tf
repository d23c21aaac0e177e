locals {
  scheduled = var.auto_stop.stop_at != ""
  stop_at   = split(":", local.scheduled ? var.auto_stop.stop_at : "00:00")
}

# Google itself stops the GPU machines each day at this time; make deploy starts them again.
resource "google_compute_resource_policy" "stop" {
  count = local.scheduled ? 1 : 0

  name        = "${var.name}-stop"
  region      = local.region
  description = "Stops the GPU machines of ${var.name} each day"

  instance_schedule_policy {
    time_zone = var.auto_stop.time_zone

    vm_stop_schedule {
      schedule = "${tonumber(local.stop_at[1])} ${tonumber(local.stop_at[0])} * * *"
    }
  }

  depends_on = [google_project_service.needed]
}

data "google_project" "this" {
  count = local.scheduled ? 1 : 0

  depends_on = [google_project_service.needed]
}

# Google keeps the id of a role that was deleted for weeks: each has one of its own.
resource "terraform_data" "scheduler" {
  count = local.scheduled ? 1 : 0

  input = formatdate("YYYYMMDDhhmmss", plantimestamp())

  lifecycle {
    ignore_changes = [input]
  }
}

# What Google asks for before it lets a schedule be attached, and nothing beyond.
resource "google_project_iam_custom_role" "scheduler" {
  count = local.scheduled ? 1 : 0

  role_id     = replace("${var.name}_scheduler_${terraform_data.scheduler[0].output}", "-", "_")
  title       = "Schedules of ${var.name}"
  permissions = ["compute.instances.start", "compute.instances.stop"]
}

resource "google_project_iam_member" "scheduler" {
  count = local.scheduled ? 1 : 0

  project = var.project
  role    = google_project_iam_custom_role.scheduler[0].id
  member  = "serviceAccount:service-${data.google_project.this[0].number}@compute-system.iam.gserviceaccount.com"
}
