"""Stored utilities of another game are refused, whatever changed; harmless changes are not."""

import json
import logging
import math
import sys
import threading
import types
from functools import partial, wraps

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import make_scorer, mean_pinball_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dupre
from dupre import ModelUtility, Owners, Stored, StoreError
from dupre.notes import Code, select
from stores import edit, sql

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 2))
Y = X @ [1.0, -2.0] + RNG.normal(size=24)
OWNERS = Owners.from_arrays(X, Y, np.repeat(["A", "B", "C"], 8))


def run(path, utility, owners=OWNERS, **options):
    options = {"budget": 7, "progress": False, "store": path} | options
    return dupre.value(owners, utility, **options)


class Tools(types.SimpleNamespace):
    """What a change needs: pytest's monkeypatch, a directory, and modules written into it."""

    def module(self, name, source):
        """A module of this source, loaded anew."""
        (self.directory / f"{name}.py").write_text(source)
        self.monkeypatch.syspath_prepend(self.directory)
        self.monkeypatch.setattr(sys, "dont_write_bytecode", True)
        for loaded in ("helper", "deep"):
            sys.modules.pop(loaded, None)
        return __import__(name)


@pytest.fixture
def tools(monkeypatch, tmp_path):
    with sklearn.config_context():
        yield Tools(monkeypatch=monkeypatch, directory=tmp_path)
    for name in ("helper", "deep"):
        sys.modules.pop(name, None)


# Each change is a function of `tools` and the state, 1 or 2, that returns a utility.


def from_modules(**sources):
    """A change of modules; the last one has a function `score`, and N stands for the state."""

    def change(tools, n):
        for name, text in sources.items():
            helper = tools.module(name, text.replace("N", str(n)))
        return lambda members: helper.score(members)

    return change


class FittedMetric:
    def __init__(self, n):
        self.model = LogisticRegression().fit(n * X, n < Y)

    def __call__(self, model, X, _):
        return float(model.predict(X) @ self.model.predict_proba(X)[:, 0])


class Pretrained(Ridge):
    def __sklearn_clone__(self):
        return self

    def predict(self, X):
        return X @ self.weights


def pretrained_weights(_, n):
    model = Pretrained()
    model.weights = np.array([n, -n])
    return ModelUtility(model, OWNERS, validation=(X, Y))


def wrapped_library_function(_, n):
    @wraps(np.mean)
    def one(members):
        return float(np.mean(len(members)))

    @wraps(np.mean)
    def two(members):
        return float(np.mean(len(members))) + 1

    return one if n == 1 else two


def file_read(tools, n):
    file = tools.directory / "weight.txt"
    file.write_text(str(n))
    return lambda members: float(file.read_text()) * len(members)


class DropsState:
    def __init__(self, n):
        self.n = n

    def __getstate__(self):
        return {}

    def __call__(self, members):
        return self.n * len(members)


def monkeypatched_model(tools, n):
    if n == 2:
        tools.monkeypatch.setattr(Ridge, "predict", lambda self, X: X[:, 0])
    return ModelUtility(Ridge(), OWNERS, validation=(X, Y))


def closure(_, n):
    return lambda members: n * len(members)


class Weighted:
    def __init__(self, n):
        self.n, self.weights = n, dict.fromkeys("ABC", 1.0) | {"C": float(n)}

    def __call__(self, members):
        return sum(self.weights[name] for name in members)


def validation_rows(_, n):
    return ModelUtility(Ridge(), OWNERS, validation=(X[n:], Y[n:]))


def now_fails(_, n):
    def utility(members):
        if n == 2 and members:
            raise ValueError("no more")
        return float(len(members))

    utility.fingerprint = "the same"
    return utility


def setting_of_scikit_learn(_, n):
    sklearn.set_config(working_memory=n)
    return lambda members: float(len(members)) + sklearn.get_config()["working_memory"]


class Base:
    def __init__(self, n=0):
        self.n = n

    def score(self, members, power=1):
        return len(members) ** power


def pipeline(n):
    return make_pipeline(StandardScaler(with_mean=n == 1), Ridge(fit_intercept=False))


def pinball(n):
    return make_scorer(mean_pinball_loss, alpha=n / 10, greater_is_better=False)


def of_model(model=None, y=Y, **options):
    """The utility of a model, by default a ridge regression, on all rows."""
    return ModelUtility(model or Ridge(), OWNERS, validation=(X, y), **options)


