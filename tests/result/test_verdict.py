import json

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import dupre
from dupre.errors import InputError
from dupre.notes import LONGEST_SHORT, SHORT, Code, note
from dupre.result.remarks import with_notes
from dupre.result.verdict import SURE, gain_probability, undecided_part
from owners_and_games import LoggedGame, Noisy, make_owners
from reporting import VARIANTS, change, codes, exact, small, troubled

ROWS = {"validation": np.zeros((4, 4)), "validation_rows": 200}
"""That the validation rows are known, and do not matter."""


def reasons(v):
    return [one.code for one in v.verdict.reasons]


def test_a_clear_gain_without_a_warning_is_payable():
    sure = exact(mean=np.array([0.4, 0.2, 0.1, 0.1]), **ROWS)
    assert (sure.verdict.kind, sure.verdict.reasons) == ("payable", ())
    assert (sure.verdict.gain_probability, sure.verdict.undecided) == (1.0, 0.0)


@pytest.mark.parametrize(
    "noticed", [note(Code.LEAK, "a column tells."), note(Code.ONE_SPLIT, "one split.")]
)
def test_a_warning_or_what_is_in_no_interval_is_a_reservation(noticed):
    reserved = with_notes(exact(**ROWS), [noticed]).verdict
    assert (reserved.kind, reserved.reasons) == ("payable with reservations", (noticed,))


@pytest.mark.parametrize(
    "code", [Code.SEEN_ROWS, Code.ONE_CLASS, Code.UNFINISHED, Code.TWO_UTILITIES]
)
def test_what_stops_and_what_is_guessed_is_not_payable(code):
    stopped = with_notes(exact(**ROWS), [note(code, "no."), note(Code.LEAK, "a column.")]).verdict
    assert (stopped.kind, [one.code for one in stopped.reasons]) == ("not payable", [code])


def test_pooling_that_is_worth_nothing_is_not_payable():
    for empty, code in ((0.9, Code.NO_GAIN), (1.0, Code.WORSE_THAN_NOTHING)):
        v = exact(empty=empty, **ROWS)
        assert (v.verdict.kind, reasons(v)) == ("not payable", [code])
        assert v.verdict.gain_probability == 0.0
        assert code in codes(v)
    rounding = exact(grand=0.1 + 0.2, empty=0.3, **ROWS)
    assert reasons(rounding) == [Code.NO_GAIN]
    assert reasons(troubled())[0] == Code.FIRST_GUESS


def test_the_gain_is_as_uncertain_as_the_sum_of_the_values():
    # sd of the sum of three independent values: 0.8 / 1.645 makes 95 %.
    for factor, sure in ((0.99, True), (1.01, False)):
        covariance = (factor * 0.8 / 1.6448536) ** 2 / 3 * np.eye(3)
        v = small(covariance=covariance)
        assert gain_probability(v) == pytest.approx(0.95, abs=0.005)
        assert (Code.GAIN_UNSURE in reasons(v)) != sure
    # Predictions that move value from one owner to another leave the sum alone.
    opposed = small(covariance=100 * (np.eye(3) - 1 / 3))
    assert gain_probability(opposed) == 1.0


def test_the_undecided_part_is_what_other_values_would_give_to_others():
    # Two owners at a half each, one of them gains x of the amount from the other: E|x|.
    v = small(2, mean=np.array([0.4, 0.4]), covariance=1e-4 * np.array([[1.0, -1.0], [-1.0, 1.0]]))
    assert undecided_part(v) == pytest.approx(0.01 / 0.8 * np.sqrt(2 / np.pi), rel=0.05)
    assert undecided_part(exact()) == 0.0
    assert undecided_part(change(exact(), mean=-np.ones(4))) == 1.0
    # Of two owners with a standard deviation s of a share, s sqrt(2 / pi) is undecided.
    for std, kind in ((0.2, "payable"), (0.4, "payable with reservations")):
        apart = std**2 * np.array([[1.0, -1.0], [-1.0, 1.0]])
        v = small(2, mean=np.array([0.4, 0.4]), covariance=0.64 * apart)
        v = with_notes(change(v, validation=np.zeros((2, 2)), validation_rows=200))
        assert v.verdict.kind == kind
        assert (Code.PART_UNDECIDED in reasons(v)) == (std == 0.4)
    wild = small(covariance=100 * (np.eye(3) - 1 / 3))
    assert wild.verdict.kind == "not payable"
    assert Code.AMOUNT_UNDECIDED in reasons(wild)


