locals {
  # Google's proxy for SSH sends from here.
  iap   = "35.235.240.0/20"
  https = length(var.https_cidrs) > 0
  # The collector, and the exporters of the node, of DCGM and of nvidia-smi.
  scraped = [8080, 9100, 9400, 9835]
  # The first GPU machine may be the monitoring machine too, and then bears that tag.
  gpu_tags = concat(["${var.name}-node"], local.on_one ? ["${var.name}-monitoring"] : [])
}

resource "google_project_service" "needed" {
  for_each = toset(concat(
    ["compute.googleapis.com", "iam.googleapis.com", "iap.googleapis.com", "oslogin.googleapis.com"],
    local.scheduled ? ["cloudresourcemanager.googleapis.com"] : [],
  ))

  service            = each.key
  disable_on_destroy = false
}

resource "google_compute_network" "stack" {
  name                    = var.name
  auto_create_subnetworks = false

  depends_on = [google_project_service.needed]
}

resource "google_compute_subnetwork" "stack" {
  #checkov:skip=CKV_GCP_76: there is no IPv6 in this network
  #checkov:skip=CKV_GCP_26: logs of every flow cost money by the gigabyte, and training moves terabytes
  name                     = var.name
  network                  = google_compute_network.stack.id
  region                   = local.region
  ip_cidr_range            = "10.77.0.0/24"
  private_ip_google_access = true
}

# The way out, for packages and images, of machines without a public address.
resource "google_compute_router" "stack" {
  count = var.access == "private" ? 1 : 0

  name    = var.name
  network = google_compute_network.stack.id
  region  = local.region
}

resource "google_compute_router_nat" "packages" {
  count = var.access == "private" ? 1 : 0

  name                               = var.name
  router                             = google_compute_router.stack[0].name
  region                             = local.region
  nat_ip_allocate_option             = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat = "ALL_SUBNETWORKS_ALL_IP_RANGES"

  log_config {
    enable = true
    filter = "ERRORS_ONLY"
  }
}

# Kept while the machine is stopped: a name in the DNS points to it.
resource "google_compute_address" "monitoring" {
  count = local.https ? 1 : 0

  name   = "${var.name}-monitoring"
  region = local.region

  depends_on = [google_project_service.needed]
}

# What no rule here lets in stays out: that is what a network of Google's does by itself.
resource "google_compute_firewall" "ssh" {
  name          = "${var.name}-ssh"
  network       = google_compute_network.stack.id
  description   = "SSH, from Google's proxy or from the addresses of ssh_cidrs"
  source_ranges = var.access == "public" ? var.ssh_cidrs : [local.iap]
  target_tags   = [var.name]

  allow {
    protocol = "tcp"
    ports    = ["22"]
  }
}

resource "google_compute_firewall" "scrape" {
  name        = "${var.name}-scrape"
  network     = google_compute_network.stack.id
  description = "From the monitoring machine to the collectors and exporters of the others"
  source_tags = ["${var.name}-monitoring"]
  target_tags = ["${var.name}-node"]

  allow {
    protocol = "tcp"
    ports    = local.scraped
  }
}

resource "google_compute_firewall" "node_to_node" {
  count = var.node_to_node ? 1 : 0

  name        = "${var.name}-node-to-node"
  network     = google_compute_network.stack.id
  description = "From GPU machine to GPU machine, for training over several"
  source_tags = local.gpu_tags
  target_tags = local.gpu_tags

  allow {
    protocol = "all"
  }
}

resource "google_compute_firewall" "https" {
  #checkov:skip=CKV_GCP_106: port 80 is for the certificate and sends on to 443; it is open only with https_cidrs
  count = local.https ? 1 : 0

  name          = "${var.name}-https"
  network       = google_compute_network.stack.id
  description   = "Grafana by the stack's profile public"
  source_ranges = var.https_cidrs
  target_tags   = ["${var.name}-monitoring"]

  allow {
    protocol = "tcp"
    ports    = ["80", "443"]
  }

  allow {
    protocol = "udp"
    ports    = ["443"]
  }
}
