import re

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB

import dupre
from dupre.game.coalitions import to_names
from dupre.game.estimators import exact
from dupre.notes import Code, has, select, warnings
from dupre.predictor.gp import Amplitude, Scale, condition
from dupre.predictor.kernels import Constant, Linear, Membership, Prior, Scaled
from dupre.predictor.warp import curved_warp, straight_warp
from dupre.report.page import page
from dupre.report.summary import surely
from dupre.result.remarks import with_notes
from dupre.utility.describe import describe
from dupre.valuation.validation_rows import validation_notes
from owners_and_games import make_owners, shuffled_digits, smooth, value
from reporting import UNKNOWN_ROWS, valuation

X, Y = shuffled_digits()
OWNERS = dupre.Owners.from_arrays(X[:250], Y[:250], np.arange(250) % 5)
FIVE = make_owners(5)


def utility_on(rows, owners=OWNERS, **options):
    return dupre.ModelUtility(GaussianNB(), owners, validation=(X[rows], Y[rows]), **options)


def notes_on(utility):
    return validation_notes(describe(utility).validation)


@pytest.fixture(scope="module")
def complete():
    return value(OWNERS, utility_on(slice(300, 500)), budget=31)


@pytest.mark.parametrize("semivalue", [dupre.shapley, dupre.banzhaf])
def test_if_all_is_trained_it_is_the_bootstrap_of_the_exact_values(semivalue):
    utility = utility_on(slice(300, 500), metric="balanced_accuracy")
    found = value(OWNERS, utility, budget=31, semivalue=semivalue)
    weights = exact(semivalue, 5)
    members = [(), *(to_names(row, OWNERS.names) for row in weights.members)]
    empty, *others = [utility(names).resampled for names in members]
    change = weights.W @ np.array(others) + np.outer(weights.empty, empty) - found.mean[:, None]
    np.testing.assert_allclose(found.uncertainty.validation, change @ change.T / 200, rtol=1e-9)
    np.testing.assert_array_equal(found.uncertainty.total, found.uncertainty.validation)
    assert found.exact
    greater = found.probability_greater().to_numpy()
    drawn = change + found.mean[:, None]
    wins = np.mean(drawn[:, None] > drawn, axis=2) + np.eye(5) / 2
    np.testing.assert_allclose(greater, wins, atol=0.12)


def test_a_value_from_few_trainings_depends_on_rows_about_as_the_exact_one(complete):
    part = value(OWNERS, utility_on(slice(300, 500)), budget=16)
    np.testing.assert_allclose(
        part.uncertainty.std("validation"), complete.uncertainty.std("validation"), rtol=0.25
    )
    alone = part.uncertainty.errors(for_these_rows=True)
    total = alone.student + alone.normal + part.uncertainty.validation
    np.testing.assert_allclose(part.uncertainty.total, total)
    assert (part.uncertainty.std("validation") < part.std).all()
    assert (part.facts.forecast["widest"] > 1.96 * part.uncertainty.std("validation").max()).all()


@pytest.mark.parametrize("estimator", [dupre.estimators.permutation, None])
@pytest.mark.parametrize("strategy", [dupre.strategies.Corrected(), dupre.strategies.Active()])
def test_every_way_to_values_knows_the_part(complete, estimator, strategy):
    options = {"estimator": estimator, "strategy": strategy, "budget": 29}
    part = value(OWNERS, utility_on(slice(300, 500)), **options)
    np.testing.assert_allclose(
        part.uncertainty.std("validation"), complete.uncertainty.std("validation"), rtol=0.35
    )


def test_payments_of_a_least_core_depend_on_rows_too():
    core = value(OWNERS, utility_on(slice(300, 500)), budget=31, semivalue="least-core")
    few = value(OWNERS, utility_on(slice(300, 340)), budget=24, semivalue="least-core")
    assert core.uncertainty.std("validation").min() > 0
    assert (
        few.uncertainty.std("validation").mean() > 1.5 * core.uncertainty.std("validation").mean()
    )
    assert core.facts.subsidy.low < core.facts.subsidy.amount < core.facts.subsidy.high


