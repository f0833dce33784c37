import re
from dataclasses import replace

import numpy as np
import pytest

import dupre
from dupre.metrics import TABLE
from dupre.notes import Code, note
from dupre.report.summary import answer
from dupre.result.as_text import (
    explain_valuation,
    format_comparison,
    format_valuation,
    gain_in_words,
    how_sure,
    what_next,
)
from dupre.result.records import Comparison
from dupre.result.remarks import with_notes
from dupre.wording import LONGEST_LINE
from owners_and_games import make_owners
from reporting import DIAGNOSTICS, SUBSIDY, VARIANTS, change, core, notes, words_outside
from reporting import small as valuation
from reporting import valuation as made


def of_r2(r2, **others):
    return valuation(diagnostics=replace(DIAGNOSTICS, r2=r2), **others)


def test_the_text_speaks_of_values_or_of_payments_and_of_no_negative_zero():
    assert not {"Subsidy", "payment"} & set(format_valuation(valuation()).split())
    title, ends = explain_valuation(valuation()).split("\n")[1:3]
    assert title == "Shapley values of 3 owners; 5 of 7 possible coalitions evaluated"
    assert ends == "u(all owners) = 0.9, u(no data) = 0.1"
    assert "\nLeast core payments of 3 owners; 5 of 7 possible" in explain_valuation(core())
    columns = [explain_valuation(v).split("\n")[4].split()[2] for v in (valuation(), core())]
    assert columns == ["value", "payment"]
    ends = explain_valuation(valuation(grand_predicted=True)).split("\n")[2]
    assert ends == "u(all owners) ≈ 0.9 (predicted), u(no data) = 0.1"
    for v in (valuation(), core()):
        assert str(v) == repr(v) == format_valuation(v)
        assert v.explain() == explain_valuation(v)
    text = explain_valuation(of_r2(-0.001, empty=-0.0, mean=-np.eye(3)[0] / 1e9))
    assert re.findall(r"-0(?:\.0*)?(?![\d.])", text) == []
    assert "u(no data) = 0\n" in text
    small = {"grand": 3e-10, "empty": 0.0, "mean": np.array([2e-10, 1e-10, 0])}
    small = valuation(**small, covariance=1e-24 * np.diag([1, 0, 0]))
    lines = explain_valuation(small).split("\n")[5:8]
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
    title = explain_valuation(valuation(n, evaluated=1234)).split("\n")[1]
    assert f" {n} owners; 1,234 of {possible} possible coalitions" in title


def test_exact_results_and_payments_say_so_and_offer_nothing():
    owners = make_owners(3)
    v = dupre.value(owners, lambda members: len(members) ** 0.5, progress=False, budget=7)
    text = v.explain()
    assert "; all 7 possible coalitions evaluated\n" in text
    assert "Stopped: nothing is left to evaluate." in text
    assert "Exact for these utilities: every coalition that counts was evaluated." in text
    assert "more" not in text
    assert str(v).endswith("all 7 possible coalitions trained.\nNext: nothing is left to train.")
    majority, how = lambda members: float(len(members) > 2), {"semivalue": dupre.LeastCore()}
    v = dupre.value(make_owners(5), majority, budget=31, progress=False, **how)
    assert "\nLeast core payments of 5 owners; all 31 possible coalitions" in explain_valuation(v)
    exact, subsidy, _ = notes(v)
    assert exact == "Exact for these utilities: every coalition that counts was evaluated."
    assert subsidy.startswith("Subsidy e = 0.4: no coalition gains more")
    assert subsidy.endswith(" and 7 more.")
    assert subsidy.count("{") == 3
    for line in explain_valuation(v).split("\n\n")[1].split("\n")[1:]:
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
    plain, long = change(v, owners=("o0", "o1", "o2")), note(Code.LEAK, "x" * 10**6)
    for show in (str, dupre.Valuation.explain):
        assert show(v).replace("\n", "").isprintable()
        assert show(v).count("\n") == show(plain).count("\n")
        assert "\\x1b[2J\\x9b5m\\n\\u202e" in show(v)
        assert max(map(len, show(change(v, notes=(long,))).split("\n"))) <= LONGEST_LINE


