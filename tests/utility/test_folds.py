"""Folds: which rows train and validate, and what a coalition then scores."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, RepeatedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dupre
from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.notes import Code, has, select
from dupre.utility.describe import describe
from dupre.utility.folds import deal, default_folds, shares_of_owners
from dupre.valuation.validation_rows import validation_notes


def rows(n=90, owners=3, seed=0, classes=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = X[:, 0] + 0.5 * rng.normal(size=n)
    return X, (y > 0).astype(int) if classes else y, np.array([f"o{i % owners}" for i in range(n)])


def make(split, *, model=None, metric=None, classes=True, **how):
    X, y, who = rows(classes=classes)
    model = model or (LogisticRegression() if classes else Ridge())
    owners = Owners.from_arrays(X, y, who)
    return dupre.ModelUtility(model, owners, validation=split, metric=metric, **how)


def fold_of(dealt, owners):
    """The fold that each row validates in, by its position among the owners' rows."""
    found = np.full(len(owners.y), -1)
    for fold, test in enumerate(dealt.tests):
        found[dealt.row[test]] = fold
    return found


def test_every_row_validates_once_and_never_trains_for_its_own_fold():
    owners = Owners.from_arrays(*rows())
    dealt = deal(dupre.Folds(5), owners, seed=0)
    assert sorted(dealt.row) == list(range(90))
    for train, test in dealt.parts():
        assert not train[dealt.row[test]].any()
        assert train.sum() == 90 - len(test)


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(30)), st.integers(0, 5))
def test_the_fold_of_a_row_depends_on_its_contents_and_the_seed_alone(order, seed):
    X, y, who = rows(30)
    order = np.array(order)
    first = Owners.from_arrays(X, y, who)
    second = Owners.from_arrays(X[order], y[order], who[order])
    fewer = Owners.from_arrays(X[who != "o2"], y[who != "o2"], who[who != "o2"])
    folds = [fold_of(deal(dupre.Folds(4), o, seed=seed), o) for o in (first, second, fewer)]
    assert np.array_equal(folds[0][order], folds[1])
    assert np.array_equal(folds[0][who != "o2"], folds[2])


def test_other_deals_and_seeds_are_other_folds():
    owners = Owners.from_arrays(*rows())
    first, *others = (
        fold_of(deal(dupre.Folds(5), owners, seed=s, number=n), owners)
        for s, n in ((0, 0), (1, 0), (0, 1))
    )
    for other in others:
        assert 0.05 < np.mean(first == other) < 0.45


def test_equal_rows_validate_once_and_an_owner_who_pads_its_rows_gains_nothing():
    X, y, who = rows()
    padded = [np.concatenate([part, part[who == "o0"]]) for part in (X, y, who)]
    plain, more = Owners.from_arrays(X, y, who), Owners.from_arrays(*padded)
    utilities = [
        dupre.ModelUtility(LogisticRegression(), o, validation=dupre.Folds(5))
        for o in (plain, more)
    ]
    assert len(utilities[0].y_val) == len(utilities[1].y_val) == 90
    assert utilities[0](("o1", "o2")) == utilities[1](("o1", "o2"))
    for owners, utility in zip((plain, more), utilities, strict=True):
        shares = shares_of_owners(owners, utility.first_deal.row)
        assert shares == pytest.approx(dict.fromkeys(("o0", "o1", "o2"), 1 / 3))


@pytest.mark.parametrize("classes", [True, False])
def test_a_utility_is_the_metric_of_the_pooled_predictions(classes):
    utility = make(dupre.Folds(6), classes=classes, floor=False)
    owners, dealt = utility.owners, utility.first_deal
    predicted = np.empty(90, dtype=dealt.y.dtype)
    mine = np.isin(owners.owner, [0, 2])
    for train, test in dealt.parts():
        model = (LogisticRegression() if classes else Ridge()).fit(
            owners.X[mine & train], owners.y[mine & train]
        )
        predicted[test] = model.predict(dealt.X[test])
    score = (accuracy_score if classes else r2_score)(dealt.y, predicted)
    assert utility(("o0", "o2")) == pytest.approx(score, abs=1e-9)
    assert describe(utility).folds == 6


def test_probabilities_are_pooled_and_areas_averaged_by_pairs():
    utility = make(dupre.Folds(4), metric="neg_log_loss")
    assert np.isfinite(utility(("o0", "o1")))
    utility = make(dupre.Folds(4), metric="roc_auc")
    owners, dealt = utility.owners, utility.first_deal
    areas, pairs = [], []
    for train, test in dealt.parts():
        mine = np.isin(owners.owner, [0, 1]) & train
        model = LogisticRegression().fit(owners.X[mine], owners.y[mine])
        y = dealt.y[test]
        areas.append(roc_auc_score(y, model.decision_function(dealt.X[test])))
        pairs.append((y == 0).sum() * (y == 1).sum())
    score = utility(("o0", "o1"))
    assert score == pytest.approx(np.average(areas, weights=pairs))
    assert np.isfinite(score.resampled).all()
    assert np.mean(score.resampled) == pytest.approx(score, abs=0.03)


