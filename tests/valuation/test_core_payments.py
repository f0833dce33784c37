import numpy as np
import pytest
from scipy.stats import chi2

import closed_form
import dupre
import owners_and_games
from dupre import InputError
from dupre.game.coalitions import all_coalitions, from_names, to_names
from dupre.game.estimators import Sample, permutation, regression
from dupre.predictor.calibration import student
from dupre.predictor.kernels import Membership, Prior
from dupre.training.engines import Local
from dupre.valuation import core_payments
from dupre.valuation.stopping import within
from dupre.valuation.strategies import Active
from owners_and_games import LoggedGame, evaluate, holds, least_share, make_owners, record, white

TWO, FOUR, FIVE, MANY = map(make_owners, (2, 4, 5, 17))
SAMPLE = Sample(regression, 110)


@pytest.fixture(scope="module", autouse=True)
def short_searches():
    """They are tested elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core_payments, "LOOKED_AT", 700)
        patch.setattr("dupre.game.least_core.CLIMBS", 2)
        yield


def random_sum(owners, seed=0, empty=0.25):
    rng = np.random.default_rng([owners.n, seed])
    game = closed_form.unanimity_sum(owners.n, 2 * owners.n, rng)
    return LoggedGame(owners, lambda C: empty + game.utility(C), empty)


def diminishing(owners):
    worth = np.random.default_rng(owners.n).uniform(0.1, 1, owners.n)
    return LoggedGame(owners, lambda C: 1 - np.exp(-(C @ worth)))


def value(owners, utility, budget, draws=20, **options):
    core = dupre.LeastCore(draws=draws)
    options = {"empty": getattr(utility, "empty", 0.0), "progress": False} | options
    return dupre.value(owners, utility, budget=budget, semivalue=core, **options)


def valuer(owners, utility=None, draws=20, **options):
    empty = 0.0 if utility is None else utility.empty
    return dupre.Valuer(owners, semivalue=dupre.LeastCore(draws=draws), empty=empty, **options)


def all_but(utility, lost=()):
    return {members: number for members, number in utility.table.items() if members not in lost}


def predict(ours, rows):
    """Utilities that the payments of an uncertain valuation are of, (m,)."""
    return ours.state.beliefs.predict_by_best(np.atleast_2d(rows))


def excess(valuation, owners, members, utility):
    """What a coalition gains above its payments and the subsidy."""
    paid = from_names(members, owners.names) @ valuation.mean
    return utility - valuation.facts.empty - paid - valuation.facts.subsidy.amount


def assert_same_payments(first, second):
    owners_and_games.assert_same(first, second)
    assert first.facts.subsidy == second.facts.subsidy


def draws_off(count):
    """By which factor a variance of this many draws may be off, but for bad luck of 1 in 10,000."""
    return chi2.ppf([5e-5, 1 - 5e-5], count) / count


# Everything is evaluated.


@pytest.mark.parametrize(("n", "seed"), [(2, 0), (3, 1), (4, 0), (6, 1)])
def test_payments_are_the_least_core_once_everything_is_evaluated(n, seed):
    owners = make_owners(n)
    utility = random_sum(owners, seed)
    valuation = value(owners, utility, 2**n - 1)
    core = utility.core()
    np.testing.assert_allclose(valuation.mean, core.payments, atol=1e-12)
    assert valuation.facts.subsidy.amount == pytest.approx(core.subsidy, abs=1e-12)
    assert (
        valuation.facts.subsidy.low
        == valuation.facts.subsidy.high
        == valuation.facts.subsidy.amount
    )
    assert not valuation.uncertainty.total.any()
    assert valuation.exact
    assert valuation.facts.diagnostics is None
    assert valuation.facts.subsidy.proven
    assert valuation.facts.subsidy.looked == 2**n - 2
    assert valuation.facts.subsidy.violation < 1e-12
    assert valuation.semivalue == "Least core"


def test_the_tightest_coalitions_are_all_that_are_paid_least_and_none_less():
    utility = random_sum(FIVE)
    valuation = value(FIVE, utility, 31)
    rows = [to_names(row, FIVE.names) for row in all_coalitions(5)[:-1]]
    over = {members: excess(valuation, FIVE, members, utility.of(members)) for members in rows}
    tight = valuation.facts.subsidy.tight
    assert max(over.values()) < 1e-8
    assert set(tight) == {members for members, gap in over.items() if gap > -1e-8}
    assert len(tight) == len(set(tight))
    sizes = [len(members) for members in tight]
    assert sizes == sorted(sizes)

    ours = valuer(FIVE, utility)
    valuation = evaluate(ours, utility, 15)
    tight = set(valuation.facts.subsidy.tight)
    for members, number in ours.evaluations.items():
        if len(members) < 5:
            over = excess(valuation, FIVE, members, number)
            assert over < 1e-8
            assert (over > -1e-8) == (members in tight)
    for members in tight - set(ours.evaluations):
        (number,) = predict(ours, from_names(members, FIVE.names))
        assert excess(valuation, FIVE, members, number) == pytest.approx(0, abs=1e-8)


# A part is evaluated.


def known_games(seed):
    worth = np.random.default_rng(seed).uniform(size=5)
    return {
        "glove": LoggedGame(FIVE, closed_form.glove(4).utility),
        "majority": LoggedGame(FIVE, closed_form.majority(5).utility),
        "additive": LoggedGame(FIVE, closed_form.additive(worth).utility),
        "random sum": random_sum(FIVE, seed),
    }


SEEDS = 5


@pytest.fixture(scope="module")
def partly():
    """Games with their valuations after 13 of 31 coalitions."""
    found = {}
    for seed in range(SEEDS):
        for name, utility in known_games(seed).items():
            valuation = evaluate(valuer(FIVE, utility, draws=25, seed=seed), utility, 13)
            found.setdefault(name, []).append((utility, valuation))
    return found


@pytest.mark.slow
def test_payments_of_known_games_lie_within_their_intervals(partly):
    inside = {name: [] for name in partly}
    for name, runs in partly.items():
        for utility, valuation in runs:
            bounds, paid = valuation.interval(), utility.core().payments
            within = (bounds["low"] - 1e-9 <= paid) & (paid <= bounds["high"] + 1e-9)
            inside[name].append(np.mean(within))
    # Owners of one run are wrong together: the runs are the trials.
    assert np.mean(list(inside.values())) >= least_share(SEEDS * len(inside))
    assert all(np.mean(shares) >= least_share(SEEDS) for shares in inside.values())
    below = [
        u.core().subsidy <= v.facts.subsidy.high + 1e-9 for runs in partly.values() for u, v in runs
    ]
    assert np.mean(below) >= least_share(len(below), 0.975)
    # Not by being absurdly wide.
    errors = np.array([v.mean - u.core().payments for u, v in partly["random sum"]])
    stds = np.array([v.std for _, v in partly["random sum"]])
    assert np.sqrt(np.mean(stds**2)) < 4 * np.sqrt(np.mean(errors**2))


@pytest.mark.slow
def test_what_is_told_of_partly_evaluated_games_is_consistent(partly):
    for _, valuation in (run for runs in partly.values() for run in runs):
        subsidy, covariance = valuation.facts.subsidy, valuation.uncertainty.total
        assert subsidy.low <= subsidy.high
        # It is a maximum of sums of utilities: its mean is above that of mean utilities.
        assert subsidy.amount <= subsidy.high + 1e-9
        assert subsidy.proven  # on all coalitions, though most are predicted
        assert valuation.std.max() > 0
        assert valuation.facts.diagnostics is not None
        assert not valuation.exact
        assert valuation.uncertainty.sampling is None
        # The utility of all is evaluated: payments add up for sure.
        assert valuation.efficiency_gap == pytest.approx(0, abs=1e-9)
        assert not valuation.facts.grand_predicted
        assert abs(covariance.sum()) < 1e-9 * max(1.0, np.trace(covariance))
        np.testing.assert_allclose(covariance, covariance.T, rtol=1e-12)
        eigenvalues = np.linalg.eigvalsh(covariance)
        assert eigenvalues[0] > -1e-9 * max(eigenvalues[-1], 1e-9)


NOISY = {"noise": 1.0, "fixed": ("variance", "gamma")}


@pytest.mark.parametrize("kernel", [None, Prior(1.0 * Membership(), plain=True, **NOISY)])
def test_payments_of_two_owners_are_as_uncertain_as_what_is_predicted(kernel):
    """x_i = (g_N + g_i - g_j) / 2 and e = (g_1 + g_2 - g_N) / 2: all in closed form."""
    draws, (one, other) = 300, TWO.names
    ours = record(valuer(TWO, draws=draws, kernel=kernel), {(one,): 0.25, (other,): 0.75})
    valuation = ours.values()
    known, grand = ours.state, valuation.facts.grand
    learned, everyone = known.beliefs.predictor, known.features_of(np.ones((1, 2), dtype=bool))
    posterior = learned.gp.posterior(everyone, np.zeros((0, 1)))
    std = float(posterior.std[0]) * student(learned.gp).scale
    variance = std**2 + learned.outlier_variance
    np.testing.assert_allclose(valuation.mean, [(grand - 0.5) / 2, (grand + 0.5) / 2], atol=1e-9)
    assert valuation.facts.subsidy.amount == pytest.approx((1 - grand) / 2, abs=1e-9)
    low, high = draws_off(draws)
    found = valuation.uncertainty.total / (variance / 4)
    np.testing.assert_allclose(found, found[0, 0], rtol=1e-9)
    assert low < found[0, 0] < high
    # A 2.5 % quantile of d normal draws has a standard error of 2.67 / sqrt(d) deviations.
    bounds = (
        np.array([valuation.facts.subsidy.low, valuation.facts.subsidy.high]) - (1 - grand) / 2
    ) * 2
    error = 4 * 2.67 / draws**0.5
    np.testing.assert_allclose(bounds / np.sqrt(variance), [-1.96, 1.96], atol=error)


@pytest.mark.parametrize("n", [4, 17])
def test_payments_add_up_to_a_predicted_utility_of_all(n):
    owners = make_owners(n)
    utility = diminishing(owners)
    ours = valuer(owners, utility, estimator=None if n == 4 else SAMPLE)
    for members in ours.suggest(2 * n + 1):
        if len(members) < n:
            ours.record(members, utility(members))
    valuation = ours.values()
    assert valuation.facts.grand_predicted
    assert valuation.mean.sum() == pytest.approx(
        valuation.facts.grand - valuation.facts.empty, abs=1e-9
    )
    assert valuation.uncertainty.total.sum() > 0  # what there is to share is not known for sure


def test_only_the_utilities_nearest_to_binding_are_drawn_and_bound_the_subsidy(monkeypatch):
    utility = diminishing(FIVE)
    ours = valuer(FIVE, utility)
    every = evaluate(ours, utility, 11)
    seen, joint = [], core_payments._joint_draws

    def spy(known, members, draws, rng):
        seen.append(members)
        return joint(known, members, draws, rng)

    monkeypatch.setattr(core_payments, "_joint_draws", spy)
    monkeypatch.setattr(core_payments, "MAX_DRAWN", 12)
    np.testing.assert_array_equal(ours.values().mean, every.mean)
    assert len(seen[0]) == 12

    def slack(rows):
        """Of those coalitions of middling size; the others bound the subsidy in any case."""
        rows = rows[np.isin(rows.sum(axis=1), [2, 3])]
        named = zip(rows, predict(ours, rows), strict=True)
        return np.sort([-excess(every, FIVE, to_names(row, FIVE.names), u) for row, u in named])

    left = [row for row in all_coalitions(5) if to_names(row, FIVE.names) not in ours.evaluations]
    drawn = slack(seen[0])
    np.testing.assert_allclose(drawn, slack(np.array(left))[: len(drawn)], atol=1e-9)

    monkeypatch.setattr(core_payments, "MAX_DRAWN", 8)  # of 62; by itself 2,048 of 65,534
    for seed in range(4):
        value(make_owners(6), lambda members: 0.5, 2, empty=0.5, seed=seed)


# Trainings that are repeated, or fail.


@pytest.mark.slow
def test_noise_of_repeats_makes_payments_uncertain_and_intervals_hold_them():
    draws, (one, other) = 300, TWO.names
    trainings = {(one,): [0.2, 0.3, 0.25], (other,): [0.4, 0.6, 0.35], TWO.names: [0.9, 1.0, 1.3]}
    ours = record(valuer(TWO, draws=draws), trainings)
    valuation, measured = ours.values(), ours.state.variances
    assert valuation.facts.diagnostics is None
    low, high = draws_off(draws)
    ratio = np.diag(valuation.uncertainty.total) / (measured.sum() / 4)
    assert np.all((low < ratio) & (ratio < high))
    np.testing.assert_allclose(valuation.uncertainty.noise, valuation.uncertainty.total)
    assert (
        valuation.facts.subsidy.low < valuation.facts.subsidy.amount < valuation.facts.subsidy.high
    )
    both = 3.2 / 3
    np.testing.assert_allclose(valuation.mean, [(both - 0.2) / 2, (both + 0.2) / 2], atol=1e-9)
    utility, inside = diminishing(FOUR), []
    paid = utility.core().payments
    for seed in range(12):
        rng = np.random.default_rng(seed)
        noisy = {members: u + 0.02 * rng.normal(size=4) for members, u in utility.table.items()}
        ours = record(valuer(FOUR, utility, draws=30), noisy)
        inside.append(holds(ours.values(), paid))
    assert np.mean(inside) >= least_share(12)


def test_failed_coalitions_are_predicted():
    utility = LoggedGame(FOUR, closed_form.majority(4).utility)
    lost = FOUR.names[:3]

    def failing(members):
        if members == lost:
            raise ValueError("no")
        return utility(members)

    valuation = value(FOUR, failing, 15, engine=Local(on_error="skip"))
    assert list(valuation.facts.failures) == [lost]
    assert valuation.facts.diagnostics is not None
    assert valuation.std.max() > 0
    assert not valuation.exact
    assert valuation.mean.sum() == pytest.approx(1.0, abs=1e-9)
    ours = record(valuer(FOUR, utility), all_but(utility, [lost]))
    ours.record_failure(lost, "no")
    assert_same_payments(valuation, ours.values())
    with pytest.raises(dupre.EvaluationError):
        value(FOUR, failing, 15)


# Many owners: searched.


@pytest.fixture(scope="module")
def search():
    """17 owners: the valuer and its valuation when 40 of 110 sampled coalitions are evaluated."""
    utility = diminishing(MANY)
    ours = valuer(MANY, utility, estimator=SAMPLE)
    return utility, ours, evaluate(ours, utility, 40)


def assert_searched(valuation, ours, n):
    s = valuation.facts.subsidy
    assert len(valuation.mean) == n
    assert not s.proven
    greatest = max(ours.evaluations.values())
    assert s.looked >= core_payments.LOOKED_AT or s.violation <= 1e-3 * greatest
    assert s.violation >= 0
    assert s.low <= s.high
    assert valuation.efficiency_gap == pytest.approx(0, abs=1e-9)
    assert not valuation.exact
    scale = max(map(abs, ours.evaluations.values()))
    for members, number in ours.evaluations.items():
        if len(members) < n:
            assert excess(valuation, ours.owners, members, number) < 1e-7 * scale
    for members in set(s.tight) - set(ours.evaluations):
        (number,) = predict(ours, from_names(members, ours.owners.names))
        assert excess(valuation, ours.owners, members, number) == pytest.approx(0, abs=1e-7 * scale)


@pytest.mark.slow
def test_many_owners_or_a_sample_of_few_are_searched_and_nothing_is_proven(search):
    _, ours, valuation = search
    assert_searched(valuation, ours, 17)
    assert valuation.std.min() > 0
    utility = random_sum(FIVE)
    ours = valuer(FIVE, utility, estimator=Sample(permutation, 20))
    assert_searched(evaluate(ours, utility, 12), ours, 5)
    owners = make_owners(70, rows=1)
    utility = diminishing(owners)
    ours = valuer(owners, utility, draws=2, estimator=Sample(regression, 422))
    record(ours, {members: utility(members) for members in ours.suggest(70)})
    assert_searched(ours.values(), ours, 70)


def test_17_owners_are_paid_what_is_known_of_a_convex_game():
    """All are paid alike; each alone gains least below that, and all but one as little."""
    convex = LoggedGame(MANY, lambda C: C.mean(axis=1) ** 2)
    every = Active(first=47)  # all of those with all but one are among them
    valuation = value(MANY, convex, 80, draws=5, estimator=SAMPLE, strategy=every)
    np.testing.assert_allclose(valuation.mean, 1 / 17, atol=1e-9)
    assert valuation.facts.subsidy.amount == pytest.approx(1 / 17**2 - 1 / 17, abs=1e-9)
    tight = valuation.facts.subsidy.tight
    assert {len(members) for members in tight} == {1, 16}
    assert len(tight) == len(set(tight)) == 34


def test_known_coalitions_outside_the_sample_are_kept_from_leaving(search):
    utility, ours, before = search
    sampled = {to_names(row, MANY.names) for row in ours.question.merged.by_name.members}
    parts = (MANY.names[2 : 2 + size] for size in range(5, 12))
    rich = next(members for members in parts if members not in sampled)
    known = ours.evaluations | {rich: 5.0}
    valuation = value(MANY, utility, 35, known=known, estimator=SAMPLE)
    assert excess(valuation, MANY, rich, 5.0) == pytest.approx(0, abs=1e-7)
    assert rich in valuation.facts.subsidy.tight
    assert valuation.facts.subsidy.amount > before.facts.subsidy.amount
    assert valuation.facts.found == 41


def test_payments_from_all_that_was_sampled_are_those_of_all_if_that_is_all():
    utility = random_sum(FOUR)
    valuation = value(FOUR, utility, 15, estimator=Sample(regression, 15))
    core = utility.core()
    np.testing.assert_allclose(valuation.mean, core.payments, atol=1e-9)
    assert valuation.facts.subsidy.amount == pytest.approx(core.subsidy, abs=1e-9)
    assert valuation.std.max() < 1e-9


@pytest.mark.slow
def test_the_order_of_coalitions_outside_the_sample_and_looking_do_not_matter(search):
    utility, ours, valuation = search
    rows = np.random.default_rng(5).random((30, MANY.n)) < 0.5
    outside = {names: utility.of(names) for names in (to_names(row, MANY.names) for row in rows)}
    known = list((ours.evaluations | outside).items())
    forward, backward, plain = (
        record(valuer(MANY, utility, estimator=SAMPLE), dict(numbers))
        for numbers in (known, reversed(known), ours.evaluations)
    )
    assert_same_payments(forward.values(), backward.values())
    plain.suggest(1, pending=outside)
    assert_same_payments(plain.values(), valuation)
    with pytest.raises(InputError, match="no forecast for the least core"):
        plain.forecast(3)


# What is evaluated, and when to stop.


@pytest.mark.slow
def test_what_is_evaluated_is_what_its_guide_would_evaluate():
    asked = {}
    for guide in (dupre.shapley, dupre.banzhaf):
        for focus in (None, "owner01", ("owner01", "owner03")):
            for semivalue in (guide, dupre.LeastCore(draws=2, guide=guide)):
                utility = random_sum(FIVE)
                options = {"semivalue": semivalue, "strategy": Active(focus=focus)}
                dupre.value(FIVE, utility, budget=16, progress=False, **options)
                first = asked.setdefault((guide.name, focus), utility.asked)
                assert utility.asked == first
    assert len(set(map(tuple, asked.values()))) == 6


def test_a_run_stops_once_all_payments_are_known_well_enough():
    utility = LoggedGame(FIVE, closed_form.additive([0.1, 0.2, 0.3, 0.4, 0.5]).utility)
    valuation = value(FIVE, utility, None, stop=within(0.05))
    assert valuation.facts.stopped == "every value is within ± 0.05 with 95 %"
    assert valuation.uncertainty.spread().half_width().max() <= 0.05
    assert valuation.facts.evaluated < 31
    without = value(FIVE, utility, valuation.facts.evaluated - 5)
    assert without.uncertainty.spread().half_width().max() > 0.05


def test_a_check_tests_the_predictor_counts_in_the_payments_and_is_named_if_it_failed():
    utility, check = diminishing(FIVE), Active(check=4)
    ours = valuer(FIVE, utility, strategy=check)
    kept = ours.suggest(15)[11:]
    valuation = evaluate(ours, utility, 18)
    assert valuation.facts.check.held_out == 4
    assert not valuation.facts.sampled
    assert set(kept) <= set(ours.evaluations)
    for members in kept:
        assert excess(valuation, FIVE, members, utility.of(members)) < 1e-8
    assert_same_payments(valuation, value(FIVE, utility, 18, strategy=check))
    full = value(FIVE, utility, 31, strategy=check)
    np.testing.assert_allclose(full.mean, utility.core().payments, atol=1e-9)
    assert full.exact
    utility = white(FIVE, 3)
    for seed in range(20):
        valuation = value(FIVE, utility, 18, draws=2, seed=seed, strategy=Active(check=4))
        if valuation.facts.check.failed:
            break
    assert valuation.facts.check.failed
    assert not valuation.facts.sampled
    assert "not clearly better than the mean of their size; evaluate more." in valuation.explain()


def test_draws_that_tell_no_spread_and_guides_that_are_no_semivalue_are_refused():
    for draws in (0, 1, -3, 2.5, True, "many", None):
        with pytest.raises(InputError, match="draws must be a whole number of at least 2"):
            dupre.LeastCore(draws=draws)
    for guide in (None, "shapley", dupre.LeastCore(), dupre.beta_shapley):
        with pytest.raises(InputError, match="guide must be a semivalue such as"):
            dupre.LeastCore(guide=guide)


def test_payments_are_found_from_a_store_of_semivalues_and_more_draws_cost_no_training(tmp_path):
    utility, store = random_sum(FIVE), tmp_path / "run.sqlite"
    shapley = dupre.value(FIVE, utility, budget=15, store=store, progress=False)
    few, many = (value(FIVE, utility, 15, draws=draws, store=store) for draws in (4, 40))
    assert (
        shapley.facts.evaluated == few.facts.found == many.facts.found == many.facts.evaluated == 15
    )
    np.testing.assert_array_equal(few.mean, many.mean)
    assert not np.array_equal(few.uncertainty.total, many.uncertainty.total)
    assert few.facts.forecast.empty
    assert "more, the widest" not in str(few)


def test_intervals_narrow_as_more_is_evaluated_and_another_seed_draws_others():
    utility = diminishing(FIVE)
    ours, widths = valuer(FIVE, utility), []
    for budget in (7, 15, 27, 31):
        widths.append(np.sqrt(np.trace(evaluate(ours, utility, budget).uncertainty.total)))
    assert widths[0] > widths[1] > widths[2] > widths[3] == 0
    utility = random_sum(FIVE)
    known = all_but(utility, [FIVE.names])
    first, second = (record(valuer(FIVE, utility, seed=s), known).values() for s in (0, 1))

    assert not np.array_equal(first.uncertainty.total, second.uncertainty.total)
    np.testing.assert_allclose(first.mean, second.mean, atol=0.1)
