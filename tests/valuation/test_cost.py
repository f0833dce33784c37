"""What trainings cost: the fit, choices per second, and runs that end by time."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dupre
from dupre import InputError, Valuer
from dupre.game.coalitions import all_coalitions, to_names
from dupre.notes import Code, select
from dupre.spec import Price
from dupre.training.evaluation import evaluate as train
from dupre.valuation import progress
from dupre.valuation.cost import POWERS, fit_cost
from dupre.valuation.stopping import wall_time
from dupre.valuation.strategies import Active
from owners_and_games import assert_same, smooth, value

ROWS = np.array([2, 3, 5, 8, 13, 40])


def skewed():
    """Owners of so many rows."""
    rng = np.random.default_rng(1)
    parts = {f"owner{i}": (rng.normal(size=(r, 2)), rng.normal(size=r)) for i, r in enumerate(ROWS)}
    return dupre.Owners.from_mapping(parts)


SIX = skewed()


def rows_of(members):
    return sum(int(SIX.rows[SIX.names.index(name)]) for name in members)


def squares(members):
    """Seconds that grow as the square of the rows."""
    return 1.0 + 0.01 * rows_of(members) ** 2


class Timed:
    """An engine whose trainings take as long as `seconds` says, by a clock of their own.

    It is interrupted before training number `stops_at`.
    """

    on_error = "raise"

    def __init__(self, seconds=squares, stops_at=None):
        self.seconds, self.stops_at, self.now, self.asked = seconds, stops_at, 0.0, []

    def monotonic(self):
        return self.now

    def start(self, utility):
        self.utility = utility
        return self

    def run(self, trainings):
        for training in trainings:
            if len(self.asked) == self.stops_at:
                raise KeyboardInterrupt
            took = self.seconds(training.members) if training.members else 0.0
            self.now += took
            if training.members:
                self.asked.append(training.members)
            done = train(self.utility, training, threads=1)
            object.__setattr__(done, "seconds", took)
            yield done

    def finished_evaluations(self):
        return []

    def close(self):
        pass


@pytest.fixture
def run(monkeypatch):
    """`dupre.value` on an engine whose clock is the only one."""

    def by(engine, **options):
        monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=engine.monotonic))
        how = {"strategy": Active(per="second"), "repeats": 1} | options
        return value(SIX, smooth(SIX), engine=engine, **how)

    return by


@given(
    st.floats(0.0, 50.0),
    st.floats(1e-6, 1.0),
    st.sampled_from(POWERS.tolist()),
    st.lists(st.integers(1, 10**6), min_size=6, max_size=20, unique=True),
)
def test_seconds_that_grow_by_a_power_of_the_rows_are_found(fixed, growth, power, rows):
    rows = np.array(rows)
    seconds = fixed + growth * rows**power
    found = fit_cost(rows, seconds)
    np.testing.assert_allclose(found.seconds(rows), seconds, rtol=1e-3)


@given(st.lists(st.tuples(st.integers(1, 10**6), st.floats(1e-4, 1e5)), min_size=1, max_size=30))
def test_more_rows_never_take_less_time_and_every_training_takes_some(measured):
    rows, seconds = map(np.array, zip(*measured, strict=True))
    found = fit_cost(rows, seconds).seconds(np.sort(rows))
    assert (found > 0).all()
    assert (np.diff(found) >= 0).all()


def test_a_training_that_took_far_too_long_hardly_moves_the_others():
    rows = np.array([10, 20, 40, 80, 160, 310, 320, 330])
    seconds = 0.5 + 0.001 * rows**2
    seconds[2] = 1000.0  # libraries were loaded, or the machine slept
    others = np.delete(np.arange(len(rows)), 2)
    found = fit_cost(rows, seconds).seconds(rows)
    np.testing.assert_allclose(found[others], seconds[others], rtol=0.05)


def test_without_growth_all_cost_the_same_and_without_trainings_nothing_is_known():
    assert fit_cost(np.array([], dtype=int), np.array([])) is None
    assert fit_cost(np.array([7, 7]), np.array([1.0, 3.0])).seconds(ROWS).tolist() == [2.0] * 6
    np.testing.assert_allclose(fit_cost(ROWS, np.full(6, 3.0)).seconds(ROWS), 3.0)


def test_in_a_run_of_equal_seconds_per_second_chooses_as_per_training(run):
    engines = [Timed(lambda _: 2.0), Timed(lambda _: 2.0)]
    found = [
        run(engine, strategy=Active(per=per, first=13), budget=40)
        for engine, per in zip(engines, ("second", "training"), strict=True)
    ]
    assert engines[0].asked == engines[1].asked
    assert_same(*found)


def test_for_the_same_number_of_trainings_less_time_passes(run):
    costly, cheap = Timed(), Timed()
    run(costly, strategy=Active(), budget=40)
    run(cheap, budget=40)
    assert cheap.asked[:7] == costly.asked[:7]  # the first design shows what trainings cost
    assert cheap.now < 0.8 * costly.now


@pytest.mark.parametrize("stops_at", [5, 7, 16, 24])
def test_a_run_that_is_resumed_on_another_machine_chooses_the_same(run, tmp_path, stops_at):
    expected = run(whole := Timed(), budget=34)
    store = tmp_path / "run.sqlite"
    with pytest.raises(KeyboardInterrupt):
        run(Timed(stops_at=stops_at), budget=34, store=store)
    # Only the first design tells what trainings cost: later seconds change nothing.
    slower = (lambda m: 1e3 / rows_of(m)) if stops_at >= 7 else squares
    resumed = run(second := Timed(slower), budget=34, store=store)
    assert whole.asked[:stops_at] + second.asked == whole.asked
    assert_same(resumed, expected)


@pytest.mark.parametrize("seconds", [110.0, 150.0, 200.0])
def test_no_training_begins_that_would_not_end_in_time_and_the_run_goes_on_as_without(
    run, tmp_path, seconds
):
    expected = run(whole := Timed(), budget=34)
    store, engine = tmp_path / "run.sqlite", Timed()
    part = run(engine, stop=wall_time(seconds), store=store)
    assert 7 < part.facts.evaluated < 34
    assert seconds - 41 < engine.now <= seconds
    assert part.facts.stopped == "no further training is expected to end in its time"
    # The batch was chosen without a look at the clock: what it left out comes next.
    resumed = run(second := Timed(), budget=34, store=store)
    assert sorted(engine.asked + second.asked) == sorted(whole.asked)
    assert_same(resumed, expected)


def test_what_is_left_to_do_is_known_after_the_first_design(run):
    seen = []
    run(engine := Timed(), budget=40, progress=seen.append)
    planned = next(one for one in seen if one.planned)
    assert (planned.evaluated, planned.budget) == (7, 40)
    every = [to_names(row, SIX.names) for row in all_coalitions(6)]
    each = np.mean([squares(names) for names in every if names not in engine.asked[:7]])
    assert planned.remaining == pytest.approx(33 * each, rel=1e-3)
    assert planned.plan == f"33 more coalitions in about {33 * each / 60:.0f} minutes"
    priced = replace(planned, price=Price(3.0, "CHF"))
    assert priced.plan.endswith(f"minutes (CHF {33 * each / 1200:.2f})")
    assert priced.outlook.startswith("about 10:44 left (CHF 0.54)")
    seen.clear()
    run(Timed(), stop=wall_time(planned.seconds + 20.5 * each), progress=seen.append)
    limited = next(one for one in seen if one.planned)
    assert limited.remaining == pytest.approx(20.5 * each)
    assert limited.budget == 7 + 20  # as many as fit
    assert replace(limited, remaining=20.0).plan == ""


def test_a_valuer_is_told_seconds_and_refuses_to_guess_them():
    valuer = Valuer(SIX, empty=0.1, strategy=Active(per="second"))
    game, design = smooth(SIX), valuer.suggest(7)
    for members in design:
        valuer.record(members, game.of(members))
    with pytest.raises(InputError, match=r"not known how long trainings take.*record_seconds"):
        valuer.suggest(4)
    for members in design[:5]:  # some will do
        valuer.record_seconds(members, squares(members))
    chosen = valuer.suggest(4)
    valuer.record_seconds(design[0], 1e6)  # a second time that is longer is no news
    assert valuer.suggest(4) == chosen
    others = Valuer(SIX, empty=0.1)
    for members in design:
        others.record(members, game.of(members))
    assert sum(map(squares, chosen)) < sum(map(squares, others.suggest(4)))
    for wrong in (0.0, -1.0, float("nan"), "3"):
        with pytest.raises(InputError, match="the seconds of"):
            valuer.record_seconds(design[1], wrong)
    with pytest.raises(InputError, match="per must be"):
        Active(per="minute")


def test_more_trainings_are_told_in_minutes(run):
    (told,) = select(run(Timed(), budget=20).notes, [Code.COST])
    assert told.facts["seconds"] > 6.0
    assert "10 more coalitions are expected to take about" in told.text
    for quick, budget in ((lambda _: 1e-3, 20), (squares, 63)):  # or nothing is left to train
        assert not select(run(Timed(quick), budget=budget).notes, [Code.COST])


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "beta:1,4"])
def test_per_second_values_are_no_first_guess_after_n_plus_1_coalitions(semivalue):
    valuer = Valuer(SIX, empty=0.1, semivalue=semivalue, strategy=Active(per="second"))
    game, design = smooth(SIX), valuer.suggest(20)
    assert len(design) == 7
    left = []
    for members in design:
        valuer.record(members, game.of(members))
        left.append(valuer.interim_values().facts.first_left)
    assert left == [12, 11, 10, 9, 8, 7, 0]
