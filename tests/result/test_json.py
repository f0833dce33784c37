import json
import re
import zlib
from base64 import b64decode, b64encode
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from functools import cache, reduce

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dupre
from dupre.game.estimators import Sample, regression
from dupre.report.page import page
from dupre.result import json as results
from dupre.result.json import dumps, pack_column, pack_matrix, unpack_column, unpack_matrix
from dupre.valuation.strategies import Active
from owners_and_games import LoggedGame, make_owners
from reporting import change


def loads(text):
    return results.loads(text, dupre.Valuation)


def sizes(members):
    return np.sqrt(members.sum(axis=1))


def valued(n=5, budget=12, **how):
    owners = make_owners(n)
    return dupre.value(owners, LoggedGame(owners, sizes), budget=budget, progress=False, **how)


@cache
def plain():
    return valued().to_json()


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
    return change(
        v,
        owners=names,
        warnings={"ConvergenceWarning: é": (names[:2], names[2:])},
        failures={names[:1]: "bad\x00luck"},
        diagnostics=replace(v.facts.diagnostics, r2=np.nan),
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
    "bare": lambda: change(valued(), evidence=None, diagnostics=None, rounds=pd.DataFrame()),
}


@pytest.fixture(scope="module", params=KINDS)
def valuation(request):
    return KINDS[request.param]()


def same(one, other):
    if is_dataclass(one):
        for part in fields(one):
            same(getattr(one, part.name), getattr(other, part.name))
    elif isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(
            one.reset_index(), other.reset_index(), check_dtype=False, check_column_type=False
        )
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
    else:
        assert repr(one) == repr(other)


def refuse(constant):
    raise AssertionError(constant)


def test_what_is_written_is_strict_json_and_is_read_to_the_last_digit(valuation):
    text = valuation.to_json()
    again = dupre.Valuation.from_json(text)
    assert again.to_json() == text
    assert str(again) == str(valuation)
    same(valuation, again)
    owners = json.loads(text, parse_constant=refuse)["valuations"][0]["owners"]
    frame, alone = valuation.to_frame(), valuation.interval(for_these_rows=True)
    columns = {"name": frame.index, "low": frame["low"], "worst": frame["worst"]}
    for name, column in (columns | {"high_for_these_rows": alone["high"]}).items():
        assert [owner[name] for owner in owners] == column.tolist()


def test_resamples_are_left_out_where_a_store_has_them_and_nothing_else_is():
    v = valued()
    some = np.random.default_rng(0).random((len(v.evaluations), 200))
    texts = [json.dumps(row.tolist(), separators=(",", ":")) for row in some]
    scored = replace(v, evaluations=v.evaluations.assign(resampled=texts))
    again = loads(scored.to_json())[0].evaluations["resampled"]
    assert again.tolist() == texts
    short = dumps([scored], resamples=False)
    without = replace(scored, evaluations=scored.evaluations.drop(columns="resampled"))
    assert short == dumps([without]) == dumps(loads(short))
    assert "resampled" not in short
    same(loads(short)[0], without)
    assert len(json.loads(short)["evaluations"]["utility"]) == len(some)


def test_the_parts_of_many_owners_are_packed():
    v = KINDS["many owners"]()
    scored = v.evaluations.assign(resampled="[0.25,null,0.75]")
    text = replace(v, evaluations=scored).to_json()
    document = json.loads(text)
    parts, facts = (document["valuations"][0][name] for name in ("uncertainty", "facts"))
    assert parts.keys() == {"prediction", "sampling", "noise", "validation", "deal", "freedom"}
    assert {type(parts[name]) for name in ("prediction", "sampling", "noise")} == {str}
    assert {type(document[name]) for name in ("distances", "shared")} == {str}
    cells = document["evaluations"]["coalition"] + facts["evidence"]["coalitions"]["members"]
    assert {cell[:2] for cell in cells} == {"0x"}
    assert "0.25,null" not in text
    again = dupre.Valuation.from_json(text).evaluations
    assert again["resampled"].tolist() == scored["resampled"].tolist()
    others = v.evaluations.iloc[:1].assign(coalition='["nobody"]')
    again = dupre.Valuation.from_json(replace(v, evaluations=others).to_json())
    assert again.evaluations["coalition"].tolist() == ['["nobody"]']