ROWS = {"validation": np.eye(6) / 1e3, "covariance": np.eye(6) / 900, "validation_rows": 1_234}
SCREENS = {
    **VARIANTS,
    "rows": lambda: [made(**ROWS)],
    **{
        f"rows of owners, {metric}": lambda metric=metric: [
            made(**ROWS, validating={"owner 0": 0.5}, provenance={"settings": {"metric": metric}})
        ]
        for metric in ("balanced_accuracy", "neg_mean_absolute_error", "roc_auc", "r2")
    },
    "rows and failures": lambda: [made(**ROWS, failures={("owner 0",): "no"})],
    "worthless": lambda: [made(grand=0.1)],
    "worse": lambda: [made(grand=0.05, **ROWS)],
    "unsure": lambda: [made(covariance=np.eye(6))],
    "many": lambda: [made(70, evaluated=1_234)],
    "noise": lambda: [made(noise=np.eye(6) / 1e5, covariance=np.eye(6) / 1e5)],
}


@pytest.mark.parametrize("make", SCREENS.values(), ids=SCREENS)
def test_the_first_screen_has_at_most_60_words_and_three_notes_of_20(make):
    for v in make():
        command = "`dupre resume dupre-patients --budget +6`"
        text = format_valuation(v, details="dupre show dupre-patients --verbose", go_on=command)
        assert words_outside(text) <= 60
        notes = [line for line in text.split("\n") if line.startswith("- ")]
        assert len(notes) + text.startswith("Not payable: ") <= 3
        assert all(len(line.split()) <= 1 + 20 for line in notes)
        assert text.lower().startswith(v.verdict.kind)
        told = len(notes) + text.startswith("Not payable: ")
        rest = f"{len(v.notes) - told} {'more' if told else 'notes'}"
        shown = f"\n{rest}: dupre show dupre-patients --verbose\n" in text
        assert shown == (told < len(v.notes))
        for word in ("Predictor, ", "alike", "Stopped", "variance", "repeated"):
            assert word not in text


def test_the_gravest_note_stands_first_and_what_pays_nobody_names_its_reason():
    v = with_notes(made(grand=0.1), [note(Code.LEAK, "a column.", column="z")])
    first, gain, leak = str(v).split("\n")[:3]
    assert first == "Not payable: no gain: all data together score 0.1, the same as none."
    assert gain == "Shapley: utility 0.1 with everybody's data, 0.1 without."
    assert leak == "- A column nearly determines the target: z."
    assert v.explain().startswith(f"{first}\nShapley values of 6 owners;")
    assert "Next: another model, metric or columns: by these there is nothing to share." in str(v)


METRICS = {
    "accuracy": "with everybody's data 90 % right, by guessing 10 %",
    "balanced_accuracy": "90 % right per class with everybody's data, guessing 10 %",
    "roc_auc": "everybody's data order 90 % of pairs rightly, guessing 10 %",
    "f1_macro": "the F1 score macro 90 % with everybody's data, 10 % without",
    "r2": "everybody's data explain 90 % of the differences",
    "my_own": "utility 0.9 with everybody's data, 0.1 without",
}
LOSSES = {
    "neg_mean_absolute_error": "off by 0.5 on average with everybody's data, 2 without",
    "neg_root_mean_squared_error": "root mean square error 0.5 with everybody's data, 2 without",
    "neg_mean_absolute_percentage_error": "relative error 0.5 with everybody's data, 2 without",
    "neg_log_loss": "log loss 0.5 with everybody's data, 2 by guessing",
    "neg_brier_score": "Brier score 0.5 with everybody's data, 2 by guessing",
}


@pytest.mark.parametrize(("metric", "words"), METRICS.items())
def test_the_gain_is_in_the_words_of_its_metric(metric, words):
    v = made(provenance={"settings": {"metric": metric}})
    assert gain_in_words(v) == words
    close = change(v, grand=0.1012, grand_predicted=True)
    assert ("about 10.1 %" in gain_in_words(close)) == (" %" in words)


