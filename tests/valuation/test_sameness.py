import json
import threading

import numpy as np
import ot
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.tree import DecisionTreeClassifier

import dupre
import owners_and_games
from dupre import estimators
from dupre.errors import InputError
from dupre.game.coalitions import all_coalitions, from_names, to_names
from dupre.game.estimators import Sample, regression
from dupre.game.weights import Weights
from dupre.notes import Code, has, select, warnings
from dupre.result.as_text import format_comparison
from dupre.result.records import Duplicates
from dupre.store.origin import of_owners
from dupre.training.engines import Local
from dupre.training.evaluation import Evaluation, Training
from dupre.utility.describe import describe
from dupre.valuation.sameness import Sameness, merge, shared_rows
from dupre.valuation.strategies import Active, Corrected, Drawn
from owners_and_games import LoggedGame, assert_same, record
from reporting import valuation as made_up
from stores import open_store, sql

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = (X[:, 0] + X[:, 1] ** 2 + RNG.normal(0, 0.5, 400) > 0.8).astype(int)
VALIDATION = X[300:], Y[300:]
TREE = DecisionTreeClassifier(max_features=1, splitter="random", max_depth=4)


def part(i, rows=12):
    return X[i * rows : (i + 1) * rows], Y[i * rows : (i + 1) * rows]


def with_copy(n, copy="Eve's copy"):
    """Owners of which the first is Eve and the last holds what Eve holds."""
    names = ["Eve", *(f"owner {i}" for i in range(1, n - 1))]
    return dupre.Owners.from_mapping(
        {name: part(i) for i, name in enumerate(names)} | {copy: part(0)}
    )


def utility_of(owners, model=TREE, **options):
    return dupre.ModelUtility(model, owners, validation=VALIDATION, **options)


def copy_game(n):
    owners = with_copy(n)
    return owners, utility_of(owners)


def value(owners, utility, **options):
    return owners_and_games.value(owners, utility, **{"repeats": 1} | options)


def assert_exact(valuation, owners, utility, semivalue=dupre.shapley):
    """As from a training of every coalition, whoever holds the same rows."""
    table = [utility(to_names(row, owners.names)) for row in all_coalitions(owners.n)]
    expected = LoggedGame(owners, table, utility.empty).values(semivalue)
    np.testing.assert_allclose(valuation.mean, expected, rtol=0, atol=1e-12)


def assert_equal_owners(valuation, one="Eve", other="Eve's copy"):
    i, j = valuation.owners.index(one), valuation.owners.index(other)
    assert valuation.mean[i] == valuation.mean[j]
    comparison = valuation.compare(one, other)
    assert comparison.probability == 0.5
    assert comparison.low == comparison.difference == comparison.high == 0.0
    frame = valuation.to_frame()
    assert frame.loc[one].equals(frame.loc[other])
    assert np.isfinite(valuation.uncertainty.total).all()
    np.testing.assert_array_equal(valuation.uncertainty.total[i], valuation.uncertainty.total[j])


# --- coalitions that hold the same rows are one training


@pytest.mark.parametrize(
    ("n", "semivalue"),
    [(2, dupre.shapley), (4, dupre.shapley), (3, dupre.banzhaf), (5, dupre.beta_shapley(4, 1))],
)
def test_with_a_copy_every_different_coalition_is_trained_once(n, semivalue):
    owners, utility = copy_game(n)
    valuation = value(owners, utility, budget=2**n - 1, semivalue=semivalue)
    different = 3 * 2 ** (n - 2) - 1
    assert valuation.facts.evaluated == len(valuation.evaluations) == different
    assert valuation.facts.duplicates.coalitions == 2**n - 1
    assert valuation.facts.duplicates.different == valuation.facts.counting == different
    assert valuation.facts.duplicates.saved == 2 ** (n - 2)
    assert valuation.evaluations["seed"].is_unique
    assert valuation.exact
    assert valuation.facts.stopped == "nothing is left to evaluate"
    assert_equal_owners(valuation)
    assert_exact(valuation, owners, utility, semivalue)