@pytest.mark.parametrize("warp", ["straight", "curved", "stated mean"])
def test_weights_of_observed_utilities_are_the_derivative_of_predictions(warp):
    features = dupre.Valuer(FIVE, empty=0.0).question.features
    a, b = features[np.arange(0, 31, 2)], features[np.arange(1, 31, 2)]
    rng = np.random.default_rng(0)
    u, W = 1e-3 * rng.normal(size=len(a)) ** 3, rng.normal(size=(2, len(b)))
    prior = Prior(mean=Constant(0.0)) if warp == "stated mean" else Prior()
    bent = curved_warp(u)
    largest = int(a.total_rows.argmax())

    def process(utilities, warped):
        kernel = Scaled(Membership()) + Scaled(Linear())
        scale = Scale(warped, Amplitude(0.3, 2.0), prior)
        return condition(kernel, a, utilities, noise=0.1, scale=scale)

    def mean(utilities):
        own = straight_warp(utilities, empty=0.0, centre=utilities[largest])
        if warp == "curved":  # at its own width; the centre follows all utilities
            shift = np.mean(utilities - u)
            own = type(bent)(True, bent.centre + shift, bent.width, bent.shift, bent.scale)
        elif warp == "stated mean":
            own = type(bent)(False, 0.0, own.width, own.shift, own.scale)
        return W @ process(utilities, own).posterior(b, W).mean

    own = bent if warp == "curved" else straight_warp(u, empty=0.0, centre=u[largest])
    if warp == "stated mean":
        own = type(bent)(False, 0.0, own.width, own.shift, own.scale)
    found = process(u, own).posterior(b, W).observed_weights()
    step = 1e-8
    steps = [(mean(u + step * e) - mean(u - step * e)) / (2 * step) for e in np.eye(len(u))]
    np.testing.assert_allclose(found, np.array(steps).T, rtol=1e-4, atol=1e-5)


def test_repeated_trainings_are_averaged_and_plain_numbers_leave_the_part_unknown():
    game, rng = smooth(FIVE), np.random.default_rng(0)
    off = dict(zip(game.table, 0.1 * rng.normal(size=(31, 2, 50)), strict=True))
    valuer = dupre.Valuer(FIVE, empty=dupre.Score(0.1, np.full(50, 0.1)))
    for names, u in game.table.items():
        valuer.record(names, [dupre.Score(u, u + part) for part in off[names]])
    weights = exact(dupre.shapley, 5)
    mean = np.array([off[to_names(row, FIVE.names)].mean(axis=0) for row in weights.members])
    change = weights.W @ mean
    np.testing.assert_allclose(valuer.values().uncertainty.validation, change @ change.T / 50)
    other = dupre.Valuer(FIVE, empty=0.1)
    for names, u in game.table.items():
        other.record(names, dupre.Score(u, u + off[names][0]) if len(names) > 1 else u)
    assert other.values().uncertainty.validation is None
    assert other.values().explain().count(UNKNOWN_ROWS) == 1
    other.record(FIVE.names[:1], dupre.Score(game.of(FIVE.names[:1]), [0.1] * 20))
    assert other.values().uncertainty.validation is None  # of other resamples


@pytest.mark.slow
def test_values_of_many_validation_files_differ_as_reported():
    """40 disjoint files of one population."""
    owners = dupre.Owners.from_arrays(X[:120], Y[:120], np.arange(120) % 3)
    files = [slice(at, at + 40) for at in range(120, 1720, 40)]
    found = [value(owners, utility_on(rows, owners), budget=7) for rows in files]
    means, stds = np.array([v.mean for v in found]), np.array([v.std for v in found])
    spread = np.sqrt(means.var(axis=0, ddof=1).mean())
    assert np.sqrt((stds**2).mean()) == pytest.approx(spread, rel=0.15)
    inside = np.abs(means - means.mean(axis=0)) <= 1.96 * stds
    assert 0.91 <= inside.mean() <= 0.99


@pytest.mark.slow
def test_no_broker_of_random_rows_is_called_best_worst_or_harmful():
    """Unless it is so on most other validation files of the same population."""
    names = np.array([f"broker {i}" for i in range(6)])[np.arange(120) % 6]
    brokers = dupre.Owners.from_arrays(X[:120], Y[:120], names)
    files = [slice(at, at + 75) for at in range(200, 1700, 150)]
    found = [value(brokers, utility_on(rows, brokers), budget=20) for rows in files]
    ranges = [v.rank_range() for v in found]
    for extreme in ("best", "worst"):
        rank = 1 if extreme == "best" else 6
        ahead = [r[(r["best"] == rank) & (r["worst"] == rank)].index for r in ranges]
        for owner in brokers.names:
            said = sum(owner in who for who in ahead)
            place = [v.values.idxmax() if rank == 1 else v.values.idxmin() for v in found]
            assert said <= 1 or place.count(owner) > 5
    assert not any((v.interval()["high"] < 0).any() for v in found)


