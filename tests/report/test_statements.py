import re
from dataclasses import replace
from string import Formatter

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from dupre import InputError, ModelUtility, Owners
from dupre.notes import GUESSED, INFO, SHORT, Code, note
from dupre.report.document import Heading, read_logo
from dupre.report.page import page
from dupre.report.relations import Relation
from dupre.report.statements import (
    OF_DIGEST,
    file_names,
    shared_words,
    statements,
    write_statements,
)
from dupre.report.summary import agreement, answer, open_neighbours, settled_pairs
from dupre.result.records import Duplicates, TrainingNoise
from dupre.result.verdict import RESERVED
from dupre.utility.describe import describe
from dupre.valuation.validation_rows import validation_notes
from reporting import DIAGNOSTICS, change, exact, least_core, sampled, troubled, valuation


def plain(texts):
    return " ".join(texts).replace("\u2068", "").replace("\u2069", "")


def of(v, owner, relations=()):
    (found,) = [s for s in statements(v, list(relations)) if v.owners[s.owner] == owner]
    return (
        plain(filter(None, [found.effect, *found.paragraphs])),
        plain(found.caveats),
        dict(found.facts),
    )


def three(mean, std=0.001, **others):
    std = np.broadcast_to(std, 3)
    return valuation(3, mean=np.array(mean), covariance=np.diag(std**2), **others)


def test_who_is_worth_most_and_who_harms_is_named_or_said_to_be_open():
    assert plain(answer(three([0.1, 0.3, 0.2]))).startswith(
        "The data of owner 1 are worth most: they raise the utility of the model by 0.3000 "
        "(95 %: 0.2980 to 0.3020) on average; Shapley value 0.3000."
    )
    words = plain(answer(three([0.3, 0.3005, 0.2])))
    assert words.startswith("It is not settled whose data are worth most: between owner 1 and ")
    everybody = plain(answer(three([0.3, 0.3, 0.3], std=0.1)))
    assert "between any of the owners the order is open" in everybody

    words = plain(answer(three([0.3, -0.2, 0.001])))
    worse = "The data of owner 1 make models worse on average: they lower the utility of the model"
    assert f"{worse} by 0.2000 (95 %: 0.1980 to 0.2020) on average; Shapley value −0.2000" in words
    assert "Whether the data of owner 2 help or harm is not settled" in words
    words = plain(answer(exact(3, mean=np.array([0.5, 0.3, 0.0]), covariance=np.zeros((3, 3)))))
    assert "The data of owner 2 make no difference." in words
    nobody = exact(3, mean=np.array([0.5, 0.3, 0.0]), covariance=np.zeros((3, 3)))
    words = plain(answer(change(nobody, validation_rows=40)))
    assert "The data of owner 2 make no difference on the 40 validation rows." in words
    assert "Everybody's data help" in plain(answer(three([0.3, 0.2, 0.1])))


def test_nothing_is_sure_of_a_first_guess_or_a_predictor_that_knows_nothing():
    unknown = three([0.3, 0.2, 0.1])  # nothing is known of other validation rows
    assert "all Shapley values are apparently above zero" in plain(answer(unknown))
    assert ", apart from the choice of the validation rows." in plain(answer(unknown))
    sure = change(unknown, validation=np.zeros((3, 3)))
    assert "all Shapley values are surely above zero" in plain(answer(sure))
    guess = ", apart from groups that were not trained and are only guessed."
    bad = replace(DIAGNOSTICS, r2=-0.1)
    for doubtful in (change(sure, first_left=2), change(sure, diagnostics=bad)):
        words = plain(answer(doubtful))
        assert "all Shapley values are apparently above zero" in words
        assert guess in words
    assert guess not in plain(answer(change(sure, diagnostics=None, first_left=2)))


def test_exact_values_are_told_without_intervals_and_how_much_was_trained_is_told():
    words = plain(answer(exact()))
    assert "95 %" not in words
    assert "The values are exact for these utilities." in words
    assert "All 15 possible coalitions were trained; nothing was predicted." in words
    assert "30 of 31 possible coalitions were trained; the utilities of the others" in plain(
        answer(valuation(5))
    )
    assert "those drawn at random alone" in plain(answer(valuation(5, sampled=True)))
    assert "a sum over a sample" in plain(answer(sampled(diagnostics=None)))


