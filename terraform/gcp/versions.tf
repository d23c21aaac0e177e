terraform {
  required_version = ">= 1.9"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "6.50.0"
    }
  }
}

provider "google" {
  project        = var.project
  region         = local.region
  zone           = local.zone
  default_labels = merge({ app = "trainvitals", deployment = var.name }, var.labels)
}