def test_several_copies_and_an_owner_of_the_rows_of_two_others():
    both = np.concatenate([part(1)[0], part(2)[0]]), np.concatenate([part(1)[1], part(2)[1]])
    data = {"both": both, "one": part(1), "other": part(2), "fourth": part(3)}

    owners = dupre.Owners.from_mapping(data)
    utility = utility_of(owners)
    valuation = value(owners, utility, budget=15)
    # {both} = {one, other}, alone and with the fourth: two coalitions fewer.
    assert valuation.facts.evaluated == valuation.facts.counting == 13
    assert valuation.facts.duplicates == dupre.result.records.Duplicates((), 15, 13, 2)
    assert_exact(valuation, owners, utility)
    assert '["both"]' in set(valuation.evaluations["coalition"]), "fewer owners stand for more"
    assert "Some coalitions hold the same rows" in valuation.explain()
    data = {"a": part(0), "b": part(1), "a2": part(0), "b2": part(1), "a3": part(0), "c": part(2)}
    owners = dupre.Owners.from_mapping(data)
    utility = utility_of(owners)
    for budget in (9, 63):  # of different coalitions
        valuation = value(owners, utility, budget=budget)
        assert valuation.facts.counting == 4 * 3 * 2 - 1
        assert valuation.facts.evaluated == len(valuation.evaluations) == min(budget, 23)
        assert valuation.facts.duplicates.owners == (("a", "a2", "a3"), ("b", "b2"))
        assert_equal_owners(valuation, "a", "a3")
        assert_equal_owners(valuation, "a2", "a3")
        assert_equal_owners(valuation, "b", "b2")
    assert_exact(valuation, owners, utility)


def test_rows_in_another_order_are_the_same_rows_and_one_row_more_is_another_owner():
    rows, targets = part(0)
    reverse = rows[::-1], targets[::-1]
    twice = np.append(rows, rows[:1], axis=0), np.append(targets, targets[:1])
    for other, different in ((reverse, 5), (twice, 7)):
        owners = dupre.Owners.from_mapping({"a": (rows, targets), "b": other, "c": part(2)})
        valuation = value(owners, utility_of(owners), budget=7)
        assert valuation.facts.evaluated == different
        assert (valuation.facts.duplicates is None) == (different == 7)
        if different == 5:
            assert_equal_owners(valuation, "a", "b")


# --- equal owners are equal


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        *({"budget": budget} for budget in (2, 4, 8, 13, 63)),
        {"semivalue": dupre.banzhaf, "budget": 20},
        {"semivalue": dupre.leave_one_out, "budget": 4},
        {"semivalue": dupre.LeastCore(draws=8), "budget": 20},
        {"semivalue": dupre.LeastCore(draws=8), "budget": 63},
        {"semivalue": dupre.LeastCore(draws=8), "budget": 63, "repeats": 2},
        {"budget": 20, "repeats": 3},
        {"budget": 20, "strategy": Active(check=5)},
        {"budget": 36, "strategy": Corrected()},
        {"budget": 20, "strategy": Active(focus="Eve's copy")},
        {"budget": 20, "estimator": Sample(estimators.permutation, 60)},
        {"budget": 20, "estimator": Sample(estimators.regression, 60)},
        {"budget": 20, "estimator": Sample(estimators.permutation, 60), "strategy": Drawn()},
    ],
)
@pytest.mark.filterwarnings("ignore:on check coalitions:UserWarning")
def test_equal_owners_are_equal_whatever_is_asked(options):
    owners, utility = copy_game(6)
    valuation = value(owners, utility, **options)
    assert_equal_owners(valuation)
    if not isinstance(options.get("semivalue"), dupre.LeastCore):
        widths = valuation.facts.forecast
        assert widths.empty == (valuation.facts.stopped == "nothing is left to evaluate")
        assert widths.empty or widths["Eve"].equals(widths["Eve's copy"])


