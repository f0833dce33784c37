from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace

import hypothesis
import numpy as np
import pytest
from hypothesis import given

import dupre
from dupre import InputError, Valuer, kernels
from dupre.game.coalitions import all_coalitions, to_names
from dupre.predictor import gp
from dupre.predictor.gp import Scale
from dupre.predictor.kernel_inputs import Features
from dupre.predictor.kernels import Linear, Membership, Size
from dupre.predictor.warp import Warp
from dupre.store.origin import Origin
from dupre.training.engines import Local
from dupre.valuation import strategies
from dupre.valuation.infer import forecast
from dupre.valuation.run import _run_key
from dupre.valuation.stopping import evaluated
from dupre.valuation.strategies import (
    Active,
    Corrected,
    Drawn,
    Strategy,
    Uniform,
    active_batch,
    check_strategy,
    inclusion_chances,
)
from owners_and_games import make_owners, smooth, value


def test_counts_are_whole_numbers_and_focus_is_one_owner_or_two():
    for kind in (Active, Drawn, Uniform, Corrected):
        for (name, least), count in product({"batch": 1, "first": 0}.items(), [-1, 2.5, "3", True]):
            with pytest.raises(
                InputError, match=f"{name} must be a whole number of at least {least}"
            ):
                kind(**{name: count})
        with pytest.raises(InputError, match="batch must be a whole number of at least 1"):
            kind(batch=0)
    for kind, count in product([Active, Drawn, Uniform], [-1, 4.0, None, "4"]):
        with pytest.raises(InputError, match="check must be a whole number of at least 0"):
            kind(check=count)
    with pytest.raises(TypeError, match="check"):
        Corrected(check=4)  # they exclude each other
    with pytest.raises(InputError, match=r"Active\(\), Drawn\(\), Uniform\(\) or Corrected\(\)"):
        check_strategy("active")
    for focus in ((), ("a", "a"), ("a", "b", "c"), 3, {"a"}):
        with pytest.raises(InputError, match="one owner or a pair of different owners"):
            Active(focus=focus)
    assert Active(focus=["a", 1]) == Active(focus=("a", "1"))


def order_of(owners, seed):
    return Valuer(owners, empty=0.0, strategy=Uniform(first=31), seed=seed).suggest(30)


def test_uniform_draws_are_distinct_and_any_coalition_is_as_likely():
    owners = make_owners(5)
    orders = [order_of(owners, seed) for seed in range(80)]
    assert all(len(set(order)) == 30 for order in orders)
    first = {to_names(row, owners.names): 0 for row in all_coalitions(5)}
    for order in orders:
        for members in order[:12]:
            first[members] += 1
    counts = np.array(list(first.values()))  # 80 times 12 of 31: 31 of each, give or take 4.4
    assert 31 - 4 * 4.4 < counts.min() <= counts.max() < 31 + 4 * 4.4

    game, other = smooth(owners), smooth(owners)
    for budget, of in ((9, game), (20, other)):
        dupre.value(owners, of, budget=budget, strategy=Uniform(batch=4), seed=3, progress=False)
    assert game.asked == other.asked[:9]
    assert other.asked == order_of(owners, 3)[:20]


@pytest.mark.parametrize("focus", [None, "owner02"])
def test_half_active_is_half_uniform_then_one_batch_of_algorithm_2(focus):
    owners, kernel = make_owners(5), kernels.paper()
    game, strategy = smooth(owners), Active(uniform=True, focus=focus)
    dupre.value(owners, game, budget=17, strategy=strategy, kernel=kernel, seed=3, progress=False)
    drawn = order_of(owners, 3)[:9]
    assert game.asked[:9] == drawn
    valuer = Valuer(owners, empty=game.empty, strategy=strategy, kernel=kernel, seed=3)
    for members in drawn:
        valuer.record(members, game.of(members))
    assert set(game.asked[9:]) == set(literal_picks(valuer, game, drawn, focus, 8))


