# Everything runs in .venv, made from Python 3.11 to 3.13 and nothing else. To choose one: make PYTHON=python3.13

FITS := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(or $(shell for p in python3 python3.13 python3.12 python3.11; do \
	"$$p" -c '$(FITS)' 2>/dev/null && echo "$$p" && break; done),python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
# Tests wait for processes and clocks as much as they compute.
JOBS ?= $(shell nproc 2>/dev/null | awk '{print ($$1 > 4) ? 8 : ($$1 > 1) ? 2 * $$1 : 2}')
ARGS ?=
# What make starts ends with make, even one that is killed with -9: $$PPID is make itself.
TIED = exec $(BIN)/python -I -S broadcast_project/supervisor/launch.py $$PPID 15 - $(BIN)/python

.PHONY: help install test fuzz lint format run demo simulator bench chaos messages lock clean

help:
	@echo "make install    prepare $(VENV)"
	@echo "make test       all tests          ARGS='-k pause' chooses"
	@echo "make fuzz       2,400 requests that schemathesis makes up, each answered as the schema says"
	@echo "make lint       ruff, mypy, import contracts, migrations, deployment checks"
	@echo "make run        web, worker, dispatcher and beat under one supervisor (PORT, default 8000)"
	@echo "make demo       a whole broadcast on this machine, ARGS=--once ends by itself"
	@echo "make simulator  the stand-in for WAHA (SIMULATOR_PORT, default 3001)"
	@echo "make bench      how fast it is, as ratios; ARGS='--only freeze --people 10000 --json FILE'"
	@echo "make chaos      kill everything while broadcasts run; ARGS='--kills N --seed S --markdown'"
	@echo "make messages   collect and compile the screen texts"
	@echo "make lock       write the requirements locks from pyproject.toml"

install: $(STAMP)

$(STAMP): requirements-dev.lock
	@$(PYTHON) -c '$(FITS)' \
		|| { echo "Python 3.11 to 3.13 is needed: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@# The checkout is found from any folder, as an editable install would have it.
	@$(BIN)/python -c 'import pathlib, sysconfig; \
		pathlib.Path(sysconfig.get_path("purelib"), "broadcast.pth").write_text("$(CURDIR)\n")'
	@touch $@

test: install
	$(TIED) -m pytest -n $(JOBS) $(ARGS)

fuzz: export FUZZ_CASES ?= 2400
fuzz: install
	$(TIED) -m pytest -n $(JOBS) tests/house/test_fuzz.py $(ARGS)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run
	DEBUG=false PUBLIC_BASE_URL=https://broadcast.example \
		$(BIN)/python manage.py check --deploy --fail-level WARNING

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

run: install
	$(TIED) -m broadcast_project.supervisor

demo: install
	$(TIED) manage.py demo $(ARGS)

simulator: install
	$(TIED) -m simulator --port $${SIMULATOR_PORT:-3001} $(ARGS)

bench: install
	$(TIED) -m bench $(ARGS)

chaos: install
	$(TIED) -m chaos $(ARGS)

messages: install
	$(BIN)/python manage.py makemessages --locale pt_BR --no-location --no-wrap --ignore .venv --ignore var $(ARGS)
	$(BIN)/python manage.py compilemessages --ignore .venv

lock: install
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --generate-hashes --no-emit-index-url \
		--python-version 3.11 -o requirements-dev.lock
	$(BIN)/uv pip compile pyproject.toml --universal --generate-hashes --no-emit-index-url \
		--python-version 3.11 -c requirements-dev.lock -o requirements.lock

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