@pytest.mark.slow
@pytest.mark.parametrize("semivalue", [dupre.shapley, dupre.LeastCore(draws=4)])
def test_equal_owners_are_equal_where_coalitions_are_sampled(semivalue):
    names = [f"owner {i}" for i in range(17)]
    data = {name: part(i, 8) for i, name in enumerate(names)} | {"copy": part(3, 8)}
    owners = dupre.Owners.from_mapping(data)
    options = {"budget": 45, "semivalue": semivalue, "estimator": Sample(regression, 300)}
    valuation = value(owners, utility_of(owners), **options)
    assert_equal_owners(valuation, "owner 3", "copy")
    assert valuation.facts.duplicates.different < valuation.facts.duplicates.coalitions


def test_a_question_about_two_equal_owners_is_settled_at_once():
    owners, utility = copy_game(5)
    rule, pair = dupre.stopping.settled("Eve", "Eve's copy"), Active(focus=("Eve", "Eve's copy"))
    assert value(owners, utility, stop=rule).facts.evaluated < 23
    assert value(owners, utility, budget=15, strategy=pair).facts.evaluated <= 15
    for_these_rows = utility_of(owners, resamples=0)
    everything = value(owners, for_these_rows, stop=dupre.stopping.ranking_settled())
    assert everything.facts.stopped == "the ranking is settled with 95 %"


@pytest.mark.parametrize("budget", [9, 14, 31])
def test_other_names_change_no_value(budget):
    """Names decide the order of owners, and so the last digits."""
    owners, names = with_copy(5), {"Zoe": 0, "10": 2, "2": 3, "Ann": 4, "Bob": 1}
    renamed = dupre.Owners.from_mapping({n: part(max(i - 1, 0)) for n, i in names.items()})
    ours = value(owners, utility_of(owners), budget=budget)
    theirs = value(renamed, utility_of(renamed), budget=budget)
    order = [names[name] for name in renamed.names]
    np.testing.assert_allclose(theirs.mean, ours.mean[order], rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        theirs.uncertainty.total, ours.uncertainty.total[np.ix_(order, order)], atol=1e-9
    )


class Partial(dupre.ModelUtility):
    def __call__(self, members, *, repeat=0):
        return super().__call__(members, repeat=repeat) + 0.1 * ("Eve" in members)


def test_a_utility_that_may_look_at_names_is_asked_by_names_and_so_is_a_valuer():
    owners = with_copy(4)
    valuation = value(owners, Partial(TREE, owners, validation=VALIDATION), budget=15)
    assert valuation.facts.evaluated == 15
    assert valuation.values["Eve"] - valuation.values["Eve's copy"] == pytest.approx(0.1)
    assert dupre.Valuer(owners, empty=0.0).question.counting == 15
    assert dupre.Valuer(owners, empty=0.0, by_content=True).question.counting == 11
    with pytest.raises(InputError, match="by_content must be True or False"):
        dupre.Valuer(owners, empty=0.0, by_content=1)


# --- ask / tell


def test_a_coalition_may_be_recorded_under_any_name_and_fails_under_all():
    owners, utility = copy_game(4)
    ours, theirs = (dupre.Valuer(owners, by_content=True, empty=utility.empty) for _ in "ab")
    swap = {"Eve": "Eve's copy", "Eve's copy": "Eve"}
    for members in ours.suggest(11):
        ours.record(members, utility(members))
        theirs.record([swap.get(name, name) for name in members], utility(members))
    assert ours.left == theirs.left == 0
    np.testing.assert_array_equal(ours.values().mean, theirs.values().mean)
    assert len(theirs.trainings) == len(theirs.evaluations) == theirs.evaluated == 11
    assert ("Eve's copy",) in theirs.trainings
    owners = with_copy(3)
    valuer = dupre.Valuer(owners, empty=0.0, by_content=True)
    valuer.record_failure(("Eve's copy",), "no memory")
    assert valuer.failures == {("Eve",): "no memory"}
    valuer.record(("Eve",), 0.5)
    assert not valuer.failures
    valuer.record_failure(("Eve's copy",), "no memory")
    assert not valuer.failures
    with pytest.raises(InputError, match="has a utility already"):
        valuer.record_failure(("Eve",), "no memory")