@pytest.mark.parametrize(("metric", "words"), LOSSES.items())
def test_a_loss_is_told_as_people_know_it(metric, words):
    v = made(provenance={"settings": {"metric": metric}}, grand=-0.5, empty=-2.0)
    assert gain_in_words(v) == words


def test_the_sentence_of_a_metric_is_one_line_of_known_places():
    for metric in TABLE.values():
        told = re.findall(r"{[^}]*}", metric.sentence)
        assert set(told) <= {"{all:%}", "{none:%}", "{all:loss}", "{none:loss}"}
        assert bool(told) == bool(metric.sentence)
        assert ("loss}" in metric.sentence) == (bool(told) and metric.bounds[1] == 0)
        assert len(metric.sentence.split()) <= 10
    own = {"words": "", "unit": "", "sentence": "{all} {0} {all.real} {none:>99}"}
    strange = made(provenance={"metric": own})  # from a result that somebody changed
    assert gain_in_words(strange) == "0.9 {0} {all.real} {none:>99}"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (Code.SEEN_ROWS, "validation rows that no model has seen."),
        (Code.ONE_CLASS, "validation rows of every class."),
        (Code.WORSE_THAN_NOTHING, "another model, metric or columns: by these there is nothing"),
    ],
)
def test_what_no_training_repairs_is_told_with_what_does(code, told):
    facts = {"seen": 3, "rows": 9, "all": 0.1, "none": 0.2}
    v = with_notes(made(), [note(code, "it is so.", **facts), note(Code.FIRST_GUESS, "so.")])
    assert what_next(v).startswith(told)


def test_without_a_validation_file_the_next_rows_are_those_of_the_owners():
    known = {**ROWS, "covariance": np.eye(6) / 999.9, "validating": {"owner 0": 0.5}}
    assert what_next(made(**known)) == "more rows of owners, or an agreed file (about 4,900)."


def test_what_next_follows_the_greatest_source_of_uncertainty():
    rows = made(**{**ROWS, "covariance": np.eye(6) / 600})  # no number of them halves the intervals
    assert what_next(rows, "`go on`") == "more validation rows; or more trainings: `go on`"
    known = made(**{**ROWS, "covariance": np.eye(6) / 999.9})
    assert what_next(known) == "more validation rows (about 4,900 would halve the intervals)."
    trained = made(**{**ROWS, "covariance": np.eye(6) / 100})
    assert what_next(trained, "`go on`") == "more trainings: `go on`"
    noisy = made(noise=np.eye(6) / 1e5, covariance=np.eye(6) / 1e5)
    assert what_next(noisy).startswith("a new run with more repeats: chance in trainings")
    dealt = {"deal": np.eye(6) / 100, "covariance": np.eye(6) / 1e5}
    assert what_next(made(**dealt, folds=10)).startswith("a new run with more repeats: most of")
    assert what_next(made(**dealt, folds=1)).startswith("a new run on folds")


def test_if_failed_coalitions_alone_are_left_these_are_to_be_trained_again():
    failed = {"failures": {("owner 0",): "no"}, "counting": 63, "first_left": 1}
    tried = made(evaluated=63, **failed)
    assert what_next(tried, "`go on`") == "train the failed ones again: `go on`"
    assert how_sure(tried).endswith("; 62 of 63 possible coalitions trained, 1 failed.")
    assert "- Of 63 coalitions 1 failed, " in str(tried)
    assert what_next(made(evaluated=62, **failed), "`go on`") == "more trainings: `go on`"


def test_of_many_owners_the_first_and_the_last_are_shown_and_explain_shows_all():
    for n, left in ((20, 0), (21, 1), (70, 50)):
        v = made(n)
        lines = str(v).split("\n\n")[1].split("\n")[1:]
        assert (f"… {left} more" in lines) == (left > 0)
        shown = [v.owners.index(" ".join(line.split()[:2])) for line in lines if line[0] == "o"]
        assert shown == [*v.order[:10], *v.order[-10:]]
        assert all(name in v.explain() for name in v.owners)


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