def test_the_verdict_is_in_the_json_and_must_follow_from_it():
    owners = make_owners(4)
    game = LoggedGame(owners, lambda members: np.sqrt(members.sum(axis=1)))
    v = dupre.value(owners, game, budget=9, progress=False)
    document = json.loads(v.to_json())
    (first,) = document["valuations"]
    stated = first["verdict"]
    assert dupre.Valuation.from_json(v.to_json()).verdict == v.verdict
    assert stated["kind"] == v.verdict.kind
    assert stated["reasons"] == reasons(v)
    for name, other in (("kind", "payable?"), ("undecided", 0.123), ("reasons", ["leak"])):
        changed = {**first, "verdict": {**stated, name: other}}
        with pytest.raises(InputError, match=f"verdict.{name} must be"):
            dupre.Valuation.from_json(json.dumps({**document, "valuations": [changed]}))


def kinds(game, seeds=20):
    owners = make_owners(5)
    found = []
    for seed in range(seeds):
        utility = Noisy(LoggedGame(owners, game), 0.01, seed)
        found.append(
            dupre.value(owners, utility, budget=16, seed=seed, progress=False).verdict.kind
        )
    return found


@pytest.mark.slow
def test_the_seed_does_not_decide_the_verdict():
    """A clear game and a worthless one, each with the noise of other seeds."""
    clear, worthless = (
        kinds(lambda members: members.mean(axis=1)),
        kinds(lambda members: 0 * members[:, 0]),
    )
    assert clear.count("payable with reservations") >= 19  # validation rows are not known
    assert worthless.count("not payable") >= 19


def patients(signal, table):
    """A table of three hospitals: what is to be predicted follows from x, more or less."""
    rng = np.random.default_rng(table)
    x = rng.normal(size=(120, 3))
    y = signal * (x @ [1.0, 0.5, 0.0]) + rng.normal(size=120)
    return dupre.Owners.from_arrays(x, y, [f"hospital {i % 3}" for i in range(120)])


TABLES = {
    "clear": (2.0, 3, "payable"),
    "middle": (0.3, 3, "payable"),
    "below the middle": (0.5, 4, "not payable"),
    "none": (0.0, 3, "not payable"),
}
NEAR = (0.9, 0.98)
"""Probabilities of a gain around `SURE`: so near to it the deal of the folds may decide."""


@pytest.mark.slow
@pytest.mark.parametrize(("signal", "table", "kind"), TABLES.values(), ids=TABLES)
def test_the_seed_does_not_decide_the_verdict_on_a_table_with_folds(signal, table, kind):
    """The seed deals the folds. With one split of the same table in the middle it does decide."""
    owners, found = patients(signal, table), []
    for seed in range(20):
        utility = dupre.ModelUtility(Ridge(), owners, validation=dupre.Folds(10), seed=seed)
        found.append(dupre.value(owners, utility, budget=7, seed=seed, progress=False).verdict)
    probability = np.median([one.gain_probability for one in found])
    assert not NEAR[0] < probability < NEAR[1]
    assert (probability > SURE) == (kind == "payable")
    assert [one.kind for one in found].count(kind) >= 0.95 * len(found)


def test_every_short_form_is_short_and_takes_its_facts_from_the_note():
    assert all(len(text.split()) <= LONGEST_SHORT for text in SHORT.values())
    unsure = small(covariance=np.eye(3))
    assert unsure.verdict.reasons[0].short.startswith("A gain has a probability of 68 %; 95 %")
    for make in VARIANTS.values():
        for one in make()[0].notes:
            assert 0 < len(one.short.split()) <= LONGEST_SHORT + 1
    assert note(Code.LEAK, "column z tells. Drop it.").short == "Column z tells."
    assert note(Code.LEAK, "word " * 50).short == "Word" + " word" * 19 + " …"