def test_what_is_suggested_pending_and_predicted_goes_by_rows():
    owners, utility = copy_game(5)
    valuer = dupre.Valuer(owners, by_content=True, empty=utility.empty)
    record(valuer, {members: utility(members) for members in valuer.suggest(8)})
    suggested = [*valuer.evaluations, *valuer.suggest(15)]
    assert len(suggested) == len({valuer.key(members) for members in suggested}) == 23
    assert not any("Eve's copy" in names and "Eve" not in names for names in suggested)

    first = next(names for names in valuer.suggest(10) if "Eve" in names and len(names) < 4)
    twin = tuple("Eve's copy" if name == "Eve" else name for name in first)
    assert first not in valuer.suggest(10, pending=[first if "Eve's copy" in first else twin])

    pairs = [("Eve", "owner 2"), ("Eve's copy", "owner 2"), ("Eve",), ("Eve's copy",)]
    frame = valuer.predict(pairs)
    assert frame["members"].tolist() == pairs
    columns = ["utility", "std", "low", "high", "evaluated"]
    for one, other in ((0, 1), (2, 3)):
        assert frame.loc[one, columns].equals(frame.loc[other, columns])


def test_utilities_of_the_same_rows_are_trainings():
    owners = with_copy(3)
    valuer = dupre.Valuer(owners, empty=0.0, by_content=True)
    utilities = {
        ("Eve's copy",): [0.6],
        ("Eve",): [0.4, 0.5],
        ("owner 1",): 0.3,
        ("Eve", "Eve's copy"): 0.6,
        ("Eve", "owner 1"): 0.7,
        ("Eve", "Eve's copy", "owner 1"): 0.9,
    }
    record(valuer, utilities)
    assert valuer.evaluated == 5
    assert valuer.evaluations["Eve",] == valuer.evaluations["Eve's copy",] == pytest.approx(0.5)
    assert valuer.trainings["Eve",] == (0.4, 0.5)
    assert valuer.trainings["Eve's copy",] == (0.6,)
    valuation = valuer.values()
    assert valuation.uncertainty.noise.any()
    assert_equal_owners(valuation)
    with pytest.raises(InputError, match="already has the utility"):
        valuer.record(("Eve's copy",), 0.7)


# --- stores


def test_a_run_that_is_resumed_ends_as_if_it_had_not_been_interrupted(tmp_path):
    (owners, utility), path = copy_game(5), tmp_path / "run.sqlite"

    def stop(progress):
        if progress.evaluated == 14:
            raise KeyboardInterrupt

    with pytest.raises(dupre.Interrupted):
        value(owners, utility, budget=18, store=path, progress=stop)
    resumed, once = (value(owners, utility, budget=18, store=store) for store in (path, None))
    assert resumed.facts.found == 14
    assert resumed.facts.duplicates == once.facts.duplicates
    assert len(resumed.evaluations) == resumed.facts.evaluated == 18
    assert_same(resumed, once)


def test_a_stored_training_answers_for_all_coalitions_that_hold_its_rows(tmp_path):
    owners, utility = copy_game(4)
    path = tmp_path / "run.sqlite"
    with open_store(path, of_owners(owners), describe(utility).fingerprint) as store:
        for names in (("Eve's copy",), ("Eve's copy", "owner 1"), ("Eve's copy", "owner 2")):
            seed = utility.training_seed(names)
            store.save(Evaluation(Training(names), utility(names), seed=seed))
    valuation = value(owners, utility, budget=15, store=path)
    assert valuation.facts.found == 3
    assert valuation.facts.evaluated == len(valuation.evaluations) == 11
    same, plain = warnings(valuation.notes)
    assert same.code == Code.SAME_OWNERS
    assert plain.text.startswith("3 of 11 evaluations came without scores on resamples")
    np.testing.assert_array_equal(valuation.mean, value(owners, utility, budget=15).mean)


