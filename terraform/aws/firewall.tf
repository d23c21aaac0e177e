resource "aws_security_group" "machine" {
  name        = "${var.name}-machine"
  description = "Each machine: goes out; SSH comes in from ssh_cidrs, or not at all"
  vpc_id      = aws_vpc.stack.id
  tags        = { Name = "${var.name}-machine" }
}

resource "aws_vpc_security_group_egress_rule" "out" {
  #checkov:skip=CKV_AWS_382: packages, images, mail relays and webhooks have addresses of all kinds
  security_group_id = aws_security_group.machine.id
  description       = "Packages, images, alerts"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}

resource "aws_vpc_security_group_ingress_rule" "ssh" {
  for_each = toset(var.ssh_cidrs)

  security_group_id = aws_security_group.machine.id
  description       = "SSH from ssh_cidrs"
  cidr_ipv4         = each.key
  ip_protocol       = "tcp"
  from_port         = 22
  to_port           = 22
}

resource "aws_security_group" "monitoring" {
  name        = "${var.name}-monitoring"
  description = "The monitoring machine: HTTPS comes in from https_cidrs, or not at all"
  vpc_id      = aws_vpc.stack.id
  tags        = { Name = local.monitoring }
}

resource "aws_vpc_security_group_ingress_rule" "https" {
  #checkov:skip=CKV_AWS_260: port 80 is for the certificate and sends on to 443; it is open only with https_cidrs
  for_each = { for pair in setproduct(distinct(var.https_cidrs), ["tcp-80", "tcp-443", "udp-443"]) : join("-", pair) => pair }

  security_group_id = aws_security_group.monitoring.id
  description       = "Grafana by the stack's profile public"
  cidr_ipv4         = each.value[0]
  ip_protocol       = split("-", each.value[1])[0]
  from_port         = split("-", each.value[1])[1]
  to_port           = split("-", each.value[1])[1]
}

resource "aws_security_group" "node" {
  name        = "${var.name}-node"
  description = "A GPU machine: the monitoring machine scrapes it"
  vpc_id      = aws_vpc.stack.id
  tags        = { Name = "${var.name}-node" }
}

locals {
  # The first GPU machine may be the monitoring machine too, and is then of that group.
  gpu_groups = merge({ node = aws_security_group.node.id }, local.on_one ? { first = aws_security_group.monitoring.id } : {})
  gpu_roads  = var.node_to_node ? setproduct(keys(local.gpu_groups), keys(local.gpu_groups)) : []
}

resource "aws_vpc_security_group_ingress_rule" "node_to_node" {
  for_each = { for road in local.gpu_roads : join("-to-", road) => road }

  security_group_id            = local.gpu_groups[each.value[1]]
  description                  = "From GPU machine to GPU machine, for training over several"
  referenced_security_group_id = local.gpu_groups[each.value[0]]
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_ingress_rule" "scrape" {
  for_each = local.scraped

  security_group_id            = aws_security_group.node.id
  description                  = "From the monitoring machine to collector and exporters"
  referenced_security_group_id = aws_security_group.monitoring.id
  ip_protocol                  = "tcp"
  from_port                    = each.key
  to_port                      = each.key
}