def test_half_a_character_is_refused_where_it_is_written():
    with pytest.raises(dupre.InputError, match="half a character"):
        change(valued(), failures={("A",): "\ud800"}).to_json()


def test_several_valuations_are_one_document():
    both = [valued(), valued(semivalue=dupre.banzhaf)]
    assert [str(v) for v in loads(dumps(both))] == [str(v) for v in both]


HEAD = '{"format": "dupre result", "version": '
PARTS = '"evaluations": {}, "provenance": {}, "distances": null, "shared": null'
NO_RESULTS = {
    "": "this is no JSON",
    "[" * 100_000: "this is no JSON",
    "[]": "this is no result of dupre",
    f"{HEAD}6}}": "has version 6 of the format, this dupre knows version 7; read it with the",
    f"{HEAD}7}}": "is damaged: valuations is missing",
    f'{HEAD}7, "valuations": [], {PARTS}}}': "holds no valuation",
    f'{HEAD}7, "valuations": [], {PARTS}, "x": 1}}': "damaged: x is not known; the document has",
}


@pytest.mark.parametrize(("text", "complaint"), NO_RESULTS.items())
def test_what_is_no_result_is_refused(text, complaint):
    with pytest.raises(dupre.InputError, match=complaint):
        dupre.Valuation.from_json(text)


DAMAGES = [
    ("owners[2].rows", "x", "must be a whole number, got 'x'"),
    ("owners[2].rows", -1, "must be a whole number >= 0, got -1"),
    ("owners[2].value", None, "must be a number, got None"),
    ("facts.grand", None, "must be a number, got None"),
    ("semivalue", 7, "must be a text, got 7"),
    ("facts.first_left", True, "must be a whole number, got True"),
    ("facts.diagnostics.form", ["x"], "must be a text, got ['x']"),
    ("facts.diagnostics.r2", "x", "must be a number or null, got 'x'"),
    (
        "facts.diagnostics.surprise",
        1,
        "is not known; valuations[0].facts.diagnostics has the fields 'error'",
    ),
    ("surprise", None, "is not known; valuations[0] has the fields"),
    ("owners[1].surprise", 1, "is not known; valuations[0].owners[1] has the fields 'name'"),
    ("uncertainty.noise", [[1]], "must be 5 rows of 5 numbers from"),
    ("uncertainty.noise[0][1]", 9.0, "must be a covariance of 5 values"),
    ("uncertainty.noise[0][1]", "x", "must be a number or null, got 'x'"),
    ("uncertainty.total", np.eye(5).tolist(), "must be what follows from its parts, got"),
    (
        "uncertainty.noise",
        "x",
        "must be 5 rows of 5 numbers from -1e+300 to 1e+300, or the text of a packed",
    ),
    ("facts.rounds.evaluated[0]", 0.5, "must be a whole number, got 0.5"),
    ("facts.rounds.evaluated", [], "must be a list of"),
    ("facts.evidence.coalitions.std[0]", -1.0, "must be a number >= 0"),
    ("facts.forecast", None, "must be an object, got None"),
]


@pytest.mark.parametrize(("place", "damage", "words"), DAMAGES)
def test_a_damaged_part_is_named_with_what_was_expected_and_found(place, damage, words):
    document = json.loads(plain())
    *path, last = (int(step) if step.isdecimal() else step for step in re.findall(r"\w+", place))
    reduce(lambda thing, key: thing[key], path, document["valuations"][0])[last] = damage
    with pytest.raises(dupre.InputError) as caught:
        loads(json.dumps(document))
    name = place.removesuffix("[0][1]") if "covariance" in words else place
    assert f"the result is damaged: valuations[0].{name} {words}" in str(caught.value)