def test_neighbours_and_what_is_undecided_are_told_with_the_odds():
    v = three([0.3, 0.2, 0.1995])
    (only,) = open_neighbours(v)
    sure = 100 * v.probability_greater().iloc[1, 2]
    assert plain([only]) == f"owner 1 and owner 2: {sure:.0f} % that owner 1 is worth more."
    assert settled_pairs(v) == (2, 3)
    assert open_neighbours(three([0.3, 0.2, 0.1])) == []
    tied = open_neighbours(exact(3, mean=np.array([0.2, 0.2, 0.1]), covariance=np.zeros((3, 3))))
    assert "equal, or as likely" in tied[0]

    v = valuation(4, mean=np.array([0.4, 0.3, 0.2995, 0.1]), covariance=1e-6 * np.eye(4))
    v = change(v, validation=np.zeros((4, 4)))
    assert (
        "Of the other owners 1 is surely worth more and 1 surely worth less; with 1 the order is "
        "not settled."
    ) in of(v, "owner 1")[0]
    assert "Of the other owners 3 are surely worth less." in of(v, "owner 0")[0]
    assert "Of the other owners 3 are surely worth more." in of(v, "owner 3")[0]
    nothing = change(v, covariance=np.eye(4))
    assert "The order is settled with none of the other owners." in of(nothing, "owner 1")[0]


@pytest.mark.parametrize("make", [valuation, least_core])
def test_nothing_is_sure_while_models_are_scored_on_rows_they_have_seen(make, tmp_path):
    X, y = np.eye(3), np.array([0, 1, 0])
    owners = Owners.from_arrays(X, y, ["a", "a", "b"])
    utility = ModelUtility(GaussianNB(), owners, validation=(X[:2], y[:2]))
    v = make(
        3,
        mean=np.array([0.3, 0.2, 0.1]),
        notes=tuple(validation_notes(describe(utility).validation)),
    )
    written = write_statements(v, tmp_path, heading=Heading())
    for text in (page([v]), *(path.read_text() for path in written)):
        assert not re.search("surely", text, re.IGNORECASE)
        assert re.search("Apparently means with a probability of at least 95.%, apart from", text)
    assert "1 is apparently " in of(v, "owner 1")[0]
    assert "is settled, apart from the effect of validation rows" in plain(answer(v))
    sure = page([make(3, validation=np.zeros((3, 3)))])
    assert re.search(r"Surely means with a probability of at least 95.%\.", sure)


def test_nothing_is_sure_while_the_effect_of_seeds_is_not_measured():
    for further, deterministic, word in ((0, False, "apparently"), (6, False, "surely")):
        noise = TrainingNoise(further, 0.1, seeded=True, deterministic=deterministic)
        v = valuation(3, mean=np.array([0.3, 0.2, 0.1]), training_noise=noise)
        v = change(v, validation=np.zeros((3, 3)))
        assert f"1 is {word} " in of(v, "owner 1")[0]


def test_semivalues_are_said_to_agree_or_not():
    for mean, std, words in (
        ([0.5, 0.3, 0.2], 0.001, "agree about the order of all owners"),
        ([0.3, 0.1, 0.2], 0.9, "differ about the order of 1 of 3 pairs of owners, but only where"),
        ([0.2, 0.3, 0.1], 0.001, "in opposite ways: owner 0 and owner 1."),
    ):
        other = three(mean, std, semivalue="Banzhaf")
        found = plain([agreement([three([0.3, 0.2, 0.1]), other])])
        assert found.startswith("Shapley and Banzhaf ")
        assert words in found