def literal_picks(valuer, game, evaluated, focus, count):
    """DUPRE Alg. 2 as printed, with the hyper-parameters that were learned."""
    process, names = valuer.state.beliefs.predictor.gp, valuer.owners.names
    members = all_coalitions(len(names))
    every = [to_names(row, names) for row in members]
    K = process.kernel(*[valuer.state.features_of(members)] * 2)
    A = [every.index(one) for one in evaluated]
    B = [i for i in range(len(every)) if i not in A]
    weights = dupre.estimators.exact(dupre.shapley, len(names)).W
    w = weights if focus is None else weights[[names.index(focus)]]
    picks = []
    for _ in range(count):
        reduction = {}
        for g in set(B) - set(picks):
            C = [*A, *picks, g]
            inverse = np.linalg.inv(K[np.ix_(C, C)] + process.noise * np.eye(len(C)))
            WK = w[:, B] @ K[np.ix_(B, C)]
            reduction[g] = np.trace(WK @ inverse @ WK.T)
        picks.append(max(reduction, key=reduction.get))
    return [every[g] for g in picks]


def test_half_of_a_budget_is_half_of_what_is_not_for_the_check():
    owners = make_owners(5)
    game = smooth(owners)
    strategy = Active(uniform=True, check=4, batch=3)
    valuation = dupre.value(owners, game, budget=21, strategy=strategy, progress=False)
    assert game.asked[:9] == order_of(owners, 0)[:9]
    assert valuation.facts.check is not None
    first = Active(uniform=True, first=6)
    dupre.value(owners, game := smooth(owners), budget=8, strategy=first, progress=False)
    assert game.asked[:6] == order_of(owners, 0)[:6]
    without = dupre.stopping.evaluated(12)  # no budget: no half of it
    dupre.value(owners, game := smooth(owners), stop=without, strategy=Active(uniform=True),
                progress=False)  # fmt: skip
    assert game.asked[:11] == order_of(owners, 0)[:11]


# Strategies that users write.


@dataclass(frozen=True)
class Doubt(Strategy):
    """The largest standard deviations first, and chance between equal ones."""

    scale: float = 1.0

    def choose(self, state, k, rng):
        _, std = state.beliefs.predict(state.members[state.open])
        order = np.lexsort((rng.random(len(std)), -self.scale * std))
        return state.open[order[:k]]


@dataclass(frozen=True)
class Picks(Strategy):
    """Whatever a test asks for."""

    picks: object = None

    def choose(self, state, k, rng):  # noqa: ARG002
        return self.picks(state, k)


def test_a_strategy_of_a_user_chooses_after_the_first_design_by_state_and_chance():
    owners = make_owners(5)
    game = smooth(owners)
    valuation = value(owners, game, budget=21, strategy=Doubt(batch=4))
    assert game.asked[:11] == Valuer(owners, empty=0.0).suggest(11)
    valuer = Valuer(owners, empty=game.empty, strategy=Doubt())
    for members in game.asked[:11]:
        valuer.record(members, game.of(members))
    known = valuer.state
    _, std = known.beliefs.predict(known.members[known.open])
    most = known.open[np.argsort(-std)[:4]]
    assert set(valuer.suggest(4)) == {known.names(i) for i in most}
    assert set(game.asked[11:15]) == set(valuer.suggest(4))
    pending = valuer.suggest(2)
    assert not set(pending) & set(valuer.suggest(4, pending=pending))
    assert valuation.facts.evaluated == 21


@pytest.mark.slow
def test_a_strategy_of_a_user_works_with_a_store_workers_repeats_and_stop_rules(tmp_path):
    owners = make_owners(5)
    how = {"strategy": Doubt(batch=3), "repeats": 2, "stop": evaluated(19), "seed": 2}
    expected = value(owners, smooth(owners), **how)
    assert expected.facts.evaluated >= 19
    store = tmp_path / "run.sqlite"
    value(owners, smooth(owners), budget=14, **how | {"stop": None}, store=store)
    game = smooth(owners)
    resumed = value(owners, game, **how, store=store, engine=Local(jobs=2))
    assert resumed.facts.stopped == expected.facts.stopped
    np.testing.assert_array_equal(resumed.mean, expected.mean)
    np.testing.assert_array_equal(resumed.uncertainty.total, expected.uncertainty.total)


