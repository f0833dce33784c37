import json
from contextlib import suppress
from dataclasses import fields, replace
from functools import reduce

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dupre
from dupre.game.estimators import Sample, regression
from dupre.report.page import page
from dupre.result.as_json import dumps, loads
from dupre.result.records import PredictorCheck
from dupre.valuation.strategies import Active
from owners_and_games import LoggedGame, make_owners


def sizes(members):
    return np.sqrt(members.sum(axis=1))


def valued(n=5, budget=12, **how):
    owners = make_owners(n)
    return dupre.value(owners, LoggedGame(owners, sizes), budget=budget, progress=False, **how)


def told():
    owners = make_owners(4)
    valuer = dupre.Valuer(owners, empty=0.0)
    for members in valuer.suggest(7):
        valuer.record(members, len(members))
    valuer.record_failure(owners.names[1:3], "out of memory")
    return valuer.values()


def strange():
    """Everything that JSON could trip over."""
    v = valued()
    names = ("<b>", "=1+1", 'quote "', "back\\slash\n", "é 中")
    return replace(
        v,
        owners=names,
        warnings={"ConvergenceWarning: é": (names[:2], names[2:])},
        failures={names[:1]: "bad\x00luck"},
        diagnostics=replace(v.diagnostics, r2=np.nan),
        provenance={"command": {"command": "dupre value 'a b.csv'"}},
    )


KINDS = {
    "plain": valued,
    "exact": lambda: valued(n=3, budget=7),
    "least core": lambda: valued(semivalue=dupre.LeastCore(draws=4)),
    "sampled": lambda: valued(n=17, budget=20, estimator=Sample(regression, 400)),
    "checked": lambda: valued(budget=16, strategy=Active(check=4)),
    "repeated": lambda: valued(repeats=2),
    "ask / tell": told,
    "strange": strange,
    "many owners": lambda: valued(n=51, budget=20, estimator=Sample(regression, 400)),
    "bare": lambda: replace(valued(), evidence=None, diagnostics=None, rounds=pd.DataFrame()),
}


@pytest.fixture(scope="module", params=KINDS)
def valuation(request):
    return KINDS[request.param]()


def same(one, other):
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(
            one.reset_index(), other.reset_index(), check_dtype=False, check_column_type=False
        )
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
    else:
        assert repr(one) == repr(other)


def test_what_is_written_is_read_to_the_last_digit(valuation):
    text = valuation.to_json()
    again = dupre.Valuation.from_json(text)
    assert again.to_json() == text
    assert str(again) == str(valuation)
    for part in fields(valuation):
        if part.name != "evidence":
            same(getattr(valuation, part.name), getattr(again, part.name))
    if valuation.evidence is not None:
        for part in fields(valuation.evidence):
            same(getattr(valuation.evidence, part.name), getattr(again.evidence, part.name))


def test_it_is_strict_json_that_needs_no_python_to_read(valuation):
    def refuse(constant):
        raise AssertionError(constant)

    document = json.loads(valuation.to_json(), parse_constant=refuse)
    owners = document["valuations"][0]["owners"]
    frame = valuation.to_frame()
    assert [owner["name"] for owner in owners] == list(frame.index)
    assert [owner["low"] for owner in owners] == frame["low"].tolist()
    alone = valuation.interval(for_these_rows=True)
    assert [owner["high_for_these_rows"] for owner in owners] == alone["high"].tolist()
    assert [owner["worst"] for owner in owners] == frame["worst"].tolist()


def test_the_parts_of_many_owners_are_packed_and_their_sum_is_left_out():
    v = KINDS["many owners"]()
    document = json.loads(v.to_json())
    first = document["valuations"][0]
    assert [first["covariance"], first["validation"]] == [None, None]
    assert {type(first[name]) for name in ("prediction", "sampling", "noise")} == {str}
    assert {type(document[name]) for name in ("distances", "shared")} == {str}
    coalition = document["evaluations"]["columns"].index("coalition")
    cells = [row[coalition] for row in document["evaluations"]["rows"]]
    cells += [row[0] for row in first["coalitions"]["rows"]]
    assert {cell[:2] for cell in cells} == {"0x"}
    first["prediction"] = None
    with pytest.raises(dupre.InputError, match="covariance must be a covariance of 51 values"):
        loads(json.dumps(document))
    scored = v.evaluations.assign(resampled="[0.25,null,0.75]")
    text = replace(v, evaluations=scored).to_json()
    assert "0.25,null" not in text
    again = dupre.Valuation.from_json(text).evaluations
    assert again["resampled"].tolist() == scored["resampled"].tolist()
    # A sum that does not follow, and coalitions of others, are written.
    other = replace(v, covariance=2 * v.covariance, evaluations=v.evaluations.iloc[:1].copy())
    other.evaluations["coalition"] = '["nobody"]'
    again = dupre.Valuation.from_json(other.to_json())
    np.testing.assert_array_equal(again.covariance, other.covariance)
    assert again.evaluations["coalition"].tolist() == ['["nobody"]']