def test_owners_with_other_names_are_known_by_their_rows(tmp_path):
    path, first, new = tmp_path / "run.sqlite", ["Ann", "Bob", "Cid", "Cid's copy"], list("WXYZ")
    for done, names in enumerate([first, ["Bob", "Ann", *first[2:]], new, new, first]):
        owners = dupre.Owners.from_mapping(dict(zip(names, map(part, [0, 1, 2, 2]), strict=True)))
        utility = utility_of(owners)
        again = value(owners, utility, budget=15, store=dupre.Stored(path), repeats=2)
        assert (again.facts.found, again.facts.checked, again.facts.stale) == (
            11 * (done > 0),
            done,
            0,
        )
        assert len(sql(path, "SELECT * FROM evaluations")) == len(again.evaluations) == 22
        for row in again.evaluations.itertuples():
            assert row.utility == utility(json.loads(row.coalition), repeat=row.repeat)
    checks = sql(path, "SELECT coalition, repeat FROM checks ORDER BY id")
    assert checks[1] != checks[2]


def test_what_is_known_under_both_names_is_kept_and_averaged(tmp_path):
    owners = with_copy(4)
    known = {("Eve",): 0.6, ("Eve's copy",): 0.7}
    options = {"budget": 11, "known": known, "store": tmp_path / "run.sqlite"}
    for _ in range(2):
        valuation = value(owners, utility_of(owners), **options)
        assert valuation.facts.evaluated == 11
        assert len(valuation.evaluations) == 12
        assert valuation.uncertainty.noise.any()
        assert_equal_owners(valuation)
        options["known"] = None


def test_more_repeats_of_rows_trained_under_two_names(tmp_path):
    owners, utility = copy_game(3)
    path = tmp_path / "run.sqlite"
    with open_store(path, of_owners(owners), describe(utility).fingerprint) as store:
        for repeat, names in enumerate([("Eve's copy",), ("Eve",)]):
            seed = utility.training_seed(names, repeat)
            found = utility(names, repeat=repeat)
            store.save(Evaluation(Training(names, repeat), found, seed=seed))
    valuation = value(owners, utility, budget=5, repeats=2, store=path)
    assert len(valuation.evaluations) == 10, "two repeats of five, none of them paid twice"
    assert_equal_owners(valuation)


class Fragile(DecisionTreeClassifier):
    """Cannot be trained on 24 rows."""

    def fit(self, X, y):
        if len(X) == 24:
            raise ValueError("24 rows")
        return super().fit(X, y)


def test_a_failure_is_tried_once_for_all_coalitions_that_hold_its_rows(tmp_path):
    owners = with_copy(3)
    utility = utility_of(owners, Fragile(max_features=1))
    options = {"budget": 7, "store": tmp_path / "run.sqlite", "engine": Local(on_error="skip")}
    for _ in range(2):
        valuation = value(owners, utility, **options)
        assert valuation.facts.evaluated == len(valuation.evaluations) == 5
        assert set(valuation.facts.failures) == {("Eve", "owner 1"), ("Eve", "Eve's copy")}
        assert_equal_owners(valuation)


# --- what is said


def test_text_and_json_say_who_holds_the_same_rows_and_what_it_saved():
    owners, utility = copy_game(5)
    valuation = value(owners, utility, budget=31)
    for note in (
        "Beware: Eve and Eve's copy hold the same rows: a copy is worth as much as the original.",
        "Some coalitions hold the same rows: the 31 that count are 23 different ones; 8 needed no "
        "training of their own.",
    ):
        assert valuation.explain().count(note) == 1
    text = format_comparison(valuation.semivalue, valuation.compare("Eve", "Eve's copy"))
    assert text == "Shapley: Eve and Eve's copy have the same value."
    assert (
        dupre.Valuation.from_json(valuation.to_json()).facts.duplicates
        == valuation.facts.duplicates
    )


FOUR_GROUPS = (("a", "b"), ("c", "d"), ("e", "f"), ("g", "h"))
NAMED = {
    FOUR_GROUPS[:1]: "a and b hold the same rows: ",
    (("a", "b", "c"),): "a, b and c hold the same rows: ",
    (tuple("abcde"),): "a, b and 3 more hold the same rows: ",
    FOUR_GROUPS[:2]: "a and b hold the same rows; so do c and d: ",
    FOUR_GROUPS: "a and b hold the same rows; so do c and d; so do 2 more groups of owners: ",
}