def test_another_strategy_or_another_choose_is_another_run():
    owners = make_owners(3)

    class Other(Doubt):
        def choose(self, state, k, rng):  # noqa: ARG002
            return state.open[:k]

    Other.__qualname__ = Doubt.__qualname__  # the same name: a user has edited the method

    def key(strategy):
        valuer = Valuer(owners, empty=0.0, strategy=strategy)
        return _run_key(valuer, 1, Origin({}, {}))

    different = [Doubt(), Doubt(scale=2.0), Doubt(batch=2), Other(), Active(), Uniform()]
    assert len({key(strategy) for strategy in different}) == len(different)
    assert key(Doubt()) == key(Doubt())


@pytest.mark.parametrize(
    "picks",
    [
        lambda state, k: state.open[: k + 1],
        lambda state, _: [state.open[0]] * 2,
        lambda state, _: state.question.heaviest[:1],
        lambda state, _: [-1],
        lambda state, k: np.reshape(state.open[:k], (1, -1)),
    ],
)
def test_what_a_strategy_returns_is_checked(picks):
    owners = make_owners(5)
    with pytest.raises(InputError, match=r"up to 5 different numbers of state\.open, got"):
        value(owners, smooth(owners), budget=20, strategy=Picks(picks=picks))


def test_a_strategy_may_end_the_run_and_its_errors_name_it():
    owners = make_owners(5)
    found = value(owners, smooth(owners), budget=20, strategy=Picks(picks=lambda *_: []))
    assert (found.facts.evaluated, found.facts.stopped) == (11, "nothing is left to gain")

    def wrong(state, _):
        return state.misspelt

    with pytest.raises(InputError, match=r"strategy Picks.* failed: AttributeError.* choose"):
        value(owners, smooth(owners), budget=20, strategy=Picks(picks=wrong))
    with pytest.raises(TypeError, match="abstract"):
        Strategy()


# A batch for which the variance of the values is least, and what it is expected to gain.

KERNEL = 0.8 * Membership(0.3) + 0.5 * Size(0.7) + 0.3 * Linear()
N = 7
NOISE = 0.02


def problem(seed, functionals, warp=None, measured=None):
    """A process on 6 evaluated coalitions, the other 121, and functionals of these."""
    rng = np.random.default_rng(seed)
    every = Features(all_coalitions(N), rng.integers(3, 100, N))
    order = rng.permutation(len(every))
    a, b = every[order[:6]], every[order[6:]]
    u = rng.normal(size=6)
    process = gp.condition(
        KERNEL, a, u, noise=NOISE, measured=measured, scale=Scale(warp or Warp())
    )
    return process, b, rng.normal(size=(functionals, len(b)))


def literal_algorithm_2(a, b, W, candidates, count):
    """DUPRE Alg. 2 as printed, with the inverse computed anew; summed over functionals."""
    joint = Features(np.concatenate([a.members, b.members]), a.rows)
    K = KERNEL(joint, joint)
    evaluated, B = list(range(len(a))), np.arange(len(a), len(joint))
    picked = []
    for _ in range(count):
        max_VR, best = 0.0, None
        for G in candidates:
            if G in picked:
                continue
            AC = [*evaluated, *B[picked], B[G]]
            inverse = np.linalg.inv(K[np.ix_(AC, AC)] + NOISE * np.eye(len(AC)))
            K_B_AC = K[np.ix_(B, AC)]
            VR = sum(w @ K_B_AC @ inverse @ K_B_AC.T @ w for w in W)
            if max_VR <= VR:
                max_VR, best = VR, G
        picked.append(best)
    return picked


