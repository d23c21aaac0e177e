mock_provider "aws" {
  mock_resource "aws_instance" {
    defaults = { private_ip = "10.77.128.4", public_ip = "203.0.113.20", arn = "arn:aws:ec2:us-east-1:123456789012:instance/i-1" }
  }

  mock_resource "aws_eip" {
    defaults = { public_ip = "203.0.113.10" }
  }

  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/trainvitals" }
  }

  mock_data "aws_ssm_parameter" {
    defaults = { value = "ami-0123456789abcdef0" }
  }

  mock_data "aws_iam_policy_document" {
    defaults = { json = "{\"Version\": \"2012-10-17\", \"Statement\": []}" }
  }

  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
}

variables {
  ssh_public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9 ada@example"
}

run "the_table_knows_prices_and_gpus" {
  variables {
    gpu_machines = { a = { machine_type = "g5.12xlarge", count = 2 } }
  }

  assert {
    condition = alltrue([
      output.price_per_hour.machines["trainvitals-a-2"] == local.table.machine_types["g5.12xlarge"].on_demand,
      yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-a-1"].stack_node_price == local.table.machine_types["g5.12xlarge"].on_demand,
      yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-a-1"].stack_expected_gpus == 4,
      output.price_per_hour.total == 2 * local.table.machine_types["g5.12xlarge"].on_demand + local.table.machine_types["t3.large"].on_demand,
    ])
    error_message = "prices are those of the table"
  }
}

run "spot_has_a_price_of_its_own" {
  variables {
    gpu_machines = { a = { machine_type = "g6.xlarge", spot = true } }
  }

  assert {
    condition     = output.price_per_hour.machines["trainvitals-a-1"] == local.table.machine_types["g6.xlarge"].spot
    error_message = "it is that of spot"
  }
}

run "the_user_goes_before_the_table" {
  variables {
    gpu_machines = { a = { machine_type = "g6.xlarge" }, b = { machine_type = "p5e.48xlarge" } }
    prices       = { "g6.xlarge" = { on_demand = 1 }, "p5e.48xlarge" = { on_demand = 70 }, "t3.large" = { on_demand = 0 } }
  }

  assert {
    condition     = output.price_per_hour.total == 71
    error_message = "the user's prices count"
  }
}

run "an_unknown_type_has_no_price" {
  variables {
    gpu_machines = { new = { machine_type = "p9.48xlarge" }, gpu = { machine_type = "g6.xlarge" } }
    prices       = { "p9.48xlarge" = {} }
  }

  assert {
    condition = alltrue([
      output.price_per_hour.total == null,
      output.price_per_hour.machines["trainvitals-new-1"] == null,
      !contains(keys(yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-new-1"]), "stack_node_price"),
      !contains(keys(yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-new-1"]), "stack_expected_gpus"),
    ])
    error_message = "what nobody knows is not summed up, nor told"
  }
}

run "nothing_stops_by_itself" {
  assert {
    condition = alltrue([
      length(aws_scheduler_schedule.stop) == 0,
      length(aws_iam_role.scheduler) == 0,
      yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-gpu-1"].stack_idle_stop_minutes == 0,
    ])
    error_message = "auto_stop is off"
  }
}

run "a_schedule_stops_gpu_machines" {
  variables {
    auto_stop = { stop_at = "08:05", time_zone = "Europe/Berlin" }
  }

  assert {
    condition = alltrue([
      aws_scheduler_schedule.stop[0].schedule_expression == "cron(5 8 * * ? *)",
      aws_scheduler_schedule.stop[0].schedule_expression_timezone == "Europe/Berlin",
      jsondecode(aws_scheduler_schedule.stop[0].target[0].input).InstanceIds == [aws_instance.gpu["trainvitals-gpu-1"].id],
    ])
    error_message = "at that time of that zone, monitoring stays"
  }
}

run "idle_machines_stop_themselves" {
  variables {
    auto_stop = { idle_minutes = 45 }
  }

  assert {
    condition = alltrue([
      yamldecode(output.inventory).gpu_nodes.hosts["trainvitals-gpu-1"].stack_idle_stop_minutes == 45,
      length(aws_scheduler_schedule.stop) == 0,
      !contains(keys(yamldecode(output.inventory).monitoring.hosts["trainvitals-monitoring"]), "stack_idle_stop_minutes"),
    ])
    error_message = "the inventory tells it to Ansible"
  }
}
