# Every target sets up what it needs; `make test` on a fresh clone is enough.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all check lint docs paper bench load soak figures clean

demo: .venv/ready
	$(BIN)/dupre demo

# Quick ones alone; `make check` runs every test.
test: .venv/ready
	$(BIN)/python -m pytest -m "not slow" --numprocesses auto --dist worksteal --durations 10

test-all: .venv/ready
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal --durations 20

check: lint docs test-all

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --site-dir site

# Scores, tables and figures of docs/paper.md; half an hour on two cores. DUPRE_DATA names the data.
paper: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments all

# $(call section,SCRIPT OPTIONS,THREADS): a section of RESULTS.md, then by which code it was made.
section = $(if $(2),OMP_NUM_THREADS=$(2)) $(BIN)/python benchmarks/$(1) >> benchmarks/RESULTS.md && \
	$(BIN)/python benchmarks/digest.py benchmarks/$(firstword $(1)) >> benchmarks/RESULTS.md

bench: .venv/ready
	printf '# Results\n\nMade by `make bench`; how to read them: [README](README.md).\n' > benchmarks/RESULTS.md
	$(call section,accuracy.py,1)
	$(call section,peers.py --seeds 3,1)
	$(call section,ablation.py --seeds 3,1)
	$(call section,bank.py,1)
	$(call section,few_trainings.py,1)
	$(call section,rules.py,1)
	$(call section,quotes.py,1)
	$(call section,joining.py,1)
	$(call section,estimators.py --figure docs/figures/estimators.png,1)
	$(call section,validation_rows.py,1)
	$(call section,folds.py,1)
	$(call section,scale.py,1)
	$(call section,many_owners.py,1)
	$(call section,cost.py,1)
	$(call section,speed.py,)
	$(call section,engine.py,)
	$(call section,command.py,)
	cat benchmarks/RESULTS.md

load: .venv/ready
	$(BIN)/python benchmarks/engine.py --load | tee benchmarks/LOAD.md

soak: .venv/ready
	$(BIN)/python benchmarks/soak.py

figures: .venv/ready
	$(BIN)/python examples/figures.py docs/figures
	$(BIN)/python examples/market.py docs/figures/market.png > /dev/null

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev,baselines,dask,excel,parquet]'
	touch $@

clean:
	rm -rf .venv site