def test_it_stops_when_only_more_validation_rows_would_help():
    utility = utility_on(slice(300, 330))
    within = value(OWNERS, utility, stop=dupre.stopping.within(0.01))
    words = r"± 0.01 takes about ([\d.]+) times as many validation rows"
    times = re.fullmatch(words, within.facts.stopped)
    alone = 1.96 * within.uncertainty.std("validation").max() / 0.01
    assert float(times[1]) == pytest.approx(alone**2, abs=0.06)
    assert within.facts.evaluated < 31
    rows = value(OWNERS, utility, stop=dupre.stopping.rows_dominate(0.5))
    assert rows.facts.stopped == "validation rows are 50 % of the variance of the values"
    with pytest.raises(dupre.InputError, match="share must lie between"):
        dupre.stopping.rows_dominate(1.5)


def test_a_rule_about_rows_that_can_never_hold_does_not_train_everything():
    rows, other = dupre.stopping.rows_dominate(), dupre.stopping.evaluated(13)
    never = r"validation rows are 90 % .*' can never hold, .* State a budget, .* dupre\.Score"
    asked = []
    for utility in (
        utility_on(slice(300, 330), resamples=0),
        utility_on(slice(300, 301)),
        dupre.DataVolume(OWNERS),
    ):
        with pytest.raises(dupre.InputError, match=never):
            value(OWNERS, utility, stop=rows & other, progress=asked.append)
    assert not asked
    with pytest.raises(dupre.InputError, match=never) as caught:
        value(FIVE, smooth(FIVE), stop=rows)
    assert len(caught.value.valuer.trainings) == 16
    assert value(FIVE, smooth(FIVE), stop=rows | other).facts.evaluated < 31
    assert value(FIVE, smooth(FIVE), stop=rows, budget=15).facts.evaluated == 15
    three = make_owners(3)
    assert value(three, smooth(three), stop=rows).facts.evaluated == 7  # nothing is left to save


def test_both_intervals_and_what_would_help_are_said(complete):
    text, html = complete.explain(), page([complete])
    assert "Exact for these validation rows: every coalition" in text
    assert "for the population that the 200 validation rows come from, up to ±" in text
    assert "Only more validation rows can narrow the intervals: about 800 would halve" in text
    assert "values are exact for these validation rows" in html
    half = 1.96 * complete.std.max()
    assert complete.validation_rows_for(half / 2) == pytest.approx(800, rel=0.01)
    part = value(OWNERS, utility_on(slice(300, 500)), budget=12)
    assert part.validation_rows_for(part.uncertainty.std("prediction").max()) is None
    again = dupre.Valuation.from_json(complete.to_json())
    np.testing.assert_array_equal(again.uncertainty.validation, complete.uncertainty.validation)
    assert again.facts.validation_rows == 200
    assert (complete.interval(for_these_rows=True)["low"] == complete.values).all()
    volume = value(OWNERS, dupre.DataVolume(OWNERS), budget=31)
    assert UNKNOWN_ROWS not in volume.explain()


def test_rounding_is_not_taken_for_an_effect_of_the_validation_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), np.where(np.arange(200) % 60 == 1, "yes", "no")
    owners = dupre.Owners.from_arrays(X[:151], y[:151], rng.integers(6, size=151))
    utility = dupre.ModelUtility(DummyClassifier(), owners, validation=(X[151:], y[151:]))
    for budget in (20, 63):
        found = value(owners, utility, budget=budget)
        assert not found.uncertainty.validation.any()
        assert "No resample of the 49 validation rows changes the values." in found.explain()


