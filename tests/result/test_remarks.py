from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dupre.result.as_text import explain_valuation
from dupre.result.records import TrainingNoise
from reporting import (
    CHECK,
    DIAGNOSTICS,
    UNKNOWN_ROWS,
    change,
    core,
    members,
    notes,
    only_line,
    warned,
)
from reporting import small as valuation

FAILED = replace(CHECK, by_size=0.03, limit=0.03)


def sampled(prediction, choice, **others):
    """Standard deviations in the two parts that add up."""
    stds = prediction + choice
    parts = {"covariance": stds, "prediction": prediction, "sampling": choice}
    fields = {name: std**2 * np.eye(3) for name, std in parts.items()}
    return valuation(**{"counting": 4096} | fields | others)


def of_r2(r2, **others):
    return valuation(diagnostics=replace(DIAGNOSTICS, r2=r2), **others)


def repeated(further, std):
    noise = TrainingNoise(further, std, seeded=True, deterministic=not std)
    return change(core(), training_noise=noise)


TIGHT = (("a", "b", "c"), ("b",), ("a", "c"), *[("a", "b", "c", "d")] * 1200)
NOISY = {"noise": 0.0025 * np.eye(3)}
FORECAST = pd.DataFrame({"widest": [0.25, 0.2, 0.125, 0.05]})
LINES = {
    "a subsidy and its bounds": (core(), "Subsidy e = 0.125 (95 %: 0.0625 … 0.25): no coalition is "
        "expected to gain more than that by leaving. Tightest: {owner 0} and {owner 0, owner 1}."),
    "a known subsidy": (change(core(low=0.125, high=0.125), diagnostics=None),
        "Subsidy e = 0.125: no coalition gains more"),
    "a negative subsidy": (core(amount=-0.5, low=-0.75, high=-0.25),
        "Subsidy e = -0.5 (95 %: -0.75 … -0.25):"),
    "the smallest first": (core(tight=TIGHT[:3]), "Tightest: {b}, {a, c} and {a, b, c}."),
    "many": (core(tight=TIGHT), "Tightest: {b}, {a, c}, {a, b, c} and 1,200 more."),
    "large coalitions": (core(tight=(members(8), members(9), members(70))), "Tightest: {o0, o1, "
        "o2, o3, o4, o5, o6, o7}, {o0, o1, o2, … 9 owners} and {o0, o1, o2, … 70 owners}."),
    "a large one warned": (valuation(warnings={"UserWarning: hm": (members(30),)}),
        "evaluations ({o0, o1, o2, … 30 owners}): UserWarning: hm"),
    "a large one failed": (valuation(failures={members(40): "no"}),
        "instead: {o0, o1, o2, … 40 owners}. The first, {o0, o1, o2, … 40 owners}: no"),
    "a sample": (sampled(0.05, 0.02), "The values are sums over 4,096 sampled coalitions: of the "
        "standard deviations up to 0.02 is due to their choice, up to 0.05 to predictions."),
    "noise": (valuation(**NOISY), "75 % is coalitions not evaluated."),
    "noise of a sample": (valuation(**NOISY, sampling=1e-4 * np.eye(3)),
        "79 % is coalitions not evaluated or not drawn."),
    "no noise": (repeated(3, 0.0), "3 repeated trainings gave the same utilities as before."),
    "measured noise": (repeated(1, 0.25),
        "1 repeated training measured the noise of trainings: standard deviation 0.25."),
    "a first guess of few": (valuation(counting=4, first_left=2),
        "Beware: 2 of the 4 most important coalitions"),
    "kinds of warnings": (valuation(warnings={f"UserWarning: {k}": (("o0",),) for k in range(5)}),
        "2 more kinds of warning."),
    "corrected": (valuation(corrected=True),
        "The error of the predictor was estimated from random coalitions and corrected."),
    "how well it predicts": (of_r2(-1.0), ", R² -1.00,"),
    "nothing to predict": (of_r2(np.nan),
        "Predictor not checked: the evaluated utilities are all equal."),
    "outliers": (valuation(diagnostics=replace(DIAGNOSTICS, strays=1), evaluated=1_000),
        "Outliers: 1 of 1,000 "),
    "what outliers do": (valuation(diagnostics=replace(DIAGNOSTICS, strays=1)),
        "but not in predictions, and widen the intervals."),
    "no use": (valuation(stale=1_234),
        "Not used: 1,234 stored evaluations, repeats included, of rows changed since then."),
    "the end": (valuation(stopped="the ranking is settled with 95 %"),
        "Stopped: the ranking is settled with 95 %."),
    "what is to be gained": (valuation(forecast=FORECAST),
        "expected to be ± 0.05 instead of ± 0.25."),
    "a check": (valuation(check=CHECK), "Predictor on 8 check coalitions: error 0.031, that of the "
        "mean of their size 0.088, 95 % intervals cover 75 %."),
}  # fmt: skip


@pytest.mark.parametrize(("v", "words"), LINES.values(), ids=LINES)
def test_what_is_to_be_told_is_told_in_one_line(v, words):
    assert sum(words in line for line in v.explain().split("\n")) == 1
    assert "nan" not in v.explain()


