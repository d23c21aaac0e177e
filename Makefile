# `make` alone lists the targets. PYTHON=python3.12 chooses the interpreter that .venv is made with.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv/bin
PIP := $(VENV)/python -m pip install -qq --disable-pip-version-check
# Without PYTHON any whole .venv will do; with it, one that was made for that interpreter.
MADE := .venv/.made$(if $(PYTHON),-$(notdir $(PYTHON)))

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: up
up: ## Run the stack where a Docker Engine answers, else the agent alone (DEMO=1: simulated GPUs)
	@if why=$$(scripts/stack answers); then exec scripts/stack up; \
	 else echo "No stack: $$why. The agent alone instead:"; exec $(MAKE) -s --no-print-directory agent; fi

.PHONY: down
down: ## End the stack; its data stays
	@scripts/stack down

.PHONY: logs
logs: ## Follow what the stack's services say
	@scripts/stack logs

.PHONY: password
password: ## Show Grafana's password
	@scripts/stack password

.PHONY: alert-test
alert-test: ## Send an alert through every configured channel, and report what each answered
	@scripts/stack alert-test

# exec: a signal meets the agent itself, and its exit status is the recipe's.
.PHONY: agent
agent: .venv/.runtime ## Run the agent alone and its page (DEMO=1: simulated GPUs; ARGS='...': more flags)
	@exec $(VENV)/trainvitals $(if $(filter-out 0,$(DEMO)),demo,serve) $(ARGS)

# CLOUD=gcp or aws: what terraform/CLOUD/terraform.tfvars says. INVENTORY=hosts.yml: machines of one's own. By the
# environment: a name may hold what a shell would read.
export CLOUD INVENTORY
DEPLOY = @exec $(VENV)/python -m deploy $@

.PHONY: plan
plan: .venv/.deploy ## Show what deploying would make, and its price (CLOUD=gcp or aws)
	$(DEPLOY)

.PHONY: deploy
deploy: .venv/.deploy ## Make the machines, set them up, verify (CLOUD=gcp or aws, or INVENTORY=hosts.yml; YES=1: do not ask)
	$(DEPLOY)

.PHONY: verify
verify: .venv/.deploy ## Verify what was deployed, on every host (CLOUD or INVENTORY)
	$(DEPLOY)

.PHONY: tunnel
tunnel: .venv/.deploy ## Bring the dashboards of what was deployed to this machine (CLOUD or INVENTORY)
	$(DEPLOY)

.PHONY: destroy
destroy: .venv/.deploy ## Take the machines down, when you agree to it (CLOUD)
	$(DEPLOY)

.PHONY: test
test: ## Run the tests, and list what was not run and why (ARGS='-k journal')
	@scripts/test $(ARGS)

.PHONY: test-stack
test-stack: .venv/.dev ## Run the stack on a Docker Engine, which is started where none answers (root), and test it
	@scripts/fetch-tools prometheus
	@STACK_TESTS=1 scripts/test tests/stack $(ARGS)

.PHONY: rehearsal
rehearsal: .venv/.dev ## Deploy to machines made for it, on a Docker Engine (root), and test that
	@scripts/start-engine >/dev/null
	@REHEARSAL=1 scripts/test tests/ansible tests/rehearsal $(ARGS)

.PHONY: trainers
trainers: .venv/.trainers ## Install torch and the trainers, which many tests need (0.9 GB to load, 3.6 GB on disk)

.PHONY: check
check: lint test ## Everything that must hold before a change is merged: lint and test

.PHONY: lint
lint: .venv/.dev ## Check style, format, types, imports, shell scripts and the tree
	@$(VENV)/ruff check --quiet
	@$(VENV)/ruff format --check --quiet || { echo 'lint: run make format'; exit 1; }
	@$(VENV)/mypy --config-file collector/pyproject.toml
	@$(VENV)/lint-imports --no-logo --config collector/pyproject.toml
	@scripts/lint-shell
	@$(VENV)/python scripts/check-tree

.PHONY: format
format: .venv/.dev ## Format the code, and fix what can be fixed
	@$(VENV)/ruff check --fix --quiet || true
	@$(VENV)/ruff format

.PHONY: bench
bench: .venv/.bench .cache/agent/.made ## Measure what monitoring costs, beside other tools (QUICK=1: shorter)
	@$(VENV)/python -m bench $(if $(filter-out 0,$(QUICK)),--quick) $(ARGS)

.PHONY: bench-detect
bench-detect: .venv/.dev ## Measure how right the detectors are, on labelled scenarios and real traces (ARGS=straggler: those)
	@$(VENV)/python -m bench.detect $(ARGS)

.PHONY: docs
docs: .venv/.runtime ## Write docs/metrics.md and docs/thresholds.md anew from their tables
	@$(VENV)/python -m trainvitals.metrics_page > docs/metrics.md.new && mv docs/metrics.md.new docs/metrics.md
	@$(VENV)/python -m trainvitals.detect.limits_page > docs/thresholds.md.new && mv docs/thresholds.md.new docs/thresholds.md

.PHONY: lock
lock: ## Lock the requirements with hashes (ARGS=--upgrade: newest versions)
	@scripts/lock $(ARGS)

.PHONY: clean
clean: ## Remove .venv and caches
	@rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE): scripts/setup-venv
	@scripts/setup-venv
	@touch $@

.venv/.runtime: requirements/runtime.txt requirements/build.txt collector/pyproject.toml $(MADE)
	@echo 'Installing TrainVitals into .venv'
	@$(PIP) --require-hashes -r requirements/runtime.txt -r requirements/build.txt
	@$(PIP) --no-deps --no-build-isolation -e collector
	@touch $@

.venv/.deploy: requirements/deploy.txt .venv/.runtime
	@echo 'Installing Ansible into .venv (0.1 GB to load)'
	@$(PIP) --require-hashes -r $<
	@touch $@

.venv/.dev: requirements/dev.txt .venv/.runtime
	@echo 'Installing the development tools into .venv'
	@$(PIP) --require-hashes -r $<
	@touch $@

# The locks below are whole, and what torch needs is in them: --no-deps keeps pip from going after another torch.
.venv/.torch: requirements/torch.in scripts/install-torch .venv/.runtime
	@echo 'Installing torch for CPUs into .venv (0.2 GB to load)'
	@$(VENV)/python scripts/install-torch
	@touch $@

.venv/.trainers: requirements/trainers.txt requirements/verl.txt .venv/.torch
	@echo 'Installing the trainers into .venv (0.7 GB to load, 3 GB on disk; some minutes)'
	@$(PIP) --no-deps --require-hashes -r requirements/trainers.txt -r requirements/verl.txt
	@touch $@

.cache/checkov/.made: requirements/checkov.txt
	@python3 -m venv .cache/checkov
	@.cache/checkov/bin/python -m pip install -qq --disable-pip-version-check --require-hashes -r $<
	@touch $@

# What an agent's users have, and none of what is there to measure against: some of that is loaded where it is found.
.cache/agent/.made: requirements/runtime.txt $(MADE)
	@$(VENV)/python -m venv .cache/agent
	@.cache/agent/bin/python -m pip install -qq --disable-pip-version-check --require-hashes -r $<
	@touch $@

.venv/.bench: requirements/bench.txt .venv/.torch
	@echo 'Installing the tools to measure against into .venv (0.3 GB to load)'
	@$(PIP) --no-deps --require-hashes -r $<
	@touch $@
