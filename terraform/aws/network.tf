locals {
  https = length(var.https_cidrs) > 0
  # The collector, and the exporters of the node, of DCGM and of nvidia-smi.
  scraped = toset(["8080", "9100", "9400", "9835"])
  # By its letter: who reorders zones, or adds one, moves nothing that is there.
  numbers = { for zone in distinct(var.zones) : zone => index(split("", "abcdefghijklmnopqrstuvwxyz"), substr(zone, -1, 1)) }
}

resource "aws_vpc" "stack" {
  #checkov:skip=CKV2_AWS_11: logs of every flow cost money by the gigabyte, and training moves terabytes
  cidr_block           = "10.77.0.0/16"
  enable_dns_hostnames = true
  tags                 = { Name = var.name }
}

# Whoever is put into it by mistake is reached by nobody.
resource "aws_default_security_group" "nobody" {
  vpc_id = aws_vpc.stack.id
}

resource "aws_internet_gateway" "stack" {
  vpc_id = aws_vpc.stack.id
  tags   = { Name = var.name }
}

# Of each zone that may come into use: going on to the next one moves machines alone.
resource "aws_subnet" "public" {
  #checkov:skip=CKV_AWS_130: only with access = "public"
  for_each = local.numbers

  vpc_id            = aws_vpc.stack.id
  availability_zone = each.key
  cidr_block        = cidrsubnet(aws_vpc.stack.cidr_block, 8, each.value)
  tags              = { Name = "${var.name}-public-${each.key}" }

  # Not said of a machine: its address goes while it is stopped, and it would be made anew for that.
  map_public_ip_on_launch = var.access == "public"
}

resource "aws_subnet" "private" {
  for_each = local.numbers

  vpc_id            = aws_vpc.stack.id
  availability_zone = each.key
  cidr_block        = cidrsubnet(aws_vpc.stack.cidr_block, 8, 128 + each.value)
  tags              = { Name = "${var.name}-private-${each.key}" }
}

resource "aws_route_table" "public" {
  vpc_id = aws_vpc.stack.id
  tags   = { Name = "${var.name}-public" }
}

resource "aws_route" "public" {
  route_table_id         = aws_route_table.public.id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.stack.id
}

resource "aws_route_table_association" "public" {
  for_each = local.numbers

  route_table_id = aws_route_table.public.id
  subnet_id      = aws_subnet.public[each.key].id
}

# The way out, for packages and images, of machines without a public address.
resource "aws_eip" "packages" {
  #checkov:skip=CKV2_AWS_19: it is the NAT gateway's
  count = var.access == "private" ? 1 : 0

  domain = "vpc"
  tags   = { Name = "${var.name}-packages" }
}

resource "aws_nat_gateway" "packages" {
  count = var.access == "private" ? 1 : 0

  allocation_id = aws_eip.packages[0].id
  subnet_id     = aws_subnet.public[sort(var.zones)[0]].id
  tags          = { Name = var.name }

  depends_on = [aws_route.public]
}

resource "aws_route_table" "private" {
  vpc_id = aws_vpc.stack.id
  tags   = { Name = "${var.name}-private" }
}

resource "aws_route" "packages" {
  count = var.access == "private" ? 1 : 0

  route_table_id         = aws_route_table.private.id
  destination_cidr_block = "0.0.0.0/0"
  nat_gateway_id         = aws_nat_gateway.packages[0].id
}

resource "aws_route_table_association" "private" {
  for_each = local.numbers

  route_table_id = aws_route_table.private.id
  subnet_id      = aws_subnet.private[each.key].id
}

# Kept while the machine is stopped: a name in the DNS points to it.
resource "aws_eip" "monitoring" {
  count = local.https ? 1 : 0

  domain   = "vpc"
  instance = local.instances[local.monitoring].id
  tags     = { Name = local.monitoring }

  depends_on = [aws_route.public]
}