def test_every_field_of_a_result_is_needed():
    whole = json.loads(plain())
    first, at = whole["valuations"][0], "valuations[0]."
    parts = [(whole, ""), (first, at), (first["owners"][1], f"{at}owners[1].")]
    parts += [(first[name], f"{at}{name}.") for name in ("facts", "uncertainty")]
    for part, place in parts:
        for name in set(part) - {"format", "version"}:
            kept = part.pop(name)
            with pytest.raises(dupre.InputError, match=re.escape(f"damaged: {place}{name} ")):
                loads(json.dumps(whole))
            part[name] = kept


VALUE = ("value", "low", "high", "low_for_these_rows", "high_for_these_rows")
CONTRADICTIONS = [
    ({"value": 0.5}, r"\[0\]\.owners\[2\]\.low must be .* follows from its value and the uncert"),
    ({"high": 1e-5}, r"owners\[2\]\.high must be .* from its value and the uncertainty, got"),
    ({"noise_std": 1e-5}, r"owners\[2\]\.noise_std must be 0\.0, which follows"),
    ({"std": -1e-5}, r"owners\[2\]\.std must be"),
    ({"share": 0.01}, r"owners\[2\]\.share must be 0\.\d+, which follows .* the utilities, got"),
    ({"best": 1}, r"owners\[2\]\.best must be \d, which follows from the values and their unc"),
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
    document = json.loads(plain())
    for name, by in changes.items():
        document["valuations"][0]["owners"][2][name] += by
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


@pytest.mark.slow
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


OWNERS = ["b", "a", "é", "c d", '"']


def a_matrix(n=4):
    return np.random.default_rng(0).normal(size=(n, n))


@pytest.mark.parametrize(
    "matrix",
    [a_matrix(), a_matrix() + a_matrix().T, np.zeros((3, 3)), np.full((3, 3), np.nan), np.eye(1)],
    ids=["any", "symmetric", "zero", "unknown", "one"],
)
def test_a_packed_matrix_is_read_as_it_was_written(matrix):
    np.testing.assert_array_equal(unpack_matrix(pack_matrix(matrix), len(matrix)), matrix)


def test_a_symmetric_matrix_is_its_lower_triangle_in_64_bits():
    for matrix, triangle in ((a_matrix(), False), (a_matrix() + a_matrix().T, True)):
        numbers = np.frombuffer(zlib.decompress(b64decode(pack_matrix(matrix))), dtype="<f8")
        ends = [i + 1 if triangle else 4 for i in range(4)]
        assert numbers.tolist() == [matrix[i, j] for i in range(4) for j in range(ends[i])]


def test_what_is_no_matrix_is_none():
    good = pack_matrix(a_matrix())
    too_much = b64encode(zlib.compress(bytes(10**7))).decode()
    for text in ("", "x", "é", good[:-8], "AAAA" + good, b64encode(b"x" * 9).decode(), too_much):
        assert unpack_matrix(text, 4) is None
    assert unpack_matrix(good, 5) is None


@pytest.mark.parametrize("column", ["members", "coalition"])
def test_a_coalition_is_a_number_whose_bits_are_its_owners(column):
    cells = [["b", "é"], ["a"], OWNERS, []]
    if column == "coalition":
        cells = [json.dumps(sorted(cell), ensure_ascii=False) for cell in cells]
    assert pack_column(column, cells, OWNERS) == ["0x5", "0x2", "0x1f", "0x0"]
    assert unpack_column(column, pack_column(column, cells, OWNERS), OWNERS) == cells
    odd = [("a", "b"), ("x",), ("a", "a"), '["b","a"]', '["x"]']  # could not be read back
    assert pack_column(column, odd, OWNERS) == odd
    odd = [None, 5, ["a"], "a", "0x", "0xg", "0x20", "-0x1", "0x" + "f" * 9999, "0x1_0"]
    assert unpack_column(column, odd, OWNERS) == odd


def test_a_list_of_numbers_is_read_as_it_was_written_and_short():
    cell = json.dumps([k / 899 for k in range(200)] + [None, -0.0, 1e-300], separators=(",", ":"))
    (packed,) = pack_column("resampled", [cell], OWNERS)
    assert len(packed) < len(cell)
    others = [None, "[0.5]", "damaged", packed[:-8]]
    assert unpack_column("resampled", [packed, *others], OWNERS) == [cell, *others]