def test_a_value_is_put_into_words_with_its_interval_and_doubt_is_not_hidden():
    words, _, facts = of(three([0.3, 0.2, 0.1]), "owner 1")
    assert words.startswith(
        "Adding your data to a group of other owners raises the utility of the model by "
        "0.2000 (95 %: 0.1980 to 0.2020) on average. The average is over groups of every size, "
        "each size counting alike."
    )
    assert facts == {
        "Rows": "50",
        "Shapley value": "0.2000",
        "95 % interval": "0.1980 to 0.2020",
        "Share": "25.0 %",
        "Rank (95 %)": "2 of 3",
    }

    v = three([0.3, -0.2, 0.001])
    assert "lowers the utility of the model by 0.2000" in of(v, "owner 1")[0]
    assert "A negative value means that" in of(v, "owner 1")[0]
    assert "not settled whether your data help or harm" in of(v, "owner 2")[0]
    assert "negative" not in of(v, "owner 0")[0]


def test_semivalues_payments_and_metrics_are_explained_in_their_own_words():
    v = three([0.3, 0.2, 0.1])
    assert "all possible groups, each" in of(change(v, semivalue="Banzhaf"), "owner 0")[0]
    alone = of(change(v, semivalue="leave-one-out"), "owner 0")[0]
    assert alone.startswith("Adding your data to those of all other owners raises")
    assert "Some groups count more" in of(change(v, semivalue="mine"), "owner 0")[0]
    words, _, facts = of(least_core(), "owner 0")
    assert words.startswith("You are to be paid 0.20")
    assert "Least core payment" in facts
    for metric, words in (
        ("accuracy", "raises accuracy by 20.0 points (95 %: 19.8 to 20.2)"),
        ("f1_macro", "raises the F1 score macro by 20.0 points"),
        ("r2", "raises R² by 0.2000 (95 %: 0.1980 to 0.2020)"),
        ("neg_log_loss", "raises the score neg_log_loss by 0.2000"),
        ("a function of mine", "raises the utility of the model by 0.2000"),
    ):
        v = three([0.3, 0.2, 0.1], provenance={"settings": {"metric": metric}})
        assert words in of(v, "owner 1")[0]


def test_number_sign_and_interval_of_an_effect_agree():
    for value, std, words in (
        (-0.01, 0.013, "changes accuracy by −1 point (95 %: −4 to 2)"),
        (0.01, 0.013, "changes accuracy by 1 point (95 %: −2 to 4)"),
        (-0.05, 0.013, "lowers accuracy by 5 points (95 %: 2 to 8)"),
        (0.003, 0.013, "changes accuracy by 0 points (95 %: −2 to 3)"),
        (-0.01, 0, "lowers accuracy by 1 point on average"),
    ):
        settings = {"provenance": {"settings": {"metric": "accuracy"}}}
        v = three([0.3, value, 0.1], (0.013, std, 0.013), **settings)
        assert words in of(v, "owner 1")[0]
    v = three([-0.3, -0.01, -0.2], (0.05, 0.03, 0.05))
    best = (
        "are worth most: they change the utility of the model by −0.010 (95 %: −0.069 to 0.049) on"
    )
    assert best in plain(answer(v))


def test_an_effect_is_called_small_only_if_its_whole_interval_is():
    hardly = "hardly changes the utility of the model on average."
    assert hardly in of(three([0.3, 1e-6, 0.1]), "owner 1")[0]
    exactly = exact(3, mean=np.array([0.5, 0.3, 0.0]), covariance=np.zeros((3, 3)))
    assert hardly in of(exactly, "owner 2")[0]
    words = of(three([0.3, 1e-6, 0.1], std=1.1), "owner 1")[0]
    assert words.startswith(
        "It is not known whether adding your data to a group of other owners raises or "
        "lowers the utility of the model on average (95 %: −2.2 to 2.2)."
    )
    settings = {"provenance": {"settings": {"metric": "accuracy"}}}
    last = three([0.3, 1e-6, 0.1], std=0.1, semivalue="leave-one-out", **settings)
    assert of(last, "owner 1")[0].startswith(
        "It is not known whether adding your data to those of all other owners raises or "
        "lowers accuracy (95 %: −20 to 20 points)."
    )
    narrow = three([0.3, 0.02, 0.1], std=(1.1, 0.001, 1.1))
    assert "changes the utility of the model by 0.0 (95 %: 0.0 to 0.0)" in of(narrow, "owner 1")[0]


