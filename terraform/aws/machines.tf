locals {
  zone   = coalesce(var.zone, var.zones[0])
  region = replace(var.zones[0], "/[a-z]$/", "")

  # A machine of each kind and number: gpu = { count = 2 } makes <name>-gpu-1 and <name>-gpu-2.
  numbered = flatten([for kind, machine in var.gpu_machines : [for number in range(machine.count) : merge(machine, {
    name = "${var.name}-${kind}-${number + 1}"
  })]])
  gpu_machines = { for machine in local.numbered : machine.name => machine }
  on_one       = var.monitoring == null
  monitoring   = local.on_one ? sort(keys(local.gpu_machines))[0] : "${var.name}-monitoring"
  names        = setunion(keys(local.gpu_machines), [local.monitoring])

  # The names under which their makers publish the newest image of each region.
  ubuntu        = "canonical/ubuntu/server"
  deep_learning = "deeplearning/ami/x86_64"
  families = {
    deep-learning = "${local.deep_learning}/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
    debian-12     = "debian/release/12/latest/amd64"
    ubuntu-2204   = "${local.ubuntu}/22.04/stable/current/amd64/hvm/ebs-gp2/ami-id"
    ubuntu-2404   = "${local.ubuntu}/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"
  }
  own_image = startswith(var.image, "ami-")
  family    = lookup(local.families, var.image, "${local.deep_learning}/${var.image}/latest/ami-id")
}

data "aws_ssm_parameter" "image" {
  for_each = toset(concat(local.own_image ? [] : [local.family], local.on_one ? [] : [local.families.ubuntu-2404]))

  name = "/aws/service/${each.key}"
}

locals {
  newest = { for name, parameter in data.aws_ssm_parameter.image : name => nonsensitive(parameter.value) }
}

# Another image makes machines anew; a newer one of the same name does not.
resource "terraform_data" "image" {
  input = var.image
}

resource "aws_instance" "gpu" {
  #checkov:skip=CKV_AWS_126: the stack watches it by the second
  #checkov:skip=CKV_AWS_88: only with access = "public"; by default there is no public address
  #checkov:skip=CKV2_AWS_41: it has a role with access = "private", and needs none otherwise
  for_each = local.gpu_machines

  ami                                  = local.own_image ? var.image : local.newest[local.family]
  instance_type                        = each.value.machine_type
  subnet_id                            = local.subnets[each.key]
  vpc_security_group_ids               = local.groups[each.key]
  iam_instance_profile                 = one(aws_iam_instance_profile.machines[*].name)
  user_data                            = local.first_boot[each.key]
  ebs_optimized                        = true
  instance_initiated_shutdown_behavior = "stop"
  tags                                 = { Name = each.key }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  root_block_device {
    volume_type = "gp3"
    volume_size = each.value.disk_gb
    encrypted   = true
    tags        = { Name = each.key }
  }

  dynamic "instance_market_options" {
    for_each = each.value.spot ? [1] : []

    content {
      market_type = "spot"

      spot_options {
        instance_interruption_behavior = "stop"
        spot_instance_type             = "persistent"
      }
    }
  }

  lifecycle {
    ignore_changes       = [ami, user_data]
    replace_triggered_by = [terraform_data.image]
  }

  depends_on = [aws_route.packages, aws_route_table_association.private, aws_iam_role_policy.sessions]
}

resource "aws_instance" "monitoring" {
  #checkov:skip=CKV_AWS_126: the stack watches it by the second
  #checkov:skip=CKV_AWS_88: only with access = "public"; by default there is no public address
  #checkov:skip=CKV2_AWS_41: it has a role with access = "private", and needs none otherwise
  count = local.on_one ? 0 : 1

  ami                                  = local.newest[local.families.ubuntu-2404]
  instance_type                        = var.monitoring.machine_type
  subnet_id                            = local.subnets[local.monitoring]
  vpc_security_group_ids               = local.groups[local.monitoring]
  iam_instance_profile                 = one(aws_iam_instance_profile.machines[*].name)
  user_data                            = local.first_boot[local.monitoring]
  ebs_optimized                        = true
  instance_initiated_shutdown_behavior = "stop"
  tags                                 = { Name = local.monitoring }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  root_block_device {
    volume_type = "gp3"
    volume_size = var.monitoring.disk_gb
    encrypted   = true
    tags        = { Name = local.monitoring }
  }

  lifecycle {
    ignore_changes = [ami, user_data]
  }

  depends_on = [aws_route.packages, aws_route_table_association.private, aws_iam_role_policy.sessions]
}

# What stopped is started again by make deploy: spot machines by deploy, since one that was taken back starts by itself.
resource "aws_ec2_instance_state" "running" {
  for_each = toset([for name in local.names : name if !try(local.gpu_machines[name].spot, false)])

  instance_id = local.instances[each.key].id
  state       = "running"
}

locals {
  instances         = merge(aws_instance.gpu, { for one in aws_instance.monitoring : local.monitoring => one })
  has_fixed_address = { for name in local.names : name => local.https && name == local.monitoring }
  is_public         = { for name in local.names : name => var.access == "public" || local.has_fixed_address[name] }
  groups = { for name in local.names : name => [
    aws_security_group.machine.id,
    name == local.monitoring ? aws_security_group.monitoring.id : aws_security_group.node.id,
  ] }
  subnets = { for name in local.names : name => (
    local.is_public[name] ? aws_subnet.public[local.zone].id : aws_subnet.private[local.zone].id
  ) }
}