def test_several_valuations_and_those_of_older_documents_keep_their_meaning():
    both = [valued(), valued(semivalue=dupre.banzhaf)]
    again = loads(dumps(both))
    assert [str(v) for v in again] == [str(v) for v in both]
    v = replace(valued(), check=PredictorCheck(8, 0.03, 0.09, 0.08, 0.75))
    document = json.loads(v.to_json())
    held = document["valuations"][0]["predictor"]["validation"]
    del held["by_size"], held["limit"]
    for constant, failed in ((0.09, False), (0.03, True), (0.02, True)):
        held["constant"] = constant
        (again,) = loads(json.dumps(document))
        assert (again.check.by_size, again.check.limit) == (constant, constant)
        assert again.check.failed == failed


HEAD = '{"format": "dupre result", "version": '
NO_RESULTS = {
    "": "this is no JSON",
    "[" * 100_000: "this is no JSON",
    "[]": "this is no result of dupre",
    f"{HEAD}4}}": "has version 4 of the format, this dupre knows versions 1, 2 and 3",
    f"{HEAD}1}}": "is damaged: valuations is missing",
    f'{HEAD}1, "valuations": []}}': "holds no valuation",
}


@pytest.mark.parametrize(("text", "complaint"), NO_RESULTS.items())
def test_what_is_no_result_is_refused(text, complaint):
    with pytest.raises(dupre.InputError, match=complaint):
        dupre.Valuation.from_json(text)


def test_a_damaged_part_is_no_crash_and_is_named():
    text = valued().to_json()
    for part in ("owners", "covariance", "noise", "trainings", "utility", "forecast", "predictor"):
        document = json.loads(text)
        for damage in (None, 7, "x", {"rows": 1}, [[1]]):
            document["valuations"][0][part] = damage
            with pytest.raises(dupre.InputError, match="the result is damaged"):
                loads(json.dumps(document))
        del document["valuations"][0][part]
        with pytest.raises(dupre.InputError, match="the result is damaged"):
            loads(json.dumps(document))
    document = json.loads(valued().to_json())
    document["valuations"][0]["owners"][2]["rows"] = "x"
    words = r"damaged: valuations\[0\]\.owners\[2\]\.rows must be a whole number, got 'x'"
    with pytest.raises(dupre.InputError, match=words):
        loads(json.dumps(document))


VALUE = ("value", "low", "high", "low_for_these_rows", "high_for_these_rows")
CONTRADICTIONS = [
    ({"value": 0.5}, r"\[0\]\.owners\[2\]\.low must be .* follows from its value and the covar"),
    (
        {"high": 1e-5},
        r"owners\[2\]\.high must be .* follows from its value and the covariance, got",
    ),
    ({"std": -1e-5}, r"owners\[2\]\.std must be"),
    ({"share": 0.01}, r"owners\[2\]\.share must be 0\.\d+, which follows .* the utilities, got"),
    ({"best": 1}, r"owners\[2\]\.best must be \d, which follows from the values and the covar"),
    ({"worst": -1}, r"owners\[2\]\.worst must be \d, which follows from the values and"),
    ({"worst": 0.5}, r"owners\[2\]\.worst must be a whole number, got"),
    (dict.fromkeys(VALUE, 0.5), r"owners\[2\]\.share must be"),
    (
        dict.fromkeys(VALUE, 0.5) | {"share": 0.5 / np.sqrt(5)},
        r"valuations\[0\]\.owners add up to 2\.73607, but Shapley values .* = 2\.23607$",
    ),
]


@pytest.mark.parametrize(("changes", "words"), CONTRADICTIONS)
def test_a_result_that_contradicts_itself_is_refused_by_the_field(changes, words):
    document = json.loads(valued().to_json())
    for name, change in changes.items():
        document["valuations"][0]["owners"][2][name] += change
    with pytest.raises(dupre.InputError, match=f"the result is damaged: .*{words}"):
        loads(json.dumps(document))


def places(thing, path=()):
    """The place of every part of a document."""
    inside = thing.items() if isinstance(thing, dict) else enumerate(thing)
    for key, part in inside:
        yield (*path, key)
        if isinstance(part, (dict, list)):
            yield from places(part, (*path, key))


ODD = [None, True, -1, 0, 2.5, -1e150, 1e300, 1e999, 10**400, "", "x", "\ud800", [], [[]], {}]


@pytest.fixture(scope="module")
def documents():
    """Results of four kinds, with the places of their parts."""
    core = valued(semivalue=dupre.LeastCore(draws=2))
    checked, many = valued(budget=16, strategy=Active(check=4)), KINDS["many owners"]()
    texts = [v.to_json() for v in (core, strange(), checked, many)]
    return [(text, list(places(json.loads(text)))) for text in texts]


@settings(max_examples=150)
@given(data=st.data())
def test_a_changed_result_is_refused_or_all_is_said_of_it(documents, data):
    text, known = data.draw(st.sampled_from(documents))
    document = json.loads(text)
    *path, last = data.draw(st.sampled_from(known))
    part = reduce(lambda thing, key: thing[key], path, document)
    how = data.draw(st.sampled_from(["replace", "delete", "double"]))
    if how == "delete":
        del part[last]
    else:
        part[last] = [part[last]] * 2 if how == "double" else data.draw(st.sampled_from(ODD))
    try:
        found = loads(json.dumps(document))
    except dupre.InputError:  # and nothing else
        return
    assert "".join(map(str, found)).replace("\n", "").isprintable()
    found[0].compare(*found[0].owners[:2])
    with suppress(dupre.InputError):  # nothing to share
        found[0].payments(100.0)
    if data.draw(st.integers(0, 9)) == 0:  # a page takes long
        assert page(found)