@pytest.mark.parametrize(("groups", "who"), NAMED.items())
def test_few_groups_are_named(groups, who):
    notes = made_up(duplicates=Duplicates(groups, 1_023, 767, 5)).notes
    (told,) = select(notes, [Code.SAME_OWNERS])
    assert told.text == f"{who}a copy is worth as much as the original."
    (saved,) = select(notes, [Code.DUPLICATES])
    different = "the 1,023 that count are 767 different ones; 5 needed no training of their own."
    assert saved.text == f"Some coalitions hold the same rows: {different}"


def test_coalitions_of_the_same_rows_say_nothing_of_owners():
    notes = made_up(duplicates=Duplicates((), 1_023, 767, 5)).notes
    assert has(notes, Code.DUPLICATES)
    assert not has(notes, Code.SAME_OWNERS)


# --- weights


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 7), min_size=2, max_size=6), st.integers(0, 2**32), st.booleans())
def test_merged_weights_give_the_same_values_of_games_of_contents(kinds, seed, sampled):
    """Owners hold the bits of small numbers as rows: 3 holds what 1 and 2 hold together."""
    n, rng = len(kinds), np.random.default_rng(seed)
    bits = np.array(kinds)[:, None] >> np.arange(3) & 1
    contents = (bits @ np.array([1, 100, 10_000])[:, None]).astype(np.uint64).repeat(2, axis=1)
    estimate = estimators.permutation if sampled else estimators.exact
    weights = estimate(dupre.shapley, n, *([4 * n, rng] if sampled else []))
    merged = merge(weights, Sameness(n, contents))
    members, column = merged.weights.members, merged.column
    bags = weights.members.astype(int) @ bits
    np.testing.assert_array_equal(members[column].astype(int) @ bits, bags)
    assert len(np.unique(bags, axis=0)) == len(members)
    sizes = members[column].sum(axis=1)
    assert (sizes <= weights.members.sum(axis=1)).all()
    utilities = rng.normal(size=1_000)[bags @ np.array([1, 9, 81]) % 1_000]
    of_merged = np.empty(len(members))
    of_merged[column] = utilities
    values = weights.W @ utilities
    kind = np.array([kinds.index(k) for k in kinds])
    mean = np.bincount(kind, values, minlength=n) / np.maximum(np.bincount(kind, minlength=n), 1)
    np.testing.assert_allclose(merged.weights.W @ of_merged, mean[kind], atol=1e-12)
    if not sampled:
        np.testing.assert_allclose(mean[kind], values, atol=1e-12)
    for i in range(n):
        np.testing.assert_array_equal(merged.weights.W[i], merged.weights.W[kind[i]])
        assert merged.weights.empty[i] == merged.weights.empty[kind[i]]
    assert merged.changed == (len(members) < len(weights.members) or len(set(kinds)) < n)


def test_the_fewest_owners_stand_for_others_and_their_weights_are_added_up():
    contents = np.array([[3, 0], [1, 0], [2, 0], [1, 0]], dtype=np.uint64)
    merged = merge(estimators.exact(dupre.shapley, 4), Sameness(4, contents))
    names = tuple("abcd")  # a holds what b and c hold, d is a copy of b

    def representative(members):
        row = from_names(tuple(members), names)
        at = np.flatnonzero((merged.by_name.members == row).all(axis=1))[0]
        return "".join(to_names(merged.weights.members[merged.column[at]], names))

    assert representative("d") == "b"
    assert representative("bc") == representative("cd") == "a"
    assert representative("bcd") == representative("ab") == "ab"
    assert representative("abcd") == "abcd"

    members = np.array([[1, 0], [0, 1], [1, 1]], dtype=bool)
    weights = Weights(members, np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([0.0, 1.0]))
    merged = merge(weights, Sameness(2, np.ones((2, 2), dtype=np.uint64)))
    np.testing.assert_array_equal(merged.weights.W, [[6.0, 4.5], [6.0, 4.5]])
    np.testing.assert_array_equal(merged.weights.empty, [0.5, 0.5])
    np.testing.assert_array_equal(merged.weights.members, [[1, 0], [1, 1]])