def test_rows_that_every_model_gets_right_are_no_proof_and_those_trained_on_are_told():
    label = np.repeat(["0", "10", "20"], 20)
    x = label.astype(float)[:, None] + np.linspace(0, 1, 60)[:, None]
    owners = dupre.Owners.from_arrays(x, label, np.arange(60) % 3)
    how = {"validation": (x[::2], label[::2]), "metric": "roc_auc_ovr"}
    utility = dupre.ModelUtility(GaussianNB(), owners, **how)
    found = value(owners, utility, budget=7)
    assert not found.std.any()  # not even by rounding
    words = "No resample of the 30 validation rows changes the values. What is true of fewer than"
    assert words in found.explain()
    assert "Exact for these validation rows: every" in found.explain()
    told = "Beware: 30 of the 30 validation rows are also among the rows to train on, so models"
    assert found.explain().count(told) == 1
    assert page([found]).count(words) == 1


@pytest.mark.filterwarnings("ignore:the metric depends on the order of validation rows")
def test_the_result_says_that_a_metric_depends_on_the_order_of_rows():
    held = np.where(Y[300:400] == 1, 20.0, 1.0)
    utility = utility_on(
        slice(300, 400), metric=lambda m, X, y: np.average(m.predict(X) == y, weights=held)
    )
    found = value(OWNERS, utility, budget=8)
    assert found.uncertainty.validation is None
    assert UNKNOWN_ROWS in found.explain()
    assert "UserWarning: the metric depends on the order of validation rows" in found.explain()


def test_another_number_of_resamples_is_refused_by_a_store_before_a_training(tmp_path):
    path, rows = tmp_path / "run.sqlite", slice(300, 400)
    first = value(OWNERS, utility_on(rows), budget=8, store=path)
    for count in (0, 100, 199):
        message = rf"scored on 200 resamples .* resamples={count} .* state resamples=200, or take"
        with pytest.raises(dupre.StoreError, match=message):
            value(OWNERS, utility_on(rows, resamples=count), budget=12, store=path)
    other = value(OWNERS, utility_on(rows, resamples=100), budget=12).evaluations
    with pytest.raises(dupre.StoreError, match=r"known trainings .* state resamples=100"):
        value(OWNERS, utility_on(rows), budget=12, store=path, known=other)
    assert len(dupre.read_evaluations(path)) == first.facts.evaluated
    again = value(OWNERS, utility_on(rows), budget=8, store=path)
    np.testing.assert_array_equal(again.uncertainty.validation, first.uncertainty.validation)
    assert not has(again.notes, Code.MIXED_RESAMPLES, Code.MISSING_RESAMPLES)
    copied, path = np.repeat(np.arange(300, 400), 3), tmp_path / "copies.sqlite"
    value(OWNERS, utility_on(copied), budget=8, store=path)
    with pytest.raises(dupre.StoreError, match=r"scored on 200 resamples .* state resamples=200"):
        value(OWNERS, utility_on(copied, resamples=100), budget=8, store=path)
    assert (
        value(OWNERS, utility_on(copied), budget=8, store=path).uncertainty.validation is not None
    )
    without = tmp_path / "without.sqlite"
    value(OWNERS, utility_on(rows, resamples=0), budget=8, store=without)
    assert value(OWNERS, utility_on(rows), budget=8, store=without).uncertainty.validation is None


def test_two_numbers_of_resamples_cannot_be_used_together_and_the_result_says_so():
    right = np.random.default_rng(0).integers(2, size=(6, 40))

    def utility(members):
        return dupre.Score.from_rows(right[len(members)], 100 if len(members) > 2 else 200)

    found = value(OWNERS, utility, budget=12)
    assert found.uncertainty.validation is None
    assert "scored on 100 and 200 resamples of the validation rows" in found.explain()
    (told,) = select(found.notes, [Code.MIXED_RESAMPLES])
    assert told.facts == {"resamples": [100, 200]}


def test_a_file_that_was_joined_to_itself_tells_no_more_than_once():
    rows = np.arange(300, 400)
    once, thrice = (
        value(OWNERS, utility_on(which), budget=31) for which in (rows, np.tile(rows, 3))
    )
    np.testing.assert_allclose(thrice.mean, once.mean)
    np.testing.assert_allclose(thrice.std, once.std)
    assert thrice.facts.validation_rows == once.facts.validation_rows == 100
    assert thrice.validation_rows_for(0.02) == pytest.approx(once.validation_rows_for(0.02), 0.05)
    told = "Beware: 200 of the 300 validation rows are copies of others, as a join makes them."
    assert told in thrice.explain()
    assert "equal to others" not in once.explain()
    assert "copies of others" not in once.explain()