@pytest.mark.parametrize(
    ("seed", "functionals", "count"), [(0, 1, 3), (1, 1, 7), (2, 4, 3), (3, 7, 5)]
)
def test_active_batch_picks_what_the_literal_algorithm_picks(seed, functionals, count):
    process, b, W = problem(seed, functionals)
    every = np.arange(len(b))
    picks = active_batch(process.posterior(b, W), every, count)
    assert picks.tolist() == literal_algorithm_2(process.inputs, b, W, every, count)
    candidates = np.array([20, 3, 11, 7, 8])
    picks = active_batch(process.posterior(b, W), candidates, 3)
    assert picks.tolist() == literal_algorithm_2(process.inputs, b, W, candidates, 3)


@pytest.mark.parametrize(("seed", "functionals", "count"), [(0, 1, 3), (1, 3, 6)])
def test_per_second_a_batch_is_what_the_literal_algorithm_picks_for_its_price(
    seed, functionals, count
):
    process, b, W = problem(seed, functionals)
    every, posterior = np.arange(len(b)), process.posterior(b, W)
    seconds = 0.2 + (b.members @ b.rows / 100.0) ** 2
    before = posterior.functional_variance().sum()
    picks: list[int] = []
    for _ in range(count):
        gains = {}
        for g in np.setdiff1d(every, picks).tolist():
            anew = condition_also_on(process, b, [*picks, g]).posterior(b, W)
            gains[g] = (before - anew.functional_variance().sum()) / seconds[g]
        picks.append(max(gains, key=gains.get))
        after = condition_also_on(process, b, picks).posterior(b, W)
        before = after.functional_variance().sum()
    assert active_batch(posterior, every, count, seconds=seconds).tolist() == picks
    by_training = active_batch(process.posterior(b, W), every, count).tolist()
    assert picks != by_training  # prices do matter
    equal = active_batch(process.posterior(b, W), every, count, seconds=np.full(len(b), 7.0))
    assert equal.tolist() == by_training


def test_active_batch_weighs_by_the_slope_of_a_curved_warp():
    process, b, W = problem(3, 2, Warp(curved=True, width=0.3))
    posterior = process.posterior(b, W)
    every = np.arange(len(b))
    picks = active_batch(posterior, every, 5)
    expected = literal_algorithm_2(process.inputs, b, W * posterior.slope, every, 5)
    assert picks.tolist() == expected


def condition_also_on(process, b, picks):
    """The process after evaluating some of b; the variance does not depend on what comes out."""
    members = np.concatenate([process.inputs.members, b.members[picks]])
    u = np.append(process.utilities, np.random.default_rng(8).normal(size=len(picks)))
    measured = np.append(process.measured, np.full(len(picks), np.mean(process.measured)))
    return gp.condition(KERNEL, Features(members, b.rows), u, noise=NOISE, measured=measured)


@pytest.mark.parametrize("seed", range(3))
def test_a_batch_equals_single_picks_after_conditioning_anew(seed):
    process, b, W = problem(seed, 3)
    every = np.arange(len(b))
    batch = active_batch(process.posterior(b, W), every, 6).tolist()
    for k, pick in enumerate(batch):
        anew = condition_also_on(process, b, batch[:k])
        left = np.setdiff1d(every, batch[:k])
        assert active_batch(anew.posterior(b, W), left, 1).tolist() == [pick]


def test_evaluating_a_coalition_removes_exactly_the_rank_one_term():
    process, b, W = problem(0, 3)
    before = process.posterior(b, W)
    for g in range(len(b)):
        after = condition_also_on(process, b, [g]).posterior(b, W)
        cross = before.cross(np.array([g]))[0]
        expected = np.outer(cross, cross) / (before.variance[g] + NOISE)
        removed = before.functional_covariance() - after.functional_covariance()
        np.testing.assert_allclose(removed, expected, atol=1e-9)


