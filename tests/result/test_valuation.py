import pickle
from copy import copy, deepcopy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from dupre import InputError
from dupre.result.covariances import roots
from dupre.result.records import Evidence
from reporting import CHECK, DIAGNOSTICS, bare, change, notes, only_line


def valuation(mean, covariance=None, **others):
    mean = np.asarray(mean, dtype=float)
    n = len(mean)
    fields = {"mean": mean, "rows": np.arange(n) * 1000, "evaluated": 5, "diagnostics": None}
    fields["covariance"] = np.zeros((n, n)) if covariance is None else np.asarray(covariance)
    return bare(n, **fields | others)


@pytest.fixture
def uncertain():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    return valuation(rng.normal(size=5), root @ root.T, diagnostics=DIAGNOSTICS)


def test_probabilities_agree_with_draws_and_are_certain_where_differences_are(uncertain):
    rng = np.random.default_rng(1)
    draws = rng.multivariate_normal(uncertain.mean, uncertain.uncertainty.total, size=100_000)
    seen = np.mean(draws[:, :, None] > draws[:, None, :], axis=0)
    P = uncertain.probability_greater().to_numpy()
    error = np.sqrt(P * (1 - P) / len(draws))
    different = ~np.eye(5, dtype=bool)
    assert np.all(np.abs(seen - P)[different] < 4 * error[different])
    np.testing.assert_allclose(P + P.T, 1.0, atol=1e-12)
    np.testing.assert_array_equal(np.diag(P), 0.5)

    P = valuation([0.3, 0.1, 0.3]).probability_greater().to_numpy()
    np.testing.assert_array_equal(P, [[0.5, 1, 0.5], [0, 0.5, 0], [0.5, 1, 0.5]])
    P = valuation([1.0, 0.9], np.full((2, 2), 4.0)).probability_greater().to_numpy()
    np.testing.assert_array_equal(P, [[0.5, 1], [0, 0.5]])


def test_rank_ranges_hold_the_rank_and_shrink_with_the_covariance_and_the_level(uncertain):
    def ranges(shrunk, level=0.95):
        return valuation(uncertain.mean, shrunk * uncertain.uncertainty.total).rank_range(level)

    def width(shrunk, level=0.95):
        frame = ranges(shrunk, level)
        return frame["worst"] - frame["best"]

    rank = 1 + np.sum(uncertain.mean[:, None] > uncertain.mean, axis=0)
    for level in (0.6, 0.95, 0.999):
        assert np.all(ranges(1.0, level)["best"] <= rank)
        assert np.all(rank <= ranges(1.0, level)["worst"])
    for wide, narrow in pairwise([100.0, 1.0, 1e-2, 1e-4, 0.0]):
        assert np.all(width(narrow) <= width(wide))
    assert np.all(width(1.0, 0.7) <= width(1.0, 0.95))
    assert np.all(width(0.0) == 0)
    frame = valuation([0.2, 0.5, -0.1, 0.5]).rank_range()
    assert frame["best"].tolist() == [3, 1, 4, 1]
    assert frame["worst"].tolist() == [3, 2, 4, 2]


@pytest.mark.parametrize("level", [0.2, 0.5, 0.95])
def test_an_interval_holds_the_stated_probability(uncertain, level):
    bounds = uncertain.interval(level)
    law = norm(uncertain.values, uncertain.std)
    np.testing.assert_allclose(law.cdf(bounds["high"]) - law.cdf(bounds["low"]), level)
    np.testing.assert_allclose((bounds["high"] + bounds["low"]) / 2, uncertain.values)
    half = uncertain.uncertainty.spread().half_width(level)
    np.testing.assert_allclose(half, (bounds["high"] - bounds["low"]) / 2)
    np.testing.assert_array_equal(roots(-1e-18 * np.ones(2)), 0.0)
    frame = uncertain.to_frame(level)
    assert np.all(frame["best"] <= frame["worst"])

    np.testing.assert_allclose(uncertain.std**2, np.diag(uncertain.uncertainty.total))
    np.testing.assert_array_equal(valuation([1.0, 2.0], -1e-18 * np.eye(2)).std, 0.0)


