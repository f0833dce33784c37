import json
import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import dupre
import owners_and_games
from dupre.errors import EvaluationError, Interrupted
from dupre.result.json import loads
from dupre.training.engines import Local
from dupre.valuation.second_trainings import CHECKED, LEAST, count_needed
from dupre.valuation.strategies import first_evaluated
from owners_and_games import Noisy, Shuffled, holds, least_share, make_owners, smooth
from reporting import change

SIX = make_owners(6)


def noisy(kind=Noisy, seed=0):
    return kind(smooth(SIX, seed), 0.03, seed)


def again(utility):
    """Coalitions trained a second time."""
    return [members for members, repeat in utility.asked if repeat]


def value(utility, budget=20, **how):
    return owners_and_games.value(SIX, utility, budget=budget, **how)


def model(estimator, n=4):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20 * n, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=len(X))
    own, rest = slice(None, 15 * n), slice(15 * n, None)
    owners = dupre.Owners.from_arrays(X[own], y[own], np.arange(15 * n) % n, task="regression")
    return dupre.ModelUtility(estimator, owners, validation=(X[rest], y[rest]))


def assert_same(one, other):
    owners_and_games.assert_same(one, other)
    assert one.facts.training_noise == other.facts.training_noise


def test_a_model_whose_seed_changes_nothing_is_trained_three_times_more_and_without_seeds_once():
    utility = model(Ridge())
    valuation = dupre.value(utility.owners, utility, budget=15, progress=False)
    assert valuation.facts.evaluated == 15
    second = valuation.evaluations.query("repeat == 1")
    assert sorted(map(len, map(json.loads, second["coalition"]))) == [1, 3, 4]
    found = valuation.facts.training_noise
    assert (found.further, found.std, found.seeded, found.deterministic) == (3, 0.0, True, True)
    assert "Exact for these validation rows and seeds: every coalition" in valuation.explain()
    assert "3 repeated trainings gave the same utilities as before." in valuation.explain()
    assert not valuation.uncertainty.noise.any()
    utility = model(make_pipeline(StandardScaler(), LinearRegression()))
    valuation = dupre.value(utility.owners, utility, budget=15, progress=False)
    assert len(valuation.evaluations) == 15
    assert valuation.facts.training_noise.deterministic
    assert not valuation.facts.training_noise.seeded
    assert "Exact for these validation rows: every coalition" in valuation.explain()


class Chance(RegressorMixin, BaseEstimator):
    """Without a random_state, yet it could draw random numbers."""

    def fit(self, X, y):  # noqa: ARG002
        return self

    def predict(self, X):
        return np.zeros(len(X))


class Unsteady(Chance):
    """Scores by how often any model was fitted."""

    count = 0

    def fit(self, X, y):
        Unsteady.count += 1
        self.at_ = Unsteady.count
        return super().fit(X, y)

    def predict(self, X):
        return np.full(len(X), self.at_ / 100)


@pytest.mark.parametrize(("estimator", "steady"), [(Chance(), True), (Unsteady(), False)])
def test_a_model_without_a_seed_is_trained_twice_and_must_score_the_same(estimator, steady):
    utility = model(estimator)
    valuation = dupre.value(utility.owners, utility, budget=9, progress=False)
    assert valuation.facts.training_noise.deterministic == steady
    assert ("Beware: the model is not reproducible: trained" in valuation.explain()) != steady


def test_only_what_has_no_seed_and_is_of_scikit_learn_is_deterministic_for_sure():
    tree = make_pipeline(StandardScaler(), DecisionTreeRegressor())
    for estimator, seeded, deterministic in (
        (LinearRegression(), False, True),
        (Ridge(), True, False),
        (tree, True, False),
        (Chance(), False, False),
        (make_pipeline(StandardScaler(), Chance()), False, False),
    ):
        utility = model(estimator)
        assert (utility.seeded, utility.deterministic) == (seeded, deterministic)


def test_one_repeat_spends_nothing_and_claims_nothing():
    utility = noisy()
    valuation = value(utility, budget=63, repeats=1)
    assert len(utility.asked) == 63
    assert "Exact for these seeds: every coalition" in valuation.explain()
    assert "The effect of training seeds was not measured" in valuation.explain()
    assert np.isnan(valuation.facts.training_noise.std)
    utility = noisy()
    value(utility, budget=14, repeats=3)
    assert len(utility.asked) == 42

    asked = []
    valuation = value(lambda members: asked.append(members) or len(members) ** 0.5, budget=63)
    assert len(asked) == 64  # one of no data
    assert "Exact for these utilities: every coalition" in valuation.explain()
    assert valuation.exact