MEASURED = np.array([0.0, 0.3, 0.05, 0.2, 0.0, 0.5])
either_noise = pytest.mark.parametrize("measured", [None, MEASURED], ids=["exact", "measured"])


@either_noise
@pytest.mark.parametrize("pending", [[17], [40, 3, 99, 4], list(range(0, 120, 5))], ids=len)
def test_pending_coalitions_count_as_if_they_had_been_evaluated(pending, measured):
    process, b, W = problem(len(pending), 3, measured=measured)
    every = np.arange(len(b))
    picks = active_batch(process.posterior(b, W), every, 5, np.array(pending))
    anew = condition_also_on(process, b, pending)
    left = np.setdiff1d(every, pending)
    assert picks.tolist() == active_batch(anew.posterior(b, W), left, 5).tolist()
    without = active_batch(process.posterior(b, W), left, 5)
    assert len(pending) == 1 or picks.tolist() != without.tolist()  # they do matter


@pytest.mark.parametrize("count", [3, 121, 200])
def test_pending_coalitions_are_never_picked_whether_candidates_or_not(count):
    process, b, W = problem(2, 2)
    posterior, every = process.posterior(b, W), np.arange(len(b))
    best = active_batch(posterior, every, 10)
    for candidates in (every, np.setdiff1d(every, best)):
        picks = active_batch(posterior, candidates, count, best)
        assert len(picks) == len(set(picks)) == min(count, 111)
        assert not set(picks) & set(best)
    assert active_batch(posterior, best, count, best).tolist() == []


# What further evaluations are expected to gain.


