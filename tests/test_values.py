from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from dupre import Diagnostics, InputError, Valuation

DIAGNOSTICS = Diagnostics(
    error=0.01,
    r2=0.9,
    coverage=0.95,
    widening=1.2,
    scales={"data × size": 0.7, "linear": 0.3},
    noise=0.001,
    form="SW_2",
)


def valuation(mean, covariance=None, **others):
    mean = np.asarray(mean, dtype=float)
    n = len(mean)
    fields = {
        "owners": tuple(f"owner {i}" for i in range(n)),
        "rows": np.arange(n) * 1000,
        "semivalue": "Shapley",
        "grand": 0.9,
        "empty": 0.1,
        "evaluated": 5,
    }
    covariance = np.zeros((n, n)) if covariance is None else np.asarray(covariance)
    return Valuation(mean=mean, covariance=covariance, **(fields | others))


@pytest.fixture
def uncertain():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    return valuation(rng.normal(size=5), root @ root.T, diagnostics=DIAGNOSTICS)


def test_probability_greater_agrees_with_draws_from_the_normal(uncertain):
    rng = np.random.default_rng(1)
    draws = rng.multivariate_normal(uncertain.mean, uncertain.covariance, size=100_000)
    seen = np.mean(draws[:, :, None] > draws[:, None, :], axis=0)
    P = uncertain.probability_greater().to_numpy()
    error = np.sqrt(P * (1 - P) / len(draws))
    different = ~np.eye(5, dtype=bool)
    assert np.all(np.abs(seen - P)[different] < 4 * error[different])


def test_one_of_two_owners_is_worth_more(uncertain):
    P = uncertain.probability_greater().to_numpy()
    np.testing.assert_allclose(P + P.T, 1.0, atol=1e-12)
    np.testing.assert_array_equal(np.diag(P), 0.5)


def test_nothing_is_uncertain_without_covariance():
    P = valuation([0.3, 0.1, 0.3]).probability_greater().to_numpy()
    np.testing.assert_array_equal(P, [[0.5, 1, 0.5], [0, 0.5, 0], [0.5, 1, 0.5]])


def test_perfectly_correlated_owners_differ_by_a_certain_amount():
    P = valuation([1.0, 0.9], np.full((2, 2), 4.0)).probability_greater().to_numpy()
    np.testing.assert_array_equal(P, [[0.5, 1], [0, 0.5]])


def ranks(mean):
    return 1 + np.sum(mean[:, None] > mean, axis=0)


@pytest.mark.parametrize("level", [0.6, 0.95, 0.999])
def test_rank_ranges_hold_the_rank_of_the_mean(uncertain, level):
    frame = uncertain.rank_range(level)
    rank = ranks(uncertain.mean)
    assert np.all(frame["best"] <= rank)
    assert np.all(rank <= frame["worst"])


def test_rank_ranges_shrink_with_the_covariance_and_with_the_level(uncertain):
    def width(shrunk, level=0.95):
        v = valuation(uncertain.mean, shrunk * uncertain.covariance)
        frame = v.rank_range(level)
        return frame["worst"] - frame["best"]

    scales = [100.0, 1.0, 1e-2, 1e-4, 0.0]
    for wide, narrow in pairwise(scales):
        assert np.all(width(narrow) <= width(wide))
    assert np.all(width(1.0, 0.7) <= width(1.0, 0.95))
    assert np.all(width(0.0) == 0)


def test_rank_ranges_are_the_ranks_when_nothing_is_uncertain():
    frame = valuation([0.2, 0.5, -0.1, 0.5]).rank_range()
    assert frame["best"].tolist() == [3, 1, 4, 1]
    assert frame["worst"].tolist() == [3, 2, 4, 2]


@pytest.mark.parametrize("level", [0.5, 0.2])
def test_the_best_rank_is_never_worse_than_the_worst_at_any_level(uncertain, level):
    frame = uncertain.to_frame(level)
    assert np.all(frame["best"] <= frame["worst"])


@pytest.mark.parametrize("level", [0.1, 0.5, 0.95])
def test_interval_holds_the_stated_probability(uncertain, level):
    bounds = uncertain.interval(level)
    law = norm(uncertain.values, uncertain.std)
    np.testing.assert_allclose(law.cdf(bounds["high"]) - law.cdf(bounds["low"]), level)
    np.testing.assert_allclose((bounds["high"] + bounds["low"]) / 2, uncertain.values)


