# A NATS and agents on machines of their own in AWS: `terraform apply -var ami=… -var subnet=… -var token=$(openssl rand -hex 16)`,
# then on a host of that subnet: assay run my.toml --agents load=4 --nats nats://ADDRESS:4222, with NATS_TOKEN set.
terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "ami" {
  description = "Image with nats-server, Assay's package and deploy/agents/assay-agent.service installed"
  type        = string
}

variable "subnet" {
  description = "Subnet of the system under test: agents far from it measure the way to it"
  type        = string
}

variable "token" {
  description = "Token of NATS"
  type        = string
  sensitive   = true
}

variable "agents" {
  type    = number
  default = 4
}

# No burstable machines: a throttled agent is a late one.
variable "machine" {
  type    = string
  default = "c7a.xlarge"
}

data "aws_subnet" "here" {
  id = var.subnet
}

resource "aws_security_group" "nats" {
  name   = "assay-nats"
  vpc_id = data.aws_subnet.here.vpc_id

  ingress {
    description = "NATS, from this subnet alone"
    from_port   = 4222
    to_port     = 4222
    protocol    = "tcp"
    cidr_blocks = [data.aws_subnet.here.cidr_block]
  }

  egress {
    from_port   = 0
    to_port     = 0
    protocol    = "-1"
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_instance" "nats" {
  ami                    = var.ami
  instance_type          = var.machine
  subnet_id              = var.subnet
  vpc_security_group_ids = [aws_security_group.nats.id]
  user_data              = <<-END
    #!/bin/sh
    umask 077
    echo 'authorization { token: "${var.token}" }' > /etc/nats-server.conf
    exec nats-server -c /etc/nats-server.conf
  END
  tags                   = { Name = "assay-nats" }
}

resource "aws_instance" "agent" {
  count                  = var.agents
  ami                    = var.ami
  instance_type          = var.machine
  subnet_id              = var.subnet
  vpc_security_group_ids = [aws_security_group.nats.id]
  user_data              = <<-END
    #!/bin/sh
    umask 077
    mkdir -p /etc/assay
    echo 'NATS_URL=nats://${aws_instance.nats.private_ip}:4222' > /etc/assay/agent.env
    echo 'NATS_TOKEN=${var.token}' >> /etc/assay/agent.env
    systemctl enable --now assay-agent
  END
  tags                   = { Name = "assay-agent-${count.index}" }
}

output "nats" {
  value = "nats://${aws_instance.nats.private_ip}:4222"
}
