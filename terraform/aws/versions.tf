terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "5.100.0"
    }
  }
}

provider "aws" {
  region = local.region

  # By default it asks for almost an hour where a zone is sold out, and says nothing of it.
  max_retries = 8

  default_tags {
    tags = merge({ app = "trainvitals", deployment = var.name }, var.labels)
  }
}

data "aws_partition" "current" {}

data "aws_caller_identity" "current" {}