@pytest.mark.parametrize("level", [0.0, 1.0, 95, -0.1, float("nan")])
def test_a_level_that_is_no_probability_is_refused(uncertain, level):
    with pytest.raises(InputError, match="between 0 and 1"):
        uncertain.interval(level)


@pytest.mark.parametrize("level", [1.0, 95])
def test_a_level_that_is_no_probability_is_refused_for_ranks_too(uncertain, level):
    with pytest.raises(InputError, match="between 0 and 1"):
        uncertain.rank_range(level)


def test_std_is_the_root_of_the_diagonal_and_never_nan(uncertain):
    np.testing.assert_allclose(uncertain.std**2, np.diag(uncertain.covariance))
    rounded_below_zero = valuation([1.0, 2.0], -1e-18 * np.eye(2))
    np.testing.assert_array_equal(rounded_below_zero.std, 0.0)


def test_share_is_the_part_of_what_all_owners_add():
    v = valuation([0.2, 0.6], grand=0.9, empty=0.1)
    np.testing.assert_allclose(v.share, [0.25, 0.75])
    assert v.efficiency_gap == pytest.approx(0.0)


def test_share_is_missing_when_all_owners_add_nothing():
    v = valuation([0.2, -0.2], grand=0.4, empty=0.4)
    assert v.share.isna().all()
    assert "–" in str(v)
    assert "nan" not in str(v)


def test_efficiency_gap_is_told_when_there_is_one():
    v = valuation([0.2, 0.5], grand=0.9, empty=0.1)
    assert v.efficiency_gap == pytest.approx(0.1)
    assert "add up to 0.7" in str(v)
    assert "add up" not in str(valuation([0.2, 0.6]))


def test_series_and_frames_are_indexed_by_owner(uncertain):
    names = list(uncertain.owners)
    for result in (uncertain.values, uncertain.std, uncertain.share, uncertain.interval()):
        assert result.index.tolist() == names
    assert uncertain.probability_greater().columns.tolist() == names
    frame = uncertain.to_frame(0.8)
    assert " ".join(frame.columns) == "rows value std low high share best worst"
    pd.testing.assert_frame_equal(frame[["low", "high"]], uncertain.interval(0.8))


def table(text):
    """Header and lines of the table: what stands between the first two empty lines."""
    return text.split("\n\n")[1].split("\n")


HOSTILE = ["[bold]x[/bold]", "名前 ✓", "%s {0} \\", "</td><script>", "value", "a" * 120, " b ", "0"]


def test_str_has_one_aligned_line_per_owner_from_best_to_worst():
    mean = np.linspace(-0.3, 1234.5, len(HOSTILE))
    names = tuple(HOSTILE)
    v = valuation(mean, np.diag(np.geomspace(1e-6, 9.0, len(mean))), owners=names)
    header, *lines = table(str(v))
    assert len({len(line) for line in (header, *lines)}) == 1
    for name, line in zip(reversed(names), lines, strict=True):
        assert line.startswith(name)
    right_of = [header.index(word) + len(word) for word in ("rows", "value", "interval", "share")]
    for line in lines:
        for end in right_of:
            assert line[end - 1] != " "
            assert line[end : end + 2] == "  "


@pytest.mark.parametrize("name", ["two\nlines", "back\rhere", "a\ttab\x1b[31m"])
def test_names_with_control_characters_do_not_break_the_table(name):
    _, *lines = table(str(valuation([0.3, 0.1], owners=(name, "other"))))
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)


def test_str_says_whether_values_are_exact_and_what_went_wrong(uncertain):
    assert valuation([1.0, 2.0]).exact
    assert "Exact" in str(valuation([1.0, 2.0]))
    assert not uncertain.exact
    assert "widened" not in str(uncertain)
    doubtful = replace(uncertain, diagnostics=replace(uncertain.diagnostics, widening=1.7))
    assert "widened 1.7 x" in str(doubtful)
    warned = valuation([1.0, 2.0], warnings={"ConvergenceWarning: slow": 3})
    assert "Warning in 3 of 5 evaluations: ConvergenceWarning: slow" in str(warned)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9])
def test_str_survives_values_of_any_size(scale):
    v = valuation(scale * np.array([1.0, -2.0, 0.0]), scale**2 * np.eye(3), grand=scale)
    assert all(name in str(v) for name in v.owners)


def test_str_survives_values_that_are_all_zero():
    assert len(table(str(valuation([0.0, 0.0], grand=0.0, empty=0.0)))) == 3