def test_a_scorer_of_ones_own_is_averaged_over_folds_by_rows():
    def right(model, X, y):
        return float(np.mean(model.predict(X) == y))

    own, known = make(dupre.Folds(5), metric=right), make(dupre.Folds(5))
    assert own(("o0", "o1")) == pytest.approx(known(("o0", "o1")))
    assert own(("o0",)).resampled == pytest.approx(known(("o0",)).resampled)


def test_a_fold_for_which_no_row_is_left_has_the_prediction_of_no_data():
    X, y, who = rows()
    who = np.where(np.arange(90) == 0, "one", "rest")
    owners = Owners.from_arrays(X, y, who)
    utility = dupre.ModelUtility(LogisticRegression(), owners, validation=dupre.Folds(5))
    fold = fold_of(utility.first_deal, owners)
    best = np.bincount(y).argmax()
    right = np.where(fold == fold[0], y == best, y == y[0])
    assert utility(("one",)) == pytest.approx(right.mean())


def test_a_repeat_deals_anew_and_the_first_is_the_one_that_counts():
    utility = make(dupre.Folds(5), classes=False)
    traits = describe(utility)
    assert traits.deals
    assert not traits.deals_rows
    scores = [float(utility(("o0",), repeat=r)) for r in (0, 1, 2, 0)]
    assert scores[0] == scores[3]
    assert len(set(scores)) == 3
    assert not describe(make(KFold(3))).deals
    assert describe(make(dupre.Holdout(0.3))).deals_rows


def test_holding_out_trains_on_the_other_rows():
    utility = make(dupre.Holdout(0.3))
    [(train, test)] = utility.first_deal.parts()
    assert 12 < len(test) < 42
    assert train.sum() == 90 - len(test)
    assert not train[utility.first_deal.row].any()


def test_an_owner_is_told_which_of_its_rows_are_held_out():
    _, _, who = rows()
    utility = make(dupre.Holdout(0.3))
    held = describe(utility).validation.held_out
    chosen = np.isin(np.arange(90), utility.first_deal.row)
    assert held == {o: (1 + np.flatnonzero(chosen[who == o])).tolist() for o in ("o0", "o1", "o2")}
    found = dupre.value(utility.owners, utility, budget=7, progress=False)
    told = found.facts.provenance["rows held out"]["o1"]
    assert told == ", ".join(map(str, held["o1"]))
    assert not describe(make(dupre.Folds(3))).validation.held_out


def test_labels_stay_together_and_times_come_later():
    X, y, who = rows()
    owners = Owners.from_frame(
        pd.DataFrame(X, columns=list("abc")).assign(y=y, who=who, when=np.arange(90) // 2),
        owner="who",
        target="y",
    )
    patient = np.arange(90) // 9
    fold = fold_of(deal(dupre.Folds(3, by=patient), owners, seed=0), owners)
    assert all(len(set(fold[patient == p])) == 1 for p in range(10))
    dealt = deal(dupre.Folds(4, in_time="when"), owners, seed=0)
    for train, test in dealt.parts():
        times = owners.X["when"].to_numpy()
        assert times[train].max() < times[dealt.row[test]].min()
    assert len(dealt.tests) == 4


@pytest.mark.parametrize("how", ["by", "in_time"])
def test_who_copies_rows_under_other_labels_or_times_is_not_paid_for_knowing_them(how):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), rng.integers(0, 2, 80)  # nothing can be learned
    X, y = np.concatenate([X, X]), np.concatenate([y, y])
    who = np.repeat(["a", "b", "thief"], [40, 40, 80])
    label = {"by": np.arange(160) // 4, "in_time": np.append(1 + np.arange(80), np.zeros(80))}[how]
    owners = Owners.from_arrays(X, y, who)
    dealt = deal(dupre.Folds(4, **{how: label}), owners, seed=0)
    for train, test in dealt.parts():
        seen = np.isin(owners.row_contents[:, 0], owners.row_contents[dealt.row[test], 0]) & train
        assert not seen.any()
    utility = dupre.ModelUtility(
        KNeighborsClassifier(1), owners, validation=dupre.Folds(4, **{how: label})
    )
    assert utility(("a", "b", "thief")) < 0.7  # knowing the rows, it would be 1


def test_texts_have_no_order_in_time():
    with pytest.raises(InputError, match=r"got texts such as '3\.12\.2023'"):
        make(dupre.Folds(3, in_time=np.array(["3.12.2023", "12.1.2024", "4.2.2024"] * 30)))


@pytest.mark.parametrize("inside", ["search", "pipeline", "target"])
def test_labels_reach_a_model_that_cross_validates_inside(inside):
    patient = np.arange(90) // 9
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=GroupKFold(2))
    model = {
        "search": search,
        "pipeline": make_pipeline(StandardScaler(), make_pipeline(search)),
        "target": TransformedTargetRegressor(
            make_pipeline(StandardScaler(), GridSearchCV(Ridge(), {"alpha": [1]}, cv=GroupKFold(2)))
        ),
    }[inside]
    utility = make(dupre.Folds(3, by=patient), model=model, classes=inside != "target")
    assert 0 <= utility(("o0", "o1")) <= 1


