# Every target sets up what it needs; `make test` on a fresh clone is enough.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all check lint docs bench load soak figures clean

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

bench: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/accuracy.py > benchmarks/RESULTS.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/peers.py --seeds 3 >> benchmarks/RESULTS.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/ablation.py --seeds 3 >> benchmarks/RESULTS.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/bank.py >> benchmarks/RESULTS.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/few_trainings.py >> benchmarks/RESULTS.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/rules.py >> benchmarks/RESULTS.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/quotes.py >> benchmarks/RESULTS.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/joining.py >> benchmarks/RESULTS.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/estimators.py --figure docs/figures/estimators.png >> benchmarks/RESULTS.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/validation_rows.py >> benchmarks/RESULTS.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/folds.py >> benchmarks/RESULTS.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/scale.py >> benchmarks/RESULTS.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/many_owners.py >> benchmarks/RESULTS.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/cost.py >> benchmarks/RESULTS.md
	$(BIN)/python benchmarks/speed.py >> benchmarks/RESULTS.md
	$(BIN)/python benchmarks/engine.py >> benchmarks/RESULTS.md
	$(BIN)/python benchmarks/command.py >> benchmarks/RESULTS.md
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