def test_what_was_trained_alone_and_without_and_whose_rows_are_the_same_is_told():
    v = valuation(4)
    frame = v.facts.evidence.coalitions
    alone = frame["utility"][frame["members"] == ("owner 2",)].iloc[0]
    without = frame["utility"][frame["members"] == ("owner 0", "owner 1", "owner 3")].iloc[0]
    for metric, one, other, both, added in (
        ("mine", f"{alone:.4g}", f"{without:.4g}", "0.9", f"{0.9 - without:.2g}"),
        ("accuracy", "30.0 %", "70.0 %", "90.0 %", "20.0 points"),
    ):
        words = of(change(v, provenance={"settings": {"metric": metric}}), "owner 2")[0]
        assert f"A model trained on your data alone reached {one}. " in words
        assert (
            f"All other owners together reached {other} without your data and {both} with them: "
            f"to this one group, the largest, your data add {added}."
        ) in words
    assert "Accuracy is 90.0 % with the data of all owners and 10.0 % without any; the" in words
    assert "alone reached" not in of(change(v, evidence=None), "owner 2")[0]
    told = [Relation((0, 2), "Ada and Bob hold the same rows."), Relation((2,), "They are unlike.")]
    words = of(v, "owner 2", told)[0]
    assert "unlike those of all others. Other owners hold data that are the same" in words
    assert "Ada" not in words
    assert "the same or alike" not in of(v, "owner 1", told)[0]


def test_caveats_tell_of_predictions_few_rows_and_failures():
    v = troubled(rows=np.array([40, 12, 40, 40, 40]))
    caveats = of(v, "owner 1")[1]
    assert "12 rows are few" in caveats
    assert "1 training with your data failed; its utility was predicted." in caveats
    assert shared_words(v)["against"] == ["Missing trainings: 2 of the 11 most important."]
    assert "Of the 31 coalitions behind the values, 3 were not trained but predicted" in caveats
    assert of(exact(rows=np.full(4, 50), validation=np.zeros((4, 4))), "owner 1")[1] == ""


def test_every_caveat_of_the_result_is_told_also_if_an_owner_is_called_like_a_number_in_it():
    """A class called 1 was once taken for the owner 1, and its caveat hidden."""
    worse = note(Code.WORSE_THAN_NOTHING, "1", all=1.0, none=2.0)
    one = note(Code.UNEQUAL_CLASSES, "1 and 2", of="1", part=0.95)
    rare = note(Code.FEW_OF_A_CLASS, "1 of '1'", rows={"1": 1, "Ada": 3}, needed=10)
    v = valuation(5, names="12345", grand=1.0, empty=2.0, notes=(one, worse))
    assert shared_words(v)["against"][0] == "All data together score worse (1) than none (2)."
    assert shared_words(v)["against"] == [one.short for one in v.verdict.reasons[:3]]
    for statement in statements(v, []):
        assert "Accuracy, and 95 % of the validation rows are of one class." in statement.caveats
        assert not {one.short for one in v.verdict.reasons} & set(statement.caveats)
    payable = change(v, grand=2.0, empty=0.0, notes=(rare,))
    assert shared_words(payable)["against"] == []
    for statement in statements(payable, []):
        assert (
            "Too few validation rows of some class: 1 of '1' and 3 of 'Ada'." in statement.caveats
        )


def test_an_owner_is_told_why_it_is_paid_nothing_and_never_to_train():
    v = three([0.3, 0.2, -0.1], diagnostics=replace(DIAGNOSTICS, r2=-0.2))
    rule = "Payments are in proportion to the Shapley values; who is at or below zero gets nothing."
    first, _, last = statements(v, [], v.payments(600, anyway=True))
    assert first.paragraphs[0] == rule
    assert last.paragraphs[0] == f"Nothing is paid, as the value is −0.1000. {rule}"
    assert statements(v, [])[0].paragraphs[0] == ""
    for one in (first, last):
        assert "The predictor is no better than a constant." in one.caveats
        assert "train more" not in plain(one.caveats)