NAMED = (
    *(pretrained_weights, wrapped_library_function, file_read, monkeypatched_model, closure),
    *(validation_rows, now_fails, setting_of_scikit_learn),
)
CHANGES = {change.__name__: change for change in NAMED} | {
    "function of a second module": from_modules(
        deep="def g(m): return N * len(m)", helper="from deep import g\ndef score(m): return g(m)"
    ),
    "import inside": from_modules(
        deep="W = N", helper="def score(m):\n    import deep\n    return deep.W * len(m)"
    ),
    "cached helper": from_modules(
        helper="from functools import cache\n@cache\ndef score(m): return N * len(m)"
    ),
    "state that is not pickled": lambda _, n: DropsState(n),
    "attribute": lambda _, n: Weighted(n),
    "partial": lambda _, n: partial(lambda weight, members: weight * len(members), n),
    "bound method": lambda _, n: partial(Base(n).score, power=n),
    "metric with a model": lambda _, n: of_model(metric=FittedMetric(n), empty=0.0),
    "hyper-parameter": lambda _, n: of_model(Ridge(alpha=n)),
    "seed of trainings": lambda _, n: of_model(seed=n),
    "targets": lambda _, n: of_model(y=np.append(Y[:-1], n)),
    "step of a pipeline": lambda _, n: of_model(pipeline(n)),
    "scorer": lambda _, n: of_model(metric=pinball(n), resamples=0),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_of_utilities_refuses_the_store(change, tools, path):
    first = run(path, change(tools, 1))
    before = sql(path, "SELECT * FROM evaluations")
    assert first.facts.checked == 0
    with pytest.raises(StoreError) as refused:
        run(path, change(tools, 2))
    assert "store=" in str(refused.value)
    assert sql(path, "SELECT * FROM evaluations") == before


# Harmless changes: the utility of no coalition changes.


def source(tools, n, text):
    module = tools.module("helper", text.replace("@", str(n)))
    return module.utility


def calls_counted(_, n):
    class Counted:
        calls = 0

        def __call__(self, members):
            self.calls += n
            return len(members)

    counted = Counted()
    counted(("A",))
    return counted


def cached(_, n):
    seen = {} if n == 1 else {("A",): 1}
    return lambda members: seen.setdefault(members, len(members))


class Fits:
    """Keeps the model that it trained last."""

    def __init__(self, n):
        self.model = Ridge()
        self.log, self.lock = logging.getLogger(f"run {n}"), threading.Lock()
        for _ in range(n):
            self("A")

    def __call__(self, members):
        rows = np.isin(np.repeat(["A", "B", "C"], 8), list(members))
        return float(self.model.fit(X[rows], Y[rows]).score(X, Y)) if rows.any() else 0.0


def compiled(_, n):
    score = pytest.importorskip("numba").njit(lambda count: count + 0.0)
    score(n)  # it is compiled in another state
    return lambda members: score(len(members))


def frame_owners(index, order=slice(None)):
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=Y, who=np.repeat(["A", "B", "C"], 8))
    return Owners.from_frame(frame.set_axis(index).iloc[order], owner="who", target="y")


HARMLESS = {
    "comment": lambda t, n: source(t, n, "def utility(m):\n    # @\n\n    return len(m)"),
    "run id": lambda t, n: source(t, n, "RUN = @\ndef utility(m):\n    return len(m) + 0 * RUN"),
    "other code": lambda t, n: source(
        t, n, "def unused(): return @\ndef utility(m):\n    return len(m)"
    ),
    "counter": calls_counted,
    "fitted by its own calls": lambda _, n: Fits(n),
    "cache": cached,
    "compiled utility": lambda _, n: len,
    "compiled helper": lambda _, n: lambda m: math.fsum(np.add(1, 0) for _ in m),
    "helper compiled by numba": compiled,
    "layout": lambda t, n: source(
        t, n, f"def utility(m):{[' ', chr(10) + '  '][n - 1]}return (len(m) + 0 )"
    ),
    "validation in another order": lambda _, n: ModelUtility(
        Ridge(), OWNERS, validation=(X[:: 3 - 2 * n], Y[:: 3 - 2 * n])
    ),
    "state that cannot be pickled": lambda _, n: partial(lambda lock, m: len(m), threading.Lock()),
}


@pytest.mark.parametrize("make", HARMLESS.values(), ids=HARMLESS)
def test_harmless_changes_do_not_refuse_the_store(make, tools, path):
    first = run(path, make(tools, 1))
    second = run(path, make(tools, 2))
    assert (second.facts.found, second.facts.checked) == (7, 1)
    np.testing.assert_array_equal(first.mean, second.mean)


def test_the_order_and_index_of_rows_do_not_matter(path):
    shuffled = np.random.default_rng(1).permutation(24)
    for owners in (frame_owners(range(24)), frame_owners(range(100, 124), shuffled)):
        utility = ModelUtility(Ridge(), owners, validation=frame_owners(range(24)).X.assign(y=Y))
        found = run(path, utility, owners)
    assert (found.facts.found, found.facts.checked, found.facts.stale) == (7, 1, 0)


# --- how it is done