def test_covariance_of_sampling_is_that_of_averaged_values():
    rng = np.random.default_rng(1)
    weights = estimators.permutation(dupre.shapley, 4, 200, rng)
    contents = np.array([[1, 0], [2, 0], [4, 0], [2, 0]], dtype=np.uint64)
    merged = merge(weights, Sameness(4, contents))
    utilities = rng.normal(size=len(merged.weights.members))
    found = merged.sampling_covariance(utilities, 0.0, np.zeros(len(utilities)))
    plain = weights.sampling_covariance(utilities[merged.column], 0.0)
    average = np.array([[1, 0, 0, 0], [0, 0.5, 0, 0.5], [0, 0, 1, 0], [0, 0.5, 0, 0.5]])
    np.testing.assert_allclose(found, average @ plain @ average.T, atol=1e-15)


# --- how near owners are, and which rows they share


def test_distances_are_sliced_wasserstein_distances():
    owners = owners_and_games.make_owners(4, rows=50)
    d, _ = dupre.Valuer(owners, empty=0.0).question.relations
    assert np.allclose(d, d.T)
    assert not np.diag(d).any()
    # Both blocks are scaled to unit total variance and weigh alike, as in the sketch.
    X = owners.points.values[owners.points.index] / np.sqrt(owners.points.variance)
    rows = np.column_stack([X, (owners.y - owners.y.mean()) / owners.y.std()]) / 2
    for i, j in [(0, 1), (2, 3)]:
        pair = rows[owners.owner == i], rows[owners.owner == j]
        expected = ot.sliced_wasserstein_distance(*pair, n_projections=2000, p=1, seed=0)
        assert d[i, j] == pytest.approx(expected, rel=0.25)  # other directions


def test_rows_are_shared_with_their_targets_and_not_by_how_they_are_encoded():
    X = np.arange(12.0).reshape(6, 2)
    data = {
        "A": (X[:4], [0, 1, 0, 1]),
        "copy": (X[:4], [0, 1, 0, 1]),
        "half": (X[2:6], [0, 1, 0, 1]),
        "relabelled": (X[:4], [1, 0, 1, 0]),
        "twice": (np.repeat(X[:1], 3, axis=0), [0, 0, 0]),
    }
    shared = shared_rows(dupre.Owners.from_mapping(data))
    assert np.allclose(np.diag(shared), 1)
    assert shared[0].tolist() == [1, 1, 0.5, 0, 0.25]
    assert shared[4].tolist() == [1, 1, 0, 0, 1]
    levels = [f"common {i % 50}" for i in range(100)] + [f"rare {i}" for i in range(40)]
    who = ["A"] * 50 + ["B"] * 50 + ["C"] * 20 + ["D"] * 20
    gap = [1.0] * 100 + [np.nan] * 20 + [4.0] * 20
    frame = pd.DataFrame({"code": levels, "who": who, "gap": gap, "y": [1] + [0] * 139})

    def embed(X):
        return X[["gap"]].fillna(4.0).to_numpy()

    owners = dupre.Owners.from_frame(frame, owner="who", target="y", embed=embed)

    shared = shared_rows(owners)
    assert shared[2].tolist() == [0, 0, 1, 0]
    assert shared[0, 1] == 49 / 50


IMAGES = np.arange(24.0).reshape(6, 2, 2) % 8
TEXTS = ["a", "b", "a", "c", "b", "d"]


ROWS = {
    "images": (IMAGES, 1.0),
    "sparse": (sparse.csr_array(IMAGES.reshape(6, 4)), 1.0),
    "texts": (TEXTS, 0.5),
    "sets": ([{text} for text in TEXTS], 0.5),
    "locks": ([threading.Lock()] * 6, 0.0),
}


@pytest.mark.parametrize(("X", "expected"), ROWS.values(), ids=ROWS)
def test_rows_of_any_kind_are_compared_or_taken_to_differ(X, expected):
    def embed(X):
        return np.arange(6.0)[:, None]

    owners = dupre.Owners.from_arrays(X, [0, 1] * 3, list("AABBCC"), embed=embed)
    assert shared_rows(owners)[0, 1] == expected