@pytest.mark.parametrize("rows", [slice(300, 301), slice(300, 309), np.repeat([300, 301], 9)])
@pytest.mark.parametrize("empty", [None, 0.1])
def test_few_validation_rows_cannot_show_how_far_others_are(rows, empty):
    utility = utility_on(rows, empty=empty)
    found = value(OWNERS, utility, budget=31)
    count = len(np.unique(utility.X_val, axis=0))
    assert (found.uncertainty.validation is None) == (count == 1)
    assert np.isnan(found.uncertainty.std("validation")).all() == (count == 1)
    assert found.facts.validation_rows == count
    told = f"Beware: {count} validation row{'' if count == 1 else 's'} cannot show how much others"
    assert told in found.explain()
    assert Code.FEW_ROWS in {one.code for one in found.verdict.reasons}
    assert found.verdict.kind == "not payable"
    if found.mean.max() > 0:
        short = f"- Too few validation rows ({count}); 10 are the least."
        assert short in str(found.payments(100, anyway=True))
    assert "Exact for these validation rows: every coalition" in found.explain()
    assert (UNKNOWN_ROWS in found.explain()) == (count == 1)
    assert not re.search("surely", page([found]), re.IGNORECASE)
    assert "apart from the choice of the validation rows" in page([found])
    assert "1 validation rows" not in page([found])


def test_utilities_on_resamples_of_one_row_that_are_stored_are_not_used():
    utility = utility_on(slice(300, 301))
    valuer = dupre.Valuer(OWNERS, empty=utility(()))
    for names in valuer.suggest(12):
        valuer.record(names, dupre.Score(utility(names), np.zeros(utility.resamples)))
    assert valuer.values().uncertainty.validation is None


@pytest.mark.parametrize("semivalue", ["shapley", "least-core"])
def test_evaluations_without_resamples_are_counted_in_words(semivalue):
    of_resamples = (Code.MISSING_RESAMPLES, Code.FEW_RESAMPLES)

    def told(*scores):
        valuer = dupre.Valuer(FIVE, empty=0.0, semivalue=semivalue)
        for name, score in zip(FIVE.names, scores, strict=False):
            valuer.record((name,), score)
        found = valuer.values()
        assert (UNKNOWN_ROWS in found.explain()) == (found.uncertainty.validation is None)
        return " ".join(one.text for one in warnings(found.notes) if one.code in of_resamples)

    some, more = dupre.Score(0.5, [0.4, 0.6] * 10), dupre.Score(0.7, [0.6, 0.8] * 10)
    assert told(some, more) == told(0.5, 0.7) == ""
    came = "2 of 3 evaluations came without scores on resamples of the validation rows; how much"
    assert came in told(some, 0.5, 0.7)
    few = [dupre.Score(0.5, [0.4, 0.6]), dupre.Score(0.7, [0.6, 0.8])]
    assert told(*few).startswith("2 resamples of the validation rows cannot show how much other")
    assert "right to about ± 50 % only. Score on 20 resamples at least" in told(*few)
    nearly = [dupre.Score(score, score.resampled[:19]) for score in (some, more)]
    assert told(*nearly).startswith("19 resamples")
    assert "± 16 % only" in told(*nearly)
    assert "cannot show" not in told(*few, 0.5)  # that they are not known says more


def scored(y_val, **options):
    """A utility with these validation targets."""
    rng, m = np.random.default_rng(0), len(y_val)
    numbers = np.asarray(y_val).dtype.kind == "f"
    y = rng.normal(size=60) if numbers else np.array([y_val[0], y_val[-1]] * 30)
    owners = dupre.Owners.from_arrays(rng.normal(size=(60, 2)), y, np.arange(60) % 3)
    model = Ridge() if numbers else LogisticRegression()
    return dupre.ModelUtility(model, owners, validation=(rng.normal(size=(m, 2)), y_val), **options)


def scored_by_class(sick, well, metric="balanced_accuracy"):
    return scored(["sick"] * sick + ["well"] * well, metric=metric)