@pytest.mark.parametrize(("budget", "count"), [(3, 3), (13, 6), (24, 6), (47, 6), (63, 7)])
def test_a_model_whose_seed_matters_is_trained_again_for_every_eight(budget, count):
    utility = noisy()
    valuation = value(utility, budget=budget)
    assert valuation.facts.evaluated == budget
    assert len(again(utility)) == valuation.facts.training_noise.further == count
    assert len(set(utility.asked)) == len(utility.asked) == budget + count
    assert again(utility)[0] == SIX.names
    assert f"{count} repeated trainings measured the noise of trainings" in valuation.explain()
    assert np.all(np.diag(valuation.uncertainty.noise) > 0)
    assert not valuation.exact
    assert valuation.complete == (budget == 63)
    assert count_needed(0) == LEAST >= CHECKED
    sizes = [len(members) for members in again(utility)]
    different = len(set(sizes))
    assert sizes[1:different] == sorted(set(sizes[1:]))  # each once, then each again
    assert count < 4 or sizes.count(1) >= count // 3


def test_a_forest_is_random_and_its_noise_survives_json():
    utility = model(RandomForestRegressor(n_estimators=3))
    valuation = dupre.value(utility.owners, utility, budget=15, progress=False)
    assert valuation.facts.training_noise.std > 0
    assert "Exact for these validation rows and seeds: every coalition" in valuation.explain()
    assert re.search(r"\d+ % is noise of trainings", valuation.explain())

    valuation = value(noisy())
    (read,) = loads(valuation.to_json(), dupre.Valuation)
    assert read.facts.training_noise == valuation.facts.training_noise
    unknown = change(read, training_noise=None, diagnostics=None)
    assert "Exact for these utilities" in unknown.explain()


@pytest.fixture(scope="module")
def at_once():
    return value(noisy(), budget=30)


class Interrupting(Noisy):
    at = None

    def __call__(self, members, *, repeat=0):
        if len(self.asked) == self.at:
            self.at = None
            raise KeyboardInterrupt
        return super().__call__(members, repeat=repeat)


@pytest.mark.parametrize("at", [5, 14, 17, 33])
def test_neither_an_interruption_nor_the_order_of_trainings_changes_anything(tmp_path, at, at_once):
    utility, store = noisy(Interrupting), tmp_path / "run.sqlite"
    utility.at = at
    with pytest.raises(Interrupted):
        value(utility, budget=30, store=store)
    valuation = value(utility, budget=30, store=store)
    assert len(utility.asked) == len(set(utility.asked)) == 36
    assert_same(valuation, at_once)
    assert valuation.facts.rounds["widest"].iloc[-1] == at_once.facts.rounds["widest"].iloc[-1]
    assert_same(value(noisy(), budget=30, engine=Shuffled(at)), at_once)


def test_a_result_that_is_asked_for_again_trains_nothing(tmp_path):
    utility, store = noisy(), tmp_path / "run.sqlite"
    first = value(utility, store=store)
    count = len(utility.asked)
    assert_same(value(utility, store=store), first)
    other = value(utility, store=store, semivalue=dupre.banzhaf, budget=first.facts.evaluated)
    assert len(utility.asked) == count
    assert other.facts.training_noise == first.facts.training_noise
    fresh = noisy()  # what is known serves as well
    assert_same(value(fresh, known=first.evaluations), first)
    assert not fresh.asked


class Failing(Noisy):
    """Fails at second trainings of all owners."""

    def __call__(self, members, *, repeat=0):
        if repeat and len(members) == 6:
            self.asked.append((members, repeat))
            raise ValueError("diverged")
        return super().__call__(members, repeat=repeat)


def test_a_second_training_that_fails_stops_the_run_or_leaves_the_first_one():
    with pytest.raises(EvaluationError, match="diverged"):
        value(noisy(Failing))
    utility = noisy(Failing)
    valuation = value(utility, engine=Local(on_error="skip"))
    assert not valuation.facts.failures
    assert valuation.facts.evaluated == 20
    assert not valuation.facts.grand_predicted
    assert valuation.facts.training_noise.further == 5
    assert again(utility).count(SIX.names) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "seeds"), [(24, 12), (63, 16)])
def test_intervals_hold_the_noise_free_values(budget, seeds):
    inside = []
    for seed in range(seeds):
        utility = noisy(seed=seed)
        ours = dupre.Valuer(SIX, empty=utility.empty, seed=seed)
        owners_and_games.evaluate(ours, utility, budget)
        for members in first_evaluated(ours.state)[: count_needed(budget)]:
            ours.record(members, [utility(members, repeat=r) for r in range(2)])
        inside.append(holds(ours.values(), utility.game.values()))
    assert np.mean(inside) >= least_share(seeds)