@pytest.mark.parametrize("level", [0.0, 1.0, 95, -0.1, float("nan"), "a", None])
def test_a_level_that_is_no_probability_is_refused(uncertain, level):
    for ask in (uncertain.interval, uncertain.rank_range):
        with pytest.raises(InputError, match="between 0 and 1"):
            ask(level)


def test_share_and_gap_say_what_all_owners_add_if_they_add_anything():
    v = valuation([0.2, 0.6], grand=0.9, empty=0.1)
    np.testing.assert_allclose(v.share, [0.25, 0.75])
    assert v.efficiency_gap == pytest.approx(0.0)
    assert "add up" not in v.explain()
    v = valuation([0.2, 0.5], grand=0.9, empty=0.1)
    assert v.efficiency_gap == pytest.approx(0.1)
    assert "add up to 0.7" in v.explain()
    for grand in (0.4, 0.3):  # of a loss the worst would have the most
        v = valuation([0.2, -0.2], grand=grand, empty=0.4)
        assert v.share.isna().all()
        assert "–" in str(v)
        assert "nan" not in str(v)
        assert v.to_json().count('"share":null') == 2


def test_series_and_frames_are_indexed_by_owner(uncertain):
    names = list(uncertain.owners)
    for result in (uncertain.values, uncertain.std, uncertain.share, uncertain.interval()):
        assert result.index.tolist() == names
    assert uncertain.probability_greater().columns.tolist() == names
    frame = uncertain.to_frame(0.8)
    assert list(frame.columns) == [
        *("rows", "value", "std", "prediction_std", "noise_std", "sampling_std"),
        *("validation_std", "deal_std", "low", "high", "share", "best", "worst"),
    ]
    pd.testing.assert_frame_equal(frame[["low", "high"]], uncertain.interval(0.8))


def test_arrays_of_a_record_cannot_be_written_to_but_series_can():
    mean = np.array([0.2, 0.5])
    v, evidence = valuation(mean), Evidence(pd.DataFrame(), np.eye(2), np.eye(2))
    for again in (copy, deepcopy, lambda record: pickle.loads(pickle.dumps(record))):
        for own, known in ((v, evidence), (again(v), again(evidence))):
            np.testing.assert_array_equal(own.mean, mean)
            for array in (
                own.mean,
                own.uncertainty.total,
                own.rows,
                own.uncertainty.noise,
                known.distances,
            ):
                with pytest.raises(ValueError, match="read-only"):
                    array[0] = 99
    series = v.values
    series.iloc[0] = 99
    mean[0] = 99  # the array that was given is still its owner's
    assert v.values.tolist() == v.mean.tolist() == [0.2, 0.5]


def table(text):
    """Header and lines of the table: what stands between the first two empty lines."""
    return text.split("\n\n")[1].split("\n")


HOSTILE = ["[bold]x[/bold]", "名前 ✓", "%s {0} \\", "</td><script>", "value", "a" * 120, " b ", "0"]


def test_str_has_one_aligned_line_per_owner_for_values_of_any_size():
    mean = np.linspace(-0.3, 1234.5, len(HOSTILE))
    names = tuple(HOSTILE)
    v = valuation(mean, np.diag(np.geomspace(1e-6, 9.0, len(mean))), names=names)
    header, *lines = table(str(v))
    assert len({len(line) for line in (header, *lines)}) == 1
    for name, line in zip(reversed(names), lines, strict=True):
        assert line.startswith(name)
    right_of = [header.index(word) + len(word) for word in ("rows", "value", "interval", "share")]
    for line in lines:
        for end in right_of:
            assert line[end - 1] != " "
            assert line[end : end + 2] == "  "
    for scale in (1e-300, 1e-9, 1.0, 1e9):
        v = valuation(scale * np.array([1.0, -2.0, 0.0]), scale**2 * np.eye(3), grand=scale)
        assert all(name in str(v) for name in v.owners)
    assert len(table(str(valuation([0.0, 0.0], grand=0.0, empty=0.0)))) == 3