@either_noise
@pytest.mark.parametrize("warp", [None, Warp(curved=True, width=0.3)], ids=["straight", "curved"])
@pytest.mark.parametrize("picks", [[5], [60, 2, 31, 119, 0], list(range(120, -1, -1))], ids=len)
def test_forecast_equals_dense_gaussian_conditioning(picks, warp, measured):
    process, b, W = problem(4, 3, warp, measured)
    posterior = process.posterior(b, W)
    found = forecast(posterior, np.array(picks))

    # y, everything that was or will be seen: z around the process, and the noise of repeats.
    a = len(process.inputs)
    joint = Features(np.concatenate([process.inputs.members, b.members]), b.rows)
    of_z = KERNEL(joint, joint) + NOISE * np.eye(len(joint))
    repeats = np.append(process.measured, np.full(len(b), np.mean(process.measured)))
    J = W * posterior.slope
    assert found.shape == (len(picks), 3, 3)
    for k in {1, (len(picks) + 1) // 2, len(picks)}:
        seen = [*range(a), *(a + np.array(picks[:k]))]
        V = of_z[np.ix_(seen, seen)] + np.diag(repeats[seen])
        C = of_z[a:][:, seen]
        left = of_z[a:, a:] - C @ np.linalg.solve(V, C.T)
        np.testing.assert_allclose(found[k - 1], J @ left @ J.T, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_forecast_equals_what_is_left_after_really_evaluating(seed):
    process, b, W = problem(seed, 3)
    picks = active_batch(process.posterior(b, W), np.arange(len(b)), 6)
    found = forecast(process.posterior(b, W), picks)
    for k in range(1, 7):
        left = np.setdiff1d(np.arange(len(b)), picks[:k])
        after = condition_also_on(process, b, picks[:k]).posterior(b[left], W[:, left])
        np.testing.assert_allclose(found[k - 1], after.functional_covariance(), atol=1e-8)


@either_noise
def test_the_forecast_of_everything_leaves_the_noise_of_repeats_alone(measured):
    process, b, W = problem(0, 2, measured=measured)
    posterior = process.posterior(b, W)
    last = forecast(posterior, np.arange(len(b)))[-1]
    repeats = 0.0 if measured is None else np.mean(measured)
    largest = repeats * W @ W.T  # what it would be if the kernel did not smooth it
    assert np.all(np.diag(last) <= np.diag(largest) + 1e-9)
    assert np.all(np.diag(last) >= -1e-9)
    assert (np.trace(last) > 0.01) == (measured is not None)


# Where very many coalitions count, a sample of them stands for all.


@given(hypothesis.strategies.data())
def test_chances_are_proportional_to_weights_up_to_1_and_add_up(data):
    numbers = hypothesis.strategies.floats(1e-9, 1e3) | hypothesis.strategies.just(0.0)
    weight = np.array(data.draw(hypothesis.strategies.lists(numbers, min_size=1, max_size=30)))
    count = data.draw(hypothesis.strategies.integers(1, 30))
    chance = inclusion_chances(weight, count)
    assert chance.sum() == pytest.approx(min(count, np.count_nonzero(weight)))
    assert np.array_equal(chance == 0, weight == 0)
    drawn = (chance > 0) & (chance < 1)
    ratio = chance[drawn] / weight[drawn]
    np.testing.assert_allclose(ratio, ratio[:1].repeat(len(ratio)))
    certain = weight[chance == 1].min(initial=np.inf)
    assert certain >= weight[drawn].max(initial=0.0)


def test_sums_over_samples_are_those_over_all_coalitions_on_average(monkeypatch):
    monkeypatch.setattr(strategies, "MAX_CANDIDATES", 5)
    rng = np.random.default_rng(0)
    W = np.append(np.zeros(3), rng.permutation(np.repeat([1.0, 2.0, 3.0, 4.0], 5)))[None]
    unknown, x = np.arange(3, 23), rng.normal(size=23)
    found = []
    for offset in (np.arange(10) + 0.5) / 10:  # chances are tenths: these stand for all offsets
        equal_steps = SimpleNamespace(random=lambda offset=offset: offset)
        some, weights = strategies._sample(W, unknown, np.array([7, 9]), equal_steps)
        assert np.isin([7, 9], some).all()
        assert np.count_nonzero(weights) == 5
        found.append(float(weights[0] @ x[some]))
    assert np.mean(found) == pytest.approx(float(W[0] @ x))


def play(game, evaluated, **how):
    valuer = Valuer(game.owners, empty=game.empty, seed=1, **how)
    for members in evaluated:
        valuer.record(members, game.of(members))
    return valuer


@pytest.mark.parametrize("focus", [None, "owner02"])
def test_a_sample_of_all_coalitions_chooses_as_all_coalitions_do(monkeypatch, focus):
    game = smooth(make_owners(6))
    first = Valuer(game.owners, empty=game.empty, seed=1).suggest(13)
    how = {"strategy": Active(focus=focus)}
    all_of_them = play(game, first, **how).suggest(12)
    monkeypatch.setattr(strategies, "EXACT_UP_TO", 10)
    assert play(game, first, **how).suggest(12) == all_of_them


def test_what_a_sample_chooses_is_a_function_of_the_evaluations(monkeypatch):
    monkeypatch.setattr(strategies, "EXACT_UP_TO", 10)
    monkeypatch.setattr(strategies, "MAX_CANDIDATES", 16)
    game = smooth(make_owners(6))
    run, evaluated = play(game, []), []
    for _ in range(4):
        batch = run.suggest(run.first_left or 6)
        # Another valuer that was given them in another order stands for a run that was resumed.
        assert play(game, evaluated[::-1]).suggest(run.first_left or 6) == batch
        for members in batch:
            run.record(members, game.of(members))
        evaluated += batch
    left, right = run.suggest(6, pending=evaluated[-2:]), run.suggest(6)
    assert left == right  # what has been evaluated is not pending
    more = run.suggest(6, pending=right[:3])
    assert not set(more) & set(right[:3])
    values, again = run.values(), play(game, evaluated[::-1]).values()
    np.testing.assert_array_equal(values.mean, again.mean)
    np.testing.assert_array_equal(values.std, again.std)