def seen_by_models(others):
    """Scored on all 60 rows to train on, and on others."""
    rng, y = np.random.default_rng(0), np.arange(60 + others) % 2
    X = rng.normal(size=(60 + others, 2))
    owners = dupre.Owners.from_arrays(X[:60], y[:60], np.arange(60) % 3)
    return dupre.ModelUtility(LogisticRegression(), owners, validation=(X, y))


HUNDRED = np.arange(300, 400)
JOINED = np.repeat(HUNDRED, np.random.default_rng(0).geometric(0.5, 100))
TARGETS = np.random.default_rng(1).normal(size=40)
COSTS = np.exp(np.random.default_rng(1).normal(size=300))
MEDIAN = {"metric": "neg_median_absolute_error"}
ABSOLUTE = {"metric": "neg_mean_absolute_error"}
ROWS = {
    "equal rows": (lambda: utility_on(JOINED), Code.EQUAL_ROWS,
        {"repeated": len(JOINED) - 100, "rows": len(JOINED), "counted": len(JOINED)}),
    "some equal rows": (lambda: utility_on(np.append(HUNDRED, HUNDRED[:5])), None, {}),
    "ten rows": (lambda: utility_on(slice(300, 310)), None, {}),
    "no rows": (lambda: smooth(FIVE), None, {}),
    "few of 60": (lambda: scored_by_class(2, 58), Code.FEW_OF_A_CLASS, {"sick": 2}),
    "few of 100": (lambda: scored_by_class(9, 91), Code.FEW_OF_A_CLASS, {"sick": 9}),
    "few of 12": (lambda: scored_by_class(2, 10), Code.FEW_OF_A_CLASS, {"sick": 2}),
    "half of a share": (lambda: scored_by_class(9, 20), None, {}),
    "a quarter of 12": (lambda: scored_by_class(3, 9), None, {}),
    "ten of a class": (lambda: scored_by_class(10, 90), None, {}),
    "few that hardly count": (lambda: scored_by_class(3, 297, "accuracy"), None, {}),
    "few that count": (lambda: scored_by_class(3, 57, "accuracy"), Code.FEW_OF_A_CLASS,
        {"sick": 3}),
    "few of the class of F1": (lambda: scored([1] * 29 + [0] * 100, metric="f1"),
        Code.FEW_OF_A_CLASS, {"1": 29}),
    "thirty of the class of F1": (lambda: scored([1] * 30 + [0] * 100, metric="f1"), None, {}),
    "few others in F1": (lambda: scored([1] * 100 + [0] * 29, metric="f1"), None, {}),
    "few where both count": (lambda: scored([1] * 29 + [0] * 100, metric="roc_auc"), None, {}),
    "usual targets": (lambda: scored(TARGETS), None, {}),
    "a far target": (lambda: scored(np.append(TARGETS, 7.0)), Code.DOMINANT_ROW, 41),
    "a heavy tail": (lambda: scored(COSTS), Code.HEAVY_TAIL, 300),
    "a light one": (lambda: scored(np.log(COSTS)), None, {}),
    "a heavy one in a mean": (lambda: scored(COSTS, **ABSOLUTE), None, {}),
    "a far one in a median": (lambda: scored(np.append(TARGETS, 7.0), **MEDIAN), None, {}),
    "seen rows": (lambda: seen_by_models(0), Code.SEEN_ROWS, {"seen": 60, "rows": 60}),
    "some seen rows": (lambda: seen_by_models(20), Code.SEEN_ROWS, {"seen": 60, "rows": 80}),
}  # fmt: skip


@pytest.mark.parametrize(("make", "code", "facts"), ROWS.values(), ids=ROWS)
def test_rows_worth_less_than_their_number_are_noted_and_then_nothing_is_sure(make, code, facts):
    found = notes_on(make())
    assert [one.code for one in found] == [code] * (code is not None)
    if found:
        assert facts in (found[0].facts, found[0].facts["rows"])
    sure = valuation(validation=np.zeros((6, 6)))
    assert surely(with_notes(sure, found)) == (
        "surely" if code in (None, Code.EQUAL_ROWS) else "apparently"
    )


def test_fewer_than_ten_rows_do_not_say_how_many_it_takes():
    for count, told in ((9, False), (60, True)):
        found = value(OWNERS, utility_on(slice(300, 300 + count)), budget=31)
        assert "nly more validation rows can" in found.explain()
        assert ("would halve the widest" in found.explain()) == told