def test_another_one_of_the_cheapest_is_checked_each_time(path):
    asked = []

    def utility(members):
        asked.append(members)
        return float(len(members))

    utility.fingerprint = "counted"
    run(path, utility)
    edit(path, "seconds = length(coalition) - 2")
    del asked[:]
    assert [run(path, utility).facts.checked for _ in range(3)] == [1, 2, 3]
    assert sorted(asked) == [(), (), (), ("A",), ("B",), ("C",)]
    run(None, utility, store=Stored(path, check=False))
    assert len(asked) == 6
    again = sql(path, "SELECT stored, again FROM checks WHERE coalition <> '[]'")
    assert again == [(1.0, 1.0)] * 3


class OfNoData:
    """The number of members; that of no data may change or fail."""

    fingerprint = "the same"

    def __init__(self, empty=0.0):
        self.empty, self.asked = empty, []

    def __call__(self, members):
        self.asked.append(members)
        if not members and self.empty is None:
            raise ValueError("no data")
        return float(len(members)) if members else self.empty


@pytest.mark.parametrize(("empty", "now"), [(-3.0, "-3.0"), (None, "ValueError: no data")])
def test_a_change_of_the_utility_of_no_data_is_never_missed_unless_it_is_stated(path, empty, now):
    run(path, OfNoData())
    for _ in range(2):
        with pytest.raises(StoreError, match=rf"no data has the utility 0\.0 there, but .*{now}"):
            run(path, OfNoData(empty))
    other = OfNoData(empty)
    assert run(path, other, empty=0.5).facts.empty == 0.5
    assert () not in other.asked
    kept = run(path, other, store=Stored(path, accept_model=True))
    assert kept.facts.empty == 0.0
    (told,) = select(kept.notes, [Code.ACCEPTED_MODEL])
    assert "no data has the utility 0.0 there" in told.text


def test_a_utility_of_no_data_that_is_stored_alone_is_checked_too(path):
    run(path, OfNoData())
    sql(path, "DELETE FROM evaluations WHERE coalition <> '[]'")
    path.with_name(f"{path.name}-lock").unlink()  # it knows the number of the last evaluation
    with pytest.raises(StoreError, match="no data has the utility"):
        run(path, OfNoData(-3.0))


def test_a_utility_of_no_data_that_takes_time_takes_its_turn(path):
    run(path, OfNoData())
    # No data takes the longest, as the first call of all does, and comes first.
    edit(path, "seconds = 20 - (coalition <> '[]')")
    utility, asked = OfNoData(), []
    for _ in range(9):
        run(path, utility)
        asked.append(utility.asked.count(()))
        assert len(utility.asked) == len(asked)
    assert asked == [1, 1, 1, 1, 1, 1, 1, 1, 2]


@pytest.mark.parametrize("repeats", [1, 2])
def test_no_data_far_away_or_of_another_noise_hides_no_change_and_raises_no_alarm(path, repeats):
    rng = np.random.default_rng(0)

    def utility(members, more=0.0):
        return len(members) / 10 + more if members else -1e6 + rng.normal(scale=0.01)

    utility.fingerprint = "a game"
    for _ in range(3):
        run(path, utility, repeats=repeats)
    changed = partial(utility, more=0.3)
    changed.fingerprint = "a game"
    with pytest.raises(StoreError, match=r"\} has the utility 0\.\d there, but"):
        run(path, changed, repeats=repeats)


@pytest.mark.parametrize("members", ["A", "B", "C", "AB", "AC", "BC", "ABC"])
def test_a_change_of_the_coalition_that_is_checked_is_never_missed(path, members):
    table = {names: len(names) / 7 for names in ("", "A", "B", "C", "AB", "AC", "BC", "ABC")}

    def utility(names):
        return table["".join(names)]

    utility.fingerprint = "a table"
    run(path, utility)
    edit(path, "seconds = coalition <> ?", json.dumps(list(members)))
    table[members] += 1e-5
    with pytest.raises(StoreError, match=f"{{{', '.join(members)}}} has the utility"):
        run(path, utility)


def test_another_one_is_checked_each_time_also_of_a_noisy_utility(path):
    utility = noisy(0.0, seed=0)
    for _ in range(4):
        run(path, utility, budget=3)
    trained = sql(path, "SELECT DISTINCT coalition FROM checks WHERE coalition <> '[]'")
    assert len(trained) == 3


def test_a_change_that_may_matter_is_looked_for_in_all_owners_together(path):
    """The weight of C changes; the cheapest coalition need not hold C."""
    run(path, Weighted(1))
    edit(path, "seconds = length(coalition) - 2")
    with pytest.raises(StoreError, match=r"\{A, B, C\} has the utility 3\.0 there, but 4\.0"):
        run(path, Weighted(2))