def coalitions(count):
    """Of growing size, the largest first."""
    return [tuple(f"o{i}" for i in range(size)) for size in range(count, 0, -1)]


def test_str_names_what_failed_and_counts_warnings_by_coalition():
    failures = {members: f"ValueError: reason {len(members)}" for members in coalitions(5)}
    line = only_line(valuation([0.2, 0.6], failures=failures, evaluated=12), "Beware: 5")
    assert line.startswith("Beware: 5 of 12 evaluations failed; predicted instead: {o0}, ")
    assert "{o0, o1, o2} and 2 more." in line
    assert line.endswith("The first, {o0, o1, o2, o3, o4}: ValueError: reason 5")
    v = valuation([0.2, 0.6], failures={("a\nb",): "timeout"})
    expected = "of 5 evaluations failed; predicted instead: {a\\nb}. The first, {a\\nb}: timeout"
    assert only_line(v, "Beware: 1") == f"Beware: 1 {expected}"

    warnings = {f"UserWarning: {k}": tuple(coalitions(6 - k)) for k in range(5)}
    v = valuation([0.2, 0.6], warnings=warnings, evaluated=1234)
    lines = [line for line in notes(v) if line.startswith("Warning")]
    assert len(lines) == 3
    few = "{o0}, {o0, o1}, {o0, o1, o2}"
    assert lines[0] == f"Warning in 6 of 1,234 evaluations ({few} and 3 more): UserWarning: 0"
    assert lines[2].endswith(f"evaluations ({few} and {{o0, o1, o2, o3}}): UserWarning: 2")


@pytest.mark.parametrize("part", [0.02, 0.25, 1.0])
def test_str_separates_noise_of_trainings_from_what_is_not_evaluated(uncertain, part):
    v = change(uncertain, noise=part * uncertain.uncertainty.total)
    line = only_line(v, "Of the variance")
    assert f"{100 * part:.0f} % is noise of trainings" in line
    rest = f"{100 - 100 * part:.0f} % is coalitions not evaluated"
    assert (rest in line) == (part < 1)


@pytest.mark.parametrize(
    ("error", "limit", "failed"),
    [(0.1, 0.101, False), (0.1, 0.1, True), (0.1, 0.0, True), (0.0, 0.0, False)],
)
def test_a_predictor_fails_when_its_error_reaches_the_limit(error, limit, failed):
    found = replace(CHECK, error=error, by_size=limit, limit=limit)
    assert found.failed == failed
    assert np.isnan(found.r2) == (limit == 0)


def test_a_comparison_of_two_owners_agrees_with_draws_and_can_be_turned_round(uncertain):
    rng = np.random.default_rng(2)
    draws = rng.multivariate_normal(uncertain.mean, uncertain.uncertainty.total, size=200_000)
    difference = draws[:, 3] - draws[:, 1]
    c = uncertain.compare("owner 3", "owner 1")
    assert c.difference == pytest.approx(uncertain.mean[3] - uncertain.mean[1])
    assert c.probability == pytest.approx(np.mean(difference > 0), abs=0.005)
    expected = np.quantile(difference, [0.025, 0.975])
    assert [c.low, c.high] == pytest.approx(expected, abs=0.02 * difference.std())
    turned, other = c.swap(), uncertain.compare("owner 1", "owner 3")
    assert (turned.one, turned.other) == (other.one, other.other)
    for number in ("probability", "difference", "low", "high"):
        assert getattr(turned, number) == pytest.approx(getattr(other, number))

    with pytest.raises(InputError, match=r"unknown owner 'owner' \(did you mean 'owner \d'"):
        uncertain.compare("owner 1", "owner")
    with pytest.raises(InputError, match="got 'owner 1' twice"):
        uncertain.compare("owner 1", "owner 1")
