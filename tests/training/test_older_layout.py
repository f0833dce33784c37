"""Stores and run directories that were written when all modules of dupre lay in one directory.

`fixtures/run-flat-layout` was made with the last version of that layout by `dupre value table.csv
--owner clinic --target ill --model knn --budget 12 --semivalue shapley --semivalue banzhaf`.
"""

from __future__ import annotations

import json
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest

import dupre
from dupre import estimators
from dupre.cli.app import app
from dupre.data.digests import digest
from dupre.data.stable_modules import STABLE_MODULES
from dupre.tables.models import NearestClassifier, NearestRegressor
from dupre.tables.preprocessing import as_levels, as_numbers

FIXTURES = Path(__file__).parents[1] / "fixtures"
RUN = FIXTURES / "run-flat-layout"
TABLE = FIXTURES / "run-flat-layout-table.csv"

DIGESTS = {
    dupre.ModelUtility: "c6a7744a8aa8685ebebc5b8f43ae42c3",
    dupre.DataVolume: "c846d5f287008ce041aa9817040a99d3",
    dupre.InformationGain: "77357f07cb39842087c2d082333b71cb",
    dupre.Owners: "deca5a0dce59b3c0fe7185e0a35813f8",
    dupre.InputError: "80a5ac485a0537da061a9640706ca42c",
    dupre.from_table: "47bf9e63c838707bf1349b47803dccff",
    dupre.from_game: "3ee6eb08baab6ad9807c910b523752be",
    dupre.shapley: "d5066aa8ccb25a12b1384062768f8db2",
    dupre.beta_shapley: "1f1cd673c891f946bffd82f3e2780b6f",
    dupre.value: "756d10a1c678a18f3236709e1fb292ff",
    estimators.antithetic: "37652889e8f917f07bda1b23af13d253",
    estimators.exact: "a1ba1aa7b60f229f19e866602d1bd76e",
    estimators.group_testing: "11caefce249aee3f562221b86c6bf26e",
    estimators.maximum_sample_reuse: "6410d3b235dad0bacf775b7c6f87a673",
    estimators.one_for_all: "8c53ef42433a8828c722833b5677cc1d",
    estimators.permutation: "73345a232032bfa3192c8b4d13a861ad",
    estimators.regression: "454e892b01783dfca830d963e609ef19",
    estimators.stratified: "c1d54ede451aa78a552b61e4889d17c4",
    estimators.stratified_svarm: "0bd1d6f270585666450b49c09f5ea6dc",
    estimators.structured: "a09d5b725833bb790d29cb4ca7a8400d",
    estimators.svarm: "2854102a4b71a3712a2ea4526457fcb5",
    NearestClassifier: "114e004404ddb665d44f05dbfa745e38",
    NearestRegressor: "c94b51ec90501949097849887fe1d681",
    as_numbers: "e28518479a812df38fe2152b66475404",
    as_levels: "5f03d6e9ab2e64324f3c6b25fe05b9b2",
}
"""What the flat layout wrote into stores for dupre's own classes and functions."""


@pytest.mark.parametrize("thing", DIGESTS, ids=lambda thing: getattr(thing, "__name__", "shapley"))
def test_digests_of_our_own_classes_and_functions_never_change(thing):
    assert digest(thing) == DIGESTS[thing]


def test_a_utility_from_a_table_has_the_digest_it_had():
    table = {("A",): 1.0, ("B",): 2.0, ("A", "B"): 3.0, (): 0.0}
    assert digest(dupre.from_table(table)) == "2ab7149ac58b5209bf9e25fee580e093"


def test_every_stable_name_is_stated_once():
    names = [name for names in STABLE_MODULES.values() for name in names]
    assert len(names) == len(set(names))


@pytest.fixture
def dupre_command(capfd):
    """Run the command in this process; what it prints as JSON, if it does."""

    def run(*arguments):
        app([str(argument) for argument in arguments], standalone_mode=False)
        printed = capfd.readouterr().out
        return json.loads(printed) if "--json" in arguments else printed

    return run


@pytest.fixture
def older_run(tmp_path):
    """A copy of the run directory and its result."""
    shutil.copytree(RUN, tmp_path / "run")
    return tmp_path / "run", json.loads((RUN / "result.json").read_text())


def test_an_older_run_is_shown_and_reported(older_run, dupre_command):
    directory, result = older_run
    assert dupre_command("show", directory, "--json") == result
    dupre_command("report", directory)
    assert "Dee" in (directory / "report.html").read_text()


def test_an_older_run_is_resumed_from_its_trainings(older_run, dupre_command):
    directory, result = older_run
    for package in ("pandas", "scikit-learn"):  # digests of models and columns follow theirs
        then = result["provenance"]["versions"][package]
        if version(package).split(".")[:2] != then.split(".")[:2]:
            pytest.skip(f"the run was written with {package} {then}")
    again = dupre_command("resume", directory, "--data", TABLE, "--json")
    for now, then in zip(again["valuations"], result["valuations"], strict=True):
        assert [o["value"] for o in now["owners"]] == pytest.approx(
            [o["value"] for o in then["owners"]], abs=1e-9
        )
    more = dupre_command("resume", directory, "--data", TABLE, "--budget", "+3", "--json")
    assert [v["trainings"]["found"] for v in more["valuations"]] == [12, 15]