def test_an_owner_who_joins_with_a_new_category_cannot_shift_codes_unnoticed(path):
    def owners(**levels):
        frames = {
            name: pd.DataFrame({"g": pd.Categorical(values), "y": [0, 1, 0, 1]})
            for name, values in levels.items()
        }
        return Owners.from_mapping(frames, target="y")

    def utility(owners):
        return lambda members: float(owners.X["g"].cat.codes[np.isin(names(owners), members)].sum())

    def names(owners):
        return np.array(owners.names)[owners.owner]

    two = owners(b=list("xyxy"), c=list("yyyx"))
    first = run(path, utility(two), two, budget=3)
    after = owners(b=list("xyxy"), c=list("yyyx"), d=list("zzxy"))
    assert run(path, utility(after), after, budget=3).facts.found == 3
    before = owners(a=list("wwxy"), b=list("xyxy"), c=list("yyyx"))
    with pytest.raises(StoreError, match="another game"):
        run(path, utility(before), before, budget=3)
    assert first.facts.found == 0


def noisy(shift, seed):
    """A utility that changes from call to call."""
    rng = np.random.default_rng(seed)

    def utility(members):
        return len(members) + shift + rng.normal() if members else 0.0

    utility.fingerprint = "noisy"
    return utility


@pytest.mark.parametrize(("shift", "same"), [(0.0, True), (0.5, True), (50.0, False)])
def test_a_utility_that_changes_from_call_to_call_is_compared_by_its_noise(path, shift, same):
    # Which coalition is trained again depends on how long trainings took: with these seeds none is
    # near the limit.
    run(path, noisy(0.0, 0), repeats=3)
    edit(path, "seconds = length(coalition) - 2")
    if same:
        assert run(path, noisy(shift, 3), repeats=3).facts.checked in (1, 3)
    else:
        with pytest.raises(StoreError, match="another game"):
            run(path, noisy(shift, 3), repeats=3)


def test_a_stated_version_is_compared(path):
    with pytest.raises(dupre.InputError, match="version must be a text"):
        Stored(path, version=2)
    run(path, closure(None, 1), store=Stored(path, version="1"))
    with pytest.raises(StoreError, match="the version 1, now 2"):
        run(path, closure(None, 1), store=Stored(path, version="2"))
    assert run(path, closure(None, 1), store=Stored(path, version="1")).facts.found == 7


def test_what_is_accepted_is_said_for_good_and_validation_rows_cannot_be_accepted(path, tmp_path):
    run(path, closure(None, 1), budget=5)
    accepted = run(path, closure(None, 2), budget=6, store=Stored(path, accept_model=True))
    assert (accepted.facts.found, accepted.facts.evaluated, accepted.facts.checked) == (5, 6, 2)
    (told,) = select(accepted.notes, [Code.ACCEPTED_MODEL])
    assert told.text.startswith("you accepted that 5 trainings are kept although {")
    later = run(path, closure(None, 2), budget=7)  # the one trained since is checked
    assert select(later.notes, [Code.ACCEPTED_MODEL]) == [told]
    other = path.with_name("other.sqlite")
    run(other, validation_rows(None, 1))
    with pytest.raises(StoreError, match="cannot be mixed"):
        run(other, validation_rows(None, 2), store=Stored(other, accept_model=True))
    later.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().count("trainings are kept although") == 1


def test_the_check_runs_where_trainings_run(path, tools):
    """As in a notebook: workers load the module anew, this process does not."""
    helper = tools.module("helper", "WEIGHT = 1")
    engine = dupre.engines.Local(jobs=1, timeout=60)  # a process of its own
    run(path, lambda members: helper.WEIGHT * len(members), engine=engine)
    (tools.directory / "helper.py").write_text("WEIGHT = 1 + 1")
    with pytest.raises(StoreError, match="another game"):
        run(path, lambda members: helper.WEIGHT * len(members), engine=engine)


def test_nothing_is_checked_of_what_was_done_elsewhere_or_is_a_constant(path):
    owners = Owners.from_arrays(X, (Y > 0).astype(int), np.repeat(["A", "B", "C"], 8))
    one_class = Owners.from_arrays(X, np.repeat([0, 1, 2], 8), np.repeat(["A", "B", "C"], 8))
    known = {("A",): 0.5, ("B",): 0.5, ("C",): 0.5}
    utility = ModelUtility(LogisticRegression(), owners, validation=(X, owners.y))
    run(path, utility, owners, budget=3, known=known, repeats=1)
    assert run(path, utility, owners, budget=3, repeats=1).facts.checked == 0
    other = path.with_name("other.sqlite")
    utility = ModelUtility(LogisticRegression(), one_class, validation=(X, one_class.y))
    run(other, utility, one_class, budget=7)
    run(other, utility, one_class, budget=7)
    assert all(len(names) > 5 for (names,) in sql(other, "SELECT coalition FROM checks"))
