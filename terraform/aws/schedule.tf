locals {
  scheduled = var.auto_stop.stop_at != ""
  stop_at   = split(":", local.scheduled ? var.auto_stop.stop_at : "00:00")
}

# EventBridge stops the GPU machines each day at this time; make deploy starts them again.
resource "aws_scheduler_schedule" "stop" {
  #checkov:skip=CKV_AWS_297: it holds no secret, and a key of one's own costs a dollar a month
  count = local.scheduled ? 1 : 0

  name                         = "${var.name}-stop"
  description                  = "Stops the GPU machines of ${var.name} each day"
  schedule_expression          = "cron(${tonumber(local.stop_at[1])} ${tonumber(local.stop_at[0])} * * ? *)"
  schedule_expression_timezone = var.auto_stop.time_zone

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = "arn:${data.aws_partition.current.partition}:scheduler:::aws-sdk:ec2:stopInstances"
    role_arn = aws_iam_role.scheduler[0].arn
    input    = jsonencode({ InstanceIds = [for name in sort(keys(local.gpu_machines)) : aws_instance.gpu[name].id] })
  }
}

data "aws_iam_policy_document" "scheduler_acts" {
  count = local.scheduled ? 1 : 0

  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["scheduler.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [data.aws_caller_identity.current.account_id]
    }
  }
}

data "aws_iam_policy_document" "stop" {
  count = local.scheduled ? 1 : 0

  statement {
    actions   = ["ec2:StopInstances"]
    resources = [for name in sort(keys(local.gpu_machines)) : aws_instance.gpu[name].arn]
  }
}

resource "aws_iam_role" "scheduler" {
  count = local.scheduled ? 1 : 0

  name               = "${local.global_name}-scheduler"
  description        = "May stop the GPU machines of ${var.name}"
  assume_role_policy = data.aws_iam_policy_document.scheduler_acts[0].json
}

resource "aws_iam_role_policy" "stop" {
  count = local.scheduled ? 1 : 0

  name   = "stop"
  role   = aws_iam_role.scheduler[0].id
  policy = data.aws_iam_policy_document.stop[0].json
}
