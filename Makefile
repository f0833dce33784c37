# Every target sets up what it needs; `make test` on a fresh clone is enough.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check lint bench figures clean

demo: .venv/ready
	$(BIN)/python examples/demo.py

test: .venv/ready
	$(BIN)/python -m pytest

check: lint test

lint: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/ready
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/speed.py

figures: .venv/ready
	$(BIN)/python examples/demo.py --figure docs/figures/demo.png

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev,baselines]'
	touch $@

clean:
	rm -rf .venv