def test_a_row_that_a_splitter_scores_twice_is_one_row():
    twice = make(RepeatedKFold(n_splits=3, n_repeats=2, random_state=0))
    assert (twice.equal_rows.counted, twice.equal_rows.repeated) == (90, 0)
    scored = describe(twice).validation
    assert sum(scored.shares.values()) == pytest.approx(1)
    assert not has(validation_notes(scored), Code.COPIED_ROWS)
    with pytest.raises(InputError, match=r"GroupKFold cannot split .* state Folds\(by=LABELS\)"):
        make(GroupKFold(3))


def test_rows_of_a_fold_without_a_class_count_nothing_and_no_model_is_trained_for_it():
    X, _, who = rows(60)
    y = (np.arange(60) % 20 == 0).astype(int)  # 3 rows for 6 folds
    owners, trained = Owners.from_arrays(X, y, who), []

    class Own(LogisticRegression):
        def fit(self, X, y):
            trained.append(len(y))
            return super().fit(X, y)

    utility = dupre.ModelUtility(Own(), owners, validation=dupre.Folds(6), metric="roc_auc")
    dealt, scored = utility.first_deal, describe(utility).validation
    useful = [test for test in dealt.tests if 0 < dealt.y[test].sum() < len(test)]
    assert 0 < len(useful) < 6
    counting = np.concatenate(useful)
    assert describe(utility).validation_rows == len(counting) < 60
    of_owner = np.bincount(owners.owner[dealt.row[counting]], minlength=3)
    assert list(scored.shares.values()) == pytest.approx(of_owner / len(counting))
    (told,) = select(validation_notes(scored), [Code.FOLDS_WITHOUT_CLASS])
    assert told.facts["folds"] == 6 - len(useful)
    utility(owners.names)
    assert len(trained) == len(useful)


def test_owners_can_weigh_alike():
    X, y, who = rows()
    who = np.where(np.arange(90) < 60, "large", who)
    owners = Owners.from_arrays(X, y, who)
    plain, equal = (
        dupre.ModelUtility(LogisticRegression(), owners, validation=dupre.Folds(5, equal_owners=e))
        for e in (False, True)
    )
    dealt = equal.first_deal
    of_owner = [dealt.weights[owners.owner[dealt.row] == i].sum() for i in range(owners.n)]
    assert of_owner == pytest.approx([90 / owners.n] * owners.n)
    assert plain(("large",)) != equal(("large",))
    assert equal(("large",)).resampled.mean() == pytest.approx(equal(("large",)), abs=0.03)
    with pytest.raises(InputError, match="cannot weigh owners alike"):
        dupre.ModelUtility(
            LogisticRegression(),
            owners,
            validation=dupre.Folds(5, equal_owners=True),
            metric="roc_auc",
        )


def test_what_cannot_be_split_is_refused_before_anything_is_trained():
    assert [default_folds(n) for n in (2_000, 2_001)] == [10, 5]
    for split, words in (
        (lambda: dupre.Folds(1), "folds must be"),
        (lambda: dupre.Holdout(1.0), "between 0 and 1"),
        (lambda: dupre.Folds(3, by="a", in_time="b"), "not both"),
    ):
        with pytest.raises(InputError, match=words):
            split()
    for split, words in (
        (dupre.Folds(91), "91 folds of 90 different rows"),
        (dupre.Folds(3, by=np.zeros(90)), "3 folds of 1 labels"),
        (dupre.Folds(3, by=np.zeros(9)), "one label for each of the 90 rows"),
        (dupre.Folds(5, in_time=np.zeros(90)), "expected more times than folds"),
    ):
        with pytest.raises(InputError, match=words):
            make(split)
    X, y, who = rows()
    y = np.where(np.arange(90) < 2, 2, y)
    with pytest.raises(InputError, match="has no row of class"):
        dupre.ModelUtility(
            DummyClassifier(),
            Owners.from_arrays(X, y, who),
            validation=dupre.Folds(5),
            metric="roc_auc_ovr",
        )


def test_what_decides_a_split_is_told_in_words():
    for split, words in (
        (dupre.Folds(), "10 folds"),
        (dupre.Folds(3, by=np.arange(90) % 9), "3 folds, those of a label together"),
        (
            dupre.Folds(3, in_time=np.arange(90), equal_owners=True),
            "3 folds, in time; rows of every owner weigh the same",
        ),
        (dupre.Holdout(0.25), "0.25 of the rows held out"),
    ):
        assert describe(make(split)).fingerprint["folds"].description == words
