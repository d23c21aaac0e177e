locals {
  # Names of IAM are of all regions, ours of one.
  global_name = "${var.name}-${local.region}"

  user        = "trainvitals"
  key_is_text = can(regex("^[a-z0-9@.-]+ [A-Za-z0-9+/]+", var.ssh_public_key))
  key         = trimspace(local.key_is_text ? var.ssh_public_key : file(pathexpand(var.ssh_public_key)))

  # Debian's images come without the agent that private access goes by.
  needs_agent = var.access == "private" && var.image == "debian-12"
  agent       = "amazon-ssm-${local.region}/latest/debian_amd64/amazon-ssm-agent.deb"
  install_agent = [
    "curl -fsSLo /run/amazon-ssm-agent.deb https://s3.${local.region}.amazonaws.com/${local.agent}",
    "dpkg -i /run/amazon-ssm-agent.deb",
  ]
  # By machine: the same user on every image, and the name that stands in the inventory.
  first_boot = { for name in local.names : name => join("\n", ["#cloud-config", yamlencode(merge({
    hostname         = name
    manage_etc_hosts = true
    users = ["default", {
      name                = local.user
      shell               = "/bin/bash"
      sudo                = "ALL=(ALL) NOPASSWD:ALL"
      ssh_authorized_keys = [local.key]
    }]
  }, local.needs_agent && contains(keys(local.gpu_machines), name) ? { runcmd = local.install_agent } : {}))]) }
}

# What the agent of Systems Manager needs for sessions, and no more: the managed policy for it reads every parameter.
data "aws_iam_policy_document" "sessions" {
  #checkov:skip=CKV_AWS_356: these actions know no resources
  #checkov:skip=CKV_AWS_111: these actions know no resources
  statement {
    actions = [
      "ssm:UpdateInstanceInformation",
      "ssmmessages:CreateControlChannel",
      "ssmmessages:CreateDataChannel",
      "ssmmessages:OpenControlChannel",
      "ssmmessages:OpenDataChannel",
    ]
    resources = ["*"]
  }
}

data "aws_iam_policy_document" "machines_act" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["ec2.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "machines" {
  count = var.access == "private" ? 1 : 0

  name               = "${local.global_name}-machines"
  description        = "Machines of ${var.name}: sessions of Systems Manager alone"
  assume_role_policy = data.aws_iam_policy_document.machines_act.json
}

resource "aws_iam_role_policy" "sessions" {
  count = var.access == "private" ? 1 : 0

  name   = "sessions"
  role   = aws_iam_role.machines[0].id
  policy = data.aws_iam_policy_document.sessions.json
}

resource "aws_iam_instance_profile" "machines" {
  count = var.access == "private" ? 1 : 0

  name = "${local.global_name}-machines"
  role = aws_iam_role.machines[0].name
}