def test_every_grave_note_has_a_short_form_without_names():
    grave = {code for code in Code if code.severity != INFO} | RESERVED | GUESSED
    assert grave - set(SHORT) == {Code.PAID_OUTSIDE, Code.PAID_ELSEWHERE}  # of payments
    assert {
        name for text in SHORT.values() for _, name, _, _ in Formatter().parse(text) if name
    } <= {
        *("first", "left", "all", "none", "probability", "needed", "outside", "utilities", "seen"),
        *("rows", "part", "most", "count", "score", "failed", "evaluated", "coalitions", "folds"),
        *("without", "evaluations", "resamples", "column", "utility", "typical", "counted"),
        *("levels", "effective"),
        *("floor", "members"),  # statements leave out who they are
        *("names", "paid"),  # of payments, whose notes are on no statement
    }


def test_an_owner_can_check_its_rows():
    marks = {"fingerprints": {f"rows of owner {i}": f"digest {i}" for i in range(3)}}
    parts = {"owner 0": 0.2, "owner 1": 0.3, "owner 2": 0.5}
    dealt = {"rows": np.full(3, 30), "validation_rows": 100, "validating": parts}
    v = valuation(3, **dealt, folds=10, provenance=marks)
    digest = "digest {}. " + OF_DIGEST
    rows = ", ".join(map(str, range(3, 73)))
    held = {"rows held out": {"owner 0": rows.partition(", 23")[0]}}
    numbered = "numbered from 1 in the order of your rows: "
    apart, trained = "the 100 validation rows are a file of their own", "among the rows to train on"
    seen = note(Code.SEEN_ROWS, "", seen=7, rows=100)
    checks = {v.owners[one.owner]: one.checks for one in statements(v, [])}
    assert checks["owner 1"] == [
        ("Rows of yours that validated", "all 30, each once"),
        ("Digest of your rows", digest.format(1)),
    ]
    for changes, words in (
        ({}, "20 different ones, each once"),
        ({"folds": 1}, "20 of 30"),
        (
            {"folds": 1, "provenance": marks | held},
            f"20 of 30, {numbered}{held['rows held out']['owner 0']}",
        ),
        ({"validating": {}}, apart),
        ({"validating": {}, "notes": (seen,)}, f"{apart}; 7 of them are also {trained}"),
    ):
        found = {one.owner: one.checks for one in statements(change(v, **changes), [])}
        assert found[0][0] == ("Rows of yours that validated", words)
    (bare, *_) = statements(valuation(3), [])
    assert bare.checks == []

    many = {"rows": np.full(3, 300), "validation_rows": 350, "folds": 1}
    v = change(v, **many, provenance=marks | {"rows held out": {"owner 0": rows}})
    words = statements(v, [])[0].checks[0][1]
    assert words.startswith(f"70 of 300, {numbered}{rows.partition(', 63')[0]}, …; all are in")


def test_files_of_statements_name_no_other_owner(tmp_path):
    names = ("Ada", "Bob", "b o b", "../../etc", "x" * 300, "Ünal")
    told = [note(Code.LEAK, "Bob and Ada are late."), note(Code.LEAK, "Is old.", column="age")]
    same = Duplicates((("Ada", "Bob"),), 63, 47, 16)
    v = valuation(6, names=names, notes=tuple(told), duplicates=same)
    assert len(set(file_names(names))) == 6
    paths = write_statements(v, tmp_path, heading=Heading("A title & more", "Ask Eve."))
    assert {path.parent for path in paths} == {tmp_path}
    assert len(paths) == 6
    of_ada = tmp_path / "statement-Ada.html"
    page = of_ada.read_text(encoding="utf-8")
    for name in names[1:]:
        assert name not in page
    for words in (
        *("A title &amp; more", "Ask Eve.", "<h2><bdi>Ada</bdi></h2>"),
        *(
            "There is more to know: ask whoever sent this.",
            "the target: age.",
            "hold the same rows",
        ),
    ):
        assert words in page
    assert "<script" not in page
    assert "script-src" not in page
    (only,) = write_statements(v, tmp_path / "one", only=["Bob"], heading=Heading())
    assert only.name == "statement-Bob.html"
    with pytest.raises(InputError, match="Bop"):
        write_statements(v, tmp_path, only=["Bop"], heading=Heading())


