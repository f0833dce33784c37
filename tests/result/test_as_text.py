import re
from dataclasses import replace

import numpy as np
import pytest

import dupre
from dupre.notes import Code, note
from dupre.report.summary import answer
from dupre.result.as_text import format_comparison, format_valuation
from dupre.result.records import Comparison
from dupre.wording import LONGEST_LINE
from owners_and_games import make_owners
from reporting import DIAGNOSTICS, SUBSIDY, change, core, notes
from reporting import small as valuation


def of_r2(r2, **others):
    return valuation(diagnostics=replace(DIAGNOSTICS, r2=r2), **others)


def test_the_text_speaks_of_values_or_of_payments_and_of_no_negative_zero():
    assert not {"Subsidy", "payment"} & set(format_valuation(valuation()).split())
    title, ends = format_valuation(valuation()).split("\n")[:2]
    assert title == "Shapley values of 3 owners; 5 of 7 possible coalitions evaluated"
    assert ends == "u(all owners) = 0.9, u(no data) = 0.1"
    assert format_valuation(core()).startswith("Least core payments of 3 owners; 5 of 7 possible")
    columns = [format_valuation(v).split("\n")[3].split()[2] for v in (valuation(), core())]
    assert columns == ["value", "payment"]
    ends = format_valuation(valuation(grand_predicted=True)).split("\n")[1]
    assert ends == "u(all owners) ≈ 0.9 (predicted), u(no data) = 0.1"
    for v in (valuation(), core()):
        assert str(v) == repr(v) == format_valuation(v)
    text = format_valuation(of_r2(-0.001, empty=-0.0, mean=-np.eye(3)[0] / 1e9))
    assert re.findall(r"-0(?:\.0*)?(?![\d.])", text) == []
    assert "u(no data) = 0\n" in text
    small = {"grand": 3e-10, "empty": 0.0, "mean": np.array([2e-10, 1e-10, 0])}
    small = valuation(**small, covariance=1e-24 * np.diag([1, 0, 0]))
    lines = format_valuation(small).split("\n")[4:7]
    assert [line.split()[2:6] for line in lines] == [
        ["2.0000e-10", "1.9804e-10", "…", "2.0196e-10"],
        ["1.0000e-10", "1.0000e-10", "…", "1.0000e-10"],
        ["0", "0", "…", "0"],
    ]
    assert "they raise the utility of the model by 2.0000e-10 (95 %: 1.98" in answer(small)[0]


POSSIBLE = {30: "1,073,741,823", 37: "about 137 billion", 40: "about 1.1 trillion"}


@pytest.mark.parametrize(
    ("n", "possible"), [*POSSIBLE.items(), (150, "more than a thousand trillion")]
)
def test_the_title_says_how_many_coalitions_there_are(n, possible):
    title = format_valuation(valuation(n, evaluated=1234)).split("\n")[0]
    assert f" {n} owners; 1,234 of {possible} possible coalitions" in title


def test_exact_results_and_payments_say_so_and_offer_nothing():
    owners = make_owners(3)
    text = str(dupre.value(owners, lambda members: len(members) ** 0.5, progress=False, budget=7))
    assert "; all 7 possible coalitions evaluated\n" in text
    assert "Stopped: nothing is left to evaluate." in text
    assert "Exact for these utilities: every coalition that counts was evaluated." in text
    assert "more" not in text
    majority, how = lambda members: float(len(members) > 2), {"semivalue": dupre.LeastCore()}
    v = dupre.value(make_owners(5), majority, budget=31, progress=False, **how)
    assert format_valuation(v).startswith(
        "Least core payments of 5 owners; all 31 possible coalitions"
    )
    exact, subsidy, _ = notes(v)
    assert exact == "Exact for these utilities: every coalition that counts was evaluated."
    assert subsidy.startswith("Subsidy e = 0.4: no coalition gains more")
    assert subsidy.endswith(" and 7 more.")
    assert subsidy.count("{") == 3
    for line in format_valuation(v).split("\n\n")[1].split("\n")[1:]:
        assert float(line.split()[2]) == 0.2
        assert "20.0 %" in line


def test_nothing_of_a_strangers_result_moves_the_terminal():
    strange = "\x1b[2J\x9b5m\n\u202e"
    v = valuation(
        owners=(strange, "o1", "o2"),
        semivalue=strange,
        stopped=strange,
        notes=(note(Code.LEAK, strange),),
        failures={(strange,): strange},
        warnings={strange: ((strange,),)},
        subsidy=replace(SUBSIDY, tight=((strange,),)),
    )
    assert str(v).replace("\n", "").isprintable()
    assert str(v).count("\n") == str(change(v, owners=("o0", "o1", "o2"))).count("\n")
    assert "\\x1b[2J\\x9b5m\\n\\u202e" in str(v)
    assert (
        max(map(len, str(change(v, notes=(note(Code.LEAK, "x" * 10**6),))).split("\n")))
        <= LONGEST_LINE
    )


def test_a_comparison_in_words():
    for comparison, sentence in (
        (
            ("A", "B", 0.971, 0.02, 0.001, 0.04),
            "S: A is worth more than B with a probability of 97.1 %; difference 0.02 "
            "(95 %: 0.001 … 0.04).",
        ),
        (
            ("A", "B", 0.3, -0.02, -0.05, 0.01),
            "S: B is worth more than A with a probability of 70 %; difference 0.02 "
            "(95 %: -0.01 … 0.05). Not settled.",
        ),
        (
            ("A", "B", 0.965, 0.02, -0.002, 0.042),
            "S: A is worth more than B with a probability of 96.5 %; difference 0.02 "
            "(95 %: -0.002 … 0.042). Settled: the probability is at least 95 %. The interval holds "
            "zero, because it leaves out 2.5 % at each end.",
        ),
        (("A", "B", 0.5, 0.0, 0.0, 0.0), "S: A and B have the same value."),
        (
            ("A", "B\n", 0.99999, 2.0, 1.0, 3.0),
            "S: A is worth more than B\\n with a probability of more than 99.9 %; difference 2 "
            "(95 %: 1 … 3).",
        ),
        (
            ("A", "B", 1.0, 2.0, 2.0, 2.0),
            "S: A is worth more than B with a probability of 100 %; difference 2 "
            "(nothing predicted).",
        ),
    ):
        assert format_comparison("S", Comparison(*comparison)) == sentence
