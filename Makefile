# Each target sets up all that it needs: `make demo` works in a fresh clone.

PYTHON ?= python3
# Another version of Spark, such as 3.5 or 4.0, has an environment of its own, with the newest Delta that fits it.
SPARK ?= 4.2
# Another Delta than the newest one that fits, such as 3.2.1.
DELTA ?=
VENV := .venv$(if $(filter-out 4.2,$(SPARK)),-spark-$(SPARK))$(if $(DELTA),-delta-$(DELTA))
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# What `make demo` and `make dev` need: half of all packages.
DEMO_INSTALLED := $(VENV)/.installed-demo
DEMO_CONFIG := $(CURDIR)/.demo/mirror.yaml
MIRROR_CONFIG ?= $(DEMO_CONFIG)
IN_HOME := DAGSTER_HOME=$(CURDIR)/.dagster
HOME_SETTINGS := .dagster/dagster.yaml
KILLS ?= 20
MINUTES ?= 10
SEED ?= $(shell date +%s)
SIZE ?= small
PICTURES ?= .pictures

.DEFAULT_GOAL := help
.PHONY: help demo dev onelake test notebooks ui soak kills kills-dagster kills-scopes planted docs check bench java

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-14s %s\n", $$1, $$2}'

demo: java $(DEMO_INSTALLED) $(HOME_SETTINGS) ## mirror a lake of real tables on this machine and prove it equal to its source
	@$(IN_HOME) $(BIN)/mirror-assets demo $(ARGS)

dev: settings := MIRROR_CONFIG=$(abspath $(MIRROR_CONFIG)) MIRROR_SENSORS=on
# Started in DAGSTER_HOME, because Dagster warns of a dagster.yaml in any other folder that it is started in.
dev: java $(DEMO_INSTALLED) $(HOME_SETTINGS) $(MIRROR_CONFIG) ## Dagster's UI on MIRROR_CONFIG (by default the demo's mirror.yaml)
	@cd $(dir $(HOME_SETTINGS)) && $(IN_HOME) $(settings) $(CURDIR)/$(BIN)/dg dev --workspace $(CURDIR)/workspace.yaml $(ARGS)

onelake: java $(INSTALLED) ## a OneLake on this machine to try things on; ARGS="--port 8443" names its port
	@$(BIN)/python -m mirror_assets_tests.worlds.onelake $(ARGS)

test: java $(INSTALLED) ## run the tests; ARGS="-k name" picks some
	$(BIN)/pytest -n 2 --dist loadgroup --no-loadscope-reorder $(ARGS)

notebooks: java $(INSTALLED) ## run the notebooks, and write what they show into them
	@$(BIN)/python -m mirror_assets_tests.notebooks.run

ui: java $(INSTALLED) ## click through Dagster's pages in Debian's chromium; PICTURES=folder keeps pictures of them
	MIRROR_PICTURES=$(PICTURES) $(BIN)/pytest -n0 -m ui --timeout 900 $(ARGS)

soak: java $(INSTALLED) ## run the proofs with larger bounds, hours long; SEED=n draws the same histories again
	$(BIN)/pytest -m soak --timeout 0 --hypothesis-seed $(SEED) $(ARGS)

kills: java $(INSTALLED) ## kill -9 a `mirror-assets run` KILLS times, then run it to the end and compare; ARGS="--where upload"
	@$(BIN)/python -m mirror_assets_tests.worlds.kills --kills $(KILLS) $(ARGS)

kills-dagster: java $(INSTALLED) ## kill -9 the processes of a Dagster deployment KILLS times: nothing may be lost, and it goes on by itself
	@$(BIN)/python -m mirror_assets_tests.worlds.kills.under_dagster --kills $(KILLS) $(ARGS)

kills-scopes: java $(INSTALLED) ## kill -9 mirrors that share a Dagster instance, a landing zone or a host name, for MINUTES
	@$(BIN)/python -m mirror_assets_tests.worlds.kills.scopes --minutes $(MINUTES) $(ARGS)

planted: java $(INSTALLED) ## plant seventeen faults under a real daemon, and print the alerts; two hours
	@$(BIN)/python -m mirror_assets_tests.worlds.planted $(ARGS)

docs: $(INSTALLED) ## build the documentation site into site/; ARGS=serve serves it while you write
	$(BIN)/python -m mirror_assets_tests.errors_page
	$(BIN)/mkdocs $(or $(ARGS),build --strict)

check: $(INSTALLED) ## lint, format, types, import borders, language and the documentation site
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n0 -q mirror_assets_tests/test_language.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: java $(INSTALLED) ## measure against plain dumps, by hand and others, and compare with stored ratios; SIZE=full takes hours, ARGS="changes planning" picks
	$(BIN)/python -m benchmarks --size $(SIZE) $(ARGS)

$(DEMO_CONFIG): | java $(DEMO_INSTALLED) $(HOME_SETTINGS)
	@$(IN_HOME) $(BIN)/mirror-assets demo

# What the demo records here is what `make dev` shows.
$(HOME_SETTINGS): dagster.yaml
	@mkdir -p $(@D)
	@cp dagster.yaml $@

$(INSTALLED): extras := dev
$(DEMO_INSTALLED): extras := demo
$(INSTALLED) $(DEMO_INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: install it, or run make PYTHON=/path/to/python")'
	$(PYTHON) -m venv $(VENV)
	@sed $(if $(filter-out 4.2,$(SPARK))$(DELTA),-e '/^\(delta_spark\|py4j\)==/d') -e 's/^pyspark==.*/pyspark==$(SPARK).*/' \
		constraints.txt > $(VENV)/constraints.txt
	@$(if $(DELTA),echo 'delta-spark==$(DELTA)' >> $(VENV)/constraints.txt)
	$(BIN)/pip install --quiet --disable-pip-version-check -c $(VENV)/constraints.txt -e '.[$(extras)]'
	@touch $@ $(DEMO_INSTALLED)

# $(error) stops make with this one line, where a failing command would add a second.
java:
	$(if $(java_problem),$(error $(java_problem)))

java_problem = $(shell scripts/require-java 2>&1)