def test_files_of_long_names_end_as_the_names_do():
    hospital = "University Hospital of the Canton in the very Northern Part of the Country, "
    names = [f"{hospital}Department {i}" for i in range(1, 13)]
    for i, file in enumerate(file_names(names), start=1):
        assert file.endswith(f"-Country-Department-{i}.html")
        assert len(file) <= len("statement-.html") + 60
    inside = [f"{'a' * 50} {i} {'b' * 50}" for i in range(3)]  # different in the middle alone
    assert len(set(file_names(inside))) == 3


def test_an_owner_is_told_of_a_decisive_training_without_the_names_of_others():
    changes, scored = {"A": -0.472, "B": 0.455}, {"utility": 0.08, "typical": 0.9}
    one = note(Code.DECISIVE_TRAINING, "", members=["A", "B"], **scored, changes=changes)
    assert one.short == "A + B scored 0.08, others of this size about 0.9: check rows."
    v = valuation(3, names="ABC", notes=(one,))
    told = {v.owners[one.owner]: one.caveats for one in statements(v, [])}
    for name, caveats in told.items():
        text = "A group of owners scored 0.08, others of this size about 0.9: check rows."
        assert text in caveats
        changes = {"A": ["−0.4720"], "B": ["0.4550"]}.get(name, [])
        alone = [f"That training alone changes your value by {by}." for by in changes]
        assert [text for text in caveats if "alone changes" in text] == alone


def test_a_logo_is_part_of_the_page(tmp_path):
    assert read_logo("") == ""
    (tmp_path / "logo.png").write_bytes(b"\x89PNG")
    assert read_logo(str(tmp_path / "logo.png")) == "data:image/png;base64,iVBORw=="
    (tmp_path / "large.svg").write_bytes(b" " * 600_000)
    for name, words in {
        "logo.txt": "must be one of",
        "no.png": "cannot",
        "large.svg": "most",
    }.items():
        with pytest.raises(InputError, match=words):
            read_logo(str(tmp_path / name))


def test_a_payment_outside_its_interval_is_said_on_the_page_and_to_its_owner_alone():
    mean, std = np.full(8, -0.001), np.full(8, 0.02)
    mean[0], std[0] = 0.02, 0.003
    v = change(valuation(8), mean=mean, covariance=np.diag(std**2))
    v = change(v, notes=(note(Code.LEAK, "all is new."),))
    paid = v.payments(10_000, anyway=True)
    assert paid.outside == ("owner 0",)
    first, *others = statements(v, [], paid)
    assert "The payment is outside its own 95 % interval:" in plain(first.caveats)
    assert all("own 95 % interval" not in plain(one.caveats) for one in others)
    section = page([v], paid=paid).split('id="notes"')[1].split("</section>")[0]
    assert "payment of owner 0 is outside its own" in section
    assert section.count("All is new") == 1


def test_a_payment_is_told_with_its_interval_the_amount_and_what_was_paid_before():
    v = three([0.3, 0.2, 0.1])
    paid = v.payments(600, currency="CHF", anyway=True)
    before = replace(paid, paid=pd.Series([100.0, 0.0, 0.0], ["owner 0", "owner 1", "owner 2"]))
    low, high = paid.frame.loc["owner 0", ["low", "high"]]
    facts = statements(v, [], before)[0].facts
    assert facts[:5] == [
        ("Payment", "300.00 CHF"),
        ("Payment, 95 % interval", f"{low:.2f} to {high:.2f}"),
        ("Already paid", "100.00"),
        ("Difference", "200.00"),
        ("Amount shared by all", "600.00"),
    ]
    assert statements(v, [], InputError("not payable"))[0].facts[0][0] == "Shapley value"


def test_where_all_are_below_zero_nobody_is_worth_most():
    v = change(three([-0.1, -0.2, -0.3]), validation=np.zeros((3, 3)))
    assert plain(answer(v)).startswith("The data of owner 2, owner 1 and owner 0 make models worse")
    shown = page([v])
    assert "worth most" not in shown
    assert "Surely below zero: all owners." in shown