def test_a_result_with_nothing_to_tell_tells_and_warns_of_nothing():
    plain = valuation(forecast=FORECAST[:1])
    words = (
        "Stopped",
        "failed",
        "Warning",
        "expected",
        "check coalitions",
        "Beware",
        "repeats",
        "Not used",
    )
    for word in (*words, "Outliers", "estimated from random", "sample"):
        assert word not in plain.explain()
    assert "noise" not in valuation(diagnostics=None).explain()
    shown = valuation(check=CHECK).explain()
    assert "do not use it" not in shown
    assert "What made coalitions alike" in shown
    assert not warned(change(core(), check=CHECK))
    assert not warned(valuation(corrected=True))
    assert not warned(of_r2(0.01))
    assert not warned(valuation(first_left=2, diagnostics=None))


BEWARE = {
    "payments by a failed predictor": (change(core(), check=FAILED), "on check coalitions the "
        "predictor is not clearly better than the mean of their size; evaluate more."),
    "no use": (of_r2(0.0), "the predictor is no better than a constant; evaluate more."),
    "worse than that": (of_r2(-1.0), "the predictor is no better than a constant; evaluate more."),
    "one training left": (valuation(first_left=1), "1 of the 7 most important coalitions is not "
        "evaluated; these values are a first guess."),
    "few trainings": (valuation(first_left=2), "2 of the 7 most important coalitions are not "
        "evaluated; these values are a first guess."),
    "harm": (valuation(grand=0.1, empty=0.9, mean=np.full(3, -0.8 / 3)),
        "all data together score worse than none; is greater better here, and are validation rows "
        "like those to train on (units, labels)?"),
}  # fmt: skip


@pytest.mark.parametrize(("v", "words"), BEWARE.values(), ids=BEWARE)
def test_what_makes_values_doubtful_is_warned_of(v, words):
    assert warned(v) == [f"Beware: {words}"]
    assert "do not use it" not in v.explain()
    assert "estimated from random" not in v.explain()


def test_a_search_says_how_far_it_went_and_that_it_is_no_proof():
    assert "looks at" not in explain_valuation(core(looked=62))
    v = core(proven=False, looked=12_345, violation=0.0012)
    lines = notes(v)
    assert "more than that by leaving" in explain_valuation(v)
    at = lines.index(only_line(v, "Subsidy"))
    assert lines[at + 1] == (
        "In 12,345 looks at coalitions none was found that exceeds it by more than 0.0012."
    )
    v = core(proven=False, looked=12_345, violation=0.5)
    assert "more than that by leaving" not in explain_valuation(v)
    (told,) = warned(v)
    assert told.endswith("was cut short after 12,345; one exceeds it by 0.5.")


EXACT = [("Exact: every", False, True), ("Exact for these seeds: every", True, True)]
EXACT += [("Exact for these seeds: every", True, False)]
EXACT += [("Exact for these utilities: every", False, False)]


@pytest.mark.parametrize(("words", "seeded", "deterministic"), EXACT)
def test_exact_is_said_for_what_it_is_known(words, seeded, deterministic):
    noise = TrainingNoise(0, np.nan, seeded, deterministic)
    v = change(core(low=0.125, high=0.125), diagnostics=None, covariance=np.zeros((3, 3)))
    exact, subsidy, *others = notes(change(v, training_noise=noise))
    assert exact.startswith(words)
    assert subsidy.startswith("Subsidy")
    unmeasured = "The effect of training seeds was not measured and is in no interval."
    assert others == ([unmeasured] if seeded else []) + [UNKNOWN_ROWS]


def test_a_sample_is_exact_only_without_an_error_and_more_is_advised_where_its_choice_is_larger():
    advice = "More samples would help, and cost no training."
    assert only_line(sampled(0.02, 0.05), "The values are sums").endswith(advice)
    assert advice not in explain_valuation(sampled(0.05, 0.02))

    v = sampled(0.0, 0.02, diagnostics=None)
    assert only_line(v, "The values are sums").startswith(
        "The values are sums over 4,096 sampled coalitions, all of them evaluated: "
    )
    assert "Exact" not in explain_valuation(v)
    assert "Predictor" not in explain_valuation(v)
    agreeing = explain_valuation(sampled(0.0, 0.0, diagnostics=None))
    assert "Exact" not in agreeing
    assert "All draws agree; how far others would be is not known." in agreeing
    assert "sample" not in explain_valuation(valuation(counting=7))


def test_values_from_random_coalitions_alone_leave_out_what_the_predictor_found():
    bad = replace(DIAGNOSTICS, r2=-0.5, strays=2)
    relied = valuation(diagnostics=bad, check=FAILED)
    alone = change(relied, sampled=True)
    for start in ("What made coalitions alike", "Outliers: 2 of 5"):
        assert only_line(relied, start)
        assert start not in explain_valuation(alone)
    assert len(warned(relied)) == 2
    (beware,) = warned(alone)
    assert beware.endswith("they come from randomly drawn coalitions alone.")
