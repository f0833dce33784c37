from itertools import combinations, pairwise

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import dupre
from dupre import InputError, plots
from dupre.report.plots import _place_in_plane
from dupre.result.records import Evidence
from refusals import refused
from reporting import HOSTILE, bare, change, exact, least_core, three_results, valuation

FIGURES = [
    *(plots.values, plots.ranking, plots.utilities, plots.predictions, plots.distances),
    *(plots.owner_map, plots.uncertainty),
]


def axes():
    return Figure(figsize=(4.8, 4), layout="constrained").add_subplot()


def labels(ax, which="y"):
    return [label.get_text() for label in getattr(ax, f"get_{which}ticklabels")()]


@pytest.mark.parametrize("draw", FIGURES, ids=lambda draw: draw.__name__)
def test_every_figure_is_drawn_into_the_axes_given(draw):
    for n in (2, 60):
        ax = axes()
        assert draw(valuation(n), ax=ax) is ax
        ax.figure.draw_without_rendering()
        assert ax.has_data()


@pytest.mark.parametrize("size", [1e-5, 0.003, 0.004, 0.02, 0.7, 40.0, 4e4])
def test_numbers_below_the_values_do_not_touch(size):
    names = [f"a long name of a hospital {i}" for i in range(6)]
    v = valuation(
        names=names, mean=np.linspace(-size, size, 6), covariance=size**2 / 50 * np.eye(6)
    )
    ax = Figure(figsize=(4.8, 3), dpi=72, layout="constrained").add_subplot()
    plots.values(v, ax=ax).figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    left, right = ax.get_xlim()
    boxes = [b for b, at in zip(boxes, ax.get_xticks(), strict=True) if left <= at <= right]
    assert len(boxes) >= 2
    assert all(other.x0 - one.x1 > 4 for one, other in pairwise(boxes))


def test_without_axes_a_pyplot_figure_is_made_and_with_them_none():
    matplotlib.use("Agg")
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    plots.values(valuation(), ax=axes())
    assert pyplot.get_fignums() == before
    ax = plots.values(valuation())
    assert pyplot.figure(pyplot.get_fignums()[-1]) is ax.figure
    pyplot.close(ax.figure)


def test_values_are_sorted_with_their_intervals_and_of_many_some_are_shown():
    v = valuation(6)
    ax = plots.values(v, axes())
    assert labels(ax) == list(v.values.sort_values(ascending=False).index)
    segments = [s for c in ax.collections for s in c.get_segments()]
    ends = sorted((float(s[:, 0].min()), float(s[:, 0].max())) for s in segments)
    assert np.allclose(ends, sorted(map(tuple, v.interval().to_numpy())))
    assert "payment" in plots.values(least_core(), axes()).get_xlabel()
    assert "payment" not in plots.values(valuation(), axes()).get_xlabel()

    v = valuation(100)
    ax = plots.values(v, axes())
    order = list(v.values.sort_values(ascending=False).index)
    assert labels(ax) == order[:20] + order[-20:]
    assert ax.get_title() == "The 20 greatest and 20 smallest of 100 values"


@pytest.mark.parametrize(("n", "named"), [(25, 25), (26, 13), (300, 25)])
def test_labels_of_a_matrix_are_thinned_out(n, named):
    ax = plots.ranking(valuation(n), axes())
    assert len(labels(ax)) == len(labels(ax, "x")) == named
    assert ("named" in ax.get_title()) == (named < n)


def test_a_matrix_tells_probabilities_or_distances_where_there_is_room():
    v = valuation(5)
    P = 100 * v.probability_greater().to_numpy()
    shown = {(round(t.get_position()[1]), round(t.get_position()[0])): t.get_text()
             for t in plots.ranking(v, axes()).texts}  # fmt: skip
    assert len(shown) == 20
    for (i, j), text in shown.items():
        if text in (">99", "<1"):
            assert (P[i, j] >= 99.5) if text == ">99" else (P[i, j] < 0.5)
        else:
            assert 1 <= int(text) <= 99
            assert int(text) == pytest.approx(P[i, j], abs=0.51)
    assert not plots.ranking(valuation(13), axes()).texts
    assert {t.get_text() for t in plots.ranking(exact(), axes()).texts} == {"0", "100"}

    v = valuation(3)
    matrix = np.array([[0, 1, 2], [1, 0, 4], [2, 4, 0.0]])
    v = change(v, evidence=Evidence(v.facts.evidence.coalitions, matrix, np.eye(3)))
    ax = plots.distances(v, axes())
    assert sorted(t.get_text() for t in ax.texts) == sorted(["50", "100", "200"] * 2)


@pytest.mark.parametrize("draw", [plots.values, plots.ranking, plots.owner_map])
def test_names_are_never_read_as_mathematics(draw):
    ax = draw(valuation(names=HOSTILE), axes())
    texts = [*ax.get_yticklabels(), *ax.get_xticklabels(), *ax.texts]
    named = [text for text in texts if "$" in text.get_text()]
    assert named
    assert not any(text.get_parse_math() for text in named)


def test_long_names_lose_their_middle_and_control_characters_are_spelled_out():
    shown = labels(plots.values(valuation(names=HOSTILE), axes()))
    assert all(len(label) <= 22 and label.isprintable() for label in shown)
    assert "x" * 11 + "…" + "x" * 10 in shown
    assert "two\\nlines\\tand a tab" in shown


def test_the_map_keeps_distances_and_equal_owners_share_a_label_that_overlaps_no_other():
    v = valuation(4)
    matrix = v.facts.evidence.distances.copy()
    matrix[3], matrix[:, 3] = matrix[0], matrix[:, 0]
    matrix[3, 3] = matrix[0, 3] = matrix[3, 0] = 0.0
    v = change(v, evidence=Evidence(v.facts.evidence.coalitions, matrix, np.eye(4)))
    shown = {text.get_text() for text in plots.owner_map(v, axes()).texts}
    assert shown == {"owner 0 and owner 3", "owner 1", "owner 2"}

    v = valuation(names=[f"a place with a name {i}" for i in range(37)])
    ax = axes()
    plots.owner_map(v, ax)
    boxes = [text.get_window_extent() for text in ax.texts]
    assert 5 <= len(boxes) < 37
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    assert ax.get_title() == "37 owners; named where there is room"

    points = np.random.default_rng(0).normal(size=(9, 2))
    distances = np.linalg.norm(points[:, None] - points, axis=-1)
    found = _place_in_plane(distances)
    assert np.allclose(np.linalg.norm(found[:, None] - found, axis=-1), distances)
    assert np.array_equal(found, _place_in_plane(distances))


@pytest.mark.parametrize("n", [2, 3])
def test_owners_all_in_one_place_are_drawn(n):
    v = valuation(n)
    same = Evidence(v.facts.evidence.coalitions, np.zeros((n, n)), np.ones((n, n)))
    for draw in (plots.owner_map, plots.distances):
        draw(change(v, evidence=same), axes()).figure.draw_without_rendering()


def test_trained_and_predicted_utilities_are_drawn_apart_and_a_forecast_follows_the_rounds():
    v = valuation(6)
    frame = v.facts.evidence.coalitions
    lines = {line.get_label(): line for line in plots.utilities(v, axes()).lines}
    assert len(lines["trained"].get_xdata()) == frame["utility"].notna().sum()
    assert len(lines["predicted"].get_xdata()) == frame["utility"].isna().sum()
    many = pd.concat([v.facts.evidence.coalitions.head(30)] * 100, ignore_index=True)
    v = change(v, evidence=Evidence(many, v.facts.evidence.distances, v.facts.evidence.shared))
    ax = plots.predictions(v, axes())
    assert ax.get_title() == "500 of 3000 trained coalitions"

    reached, ahead = plots.uncertainty(valuation(), axes()).lines
    assert ahead.get_linestyle() == "--"
    assert reached.get_xydata()[-1] == pytest.approx(ahead.get_xydata()[0])


def drawn(ax):
    """Points that a figure of history has, as (value, place), and the values of interval ends."""
    points = [
        (float(x), float(y))
        for container in ax.containers
        for x, y in container.lines[0].get_xydata()
    ]
    segments = [s for c in ax.collections for s in c.get_segments() if len(s)]
    return points, [(float(s[0, 0]), float(s[1, 0])) for s in segments if not np.isnan(s).any()]


def test_a_history_has_the_interval_of_every_value_and_marks_who_joined_and_left():
    results = three_results()
    found = dupre.history(results)
    ax = plots.history(found, axes())
    ax.figure.draw_without_rendering()
    assert labels(ax) == list(found.owners)
    frame = found.to_frame()
    known = frame[frame["value"].notna()]
    points, ends = drawn(ax)
    assert np.allclose(sorted(ends), sorted(zip(known["low"], known["high"], strict=True)))
    place = {name: -4.0 * i for i, name in enumerate(found.owners)}  # three results and a gap
    expected = [
        (row.value, place[row.owner] - row.result + 1) for row in known.itertuples(index=False)
    ]
    # Who left is marked at its last value, below it.
    gone = (float(results[1].values["owner 0"]), place["owner 0"] - 2)
    assert np.allclose(sorted(points), sorted([*expected, gone]))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        *("joined", "rows changed", "left")
    ]
    assert ax.get_title() == "Results 1 to 3, from top to bottom"
    same = plots.history(dupre.history(results[:1] * 2), axes())
    assert same.get_legend() is None


def test_of_a_long_history_of_many_owners_some_are_drawn_and_names_are_no_mathematics():
    v = valuation(30)
    ax = plots.history(dupre.history([v] * 9), axes())
    ax.figure.draw_without_rendering()
    order = [v.owners[i] for i in v.order]
    assert labels(ax) == order[:10] + order[-10:]
    assert len(drawn(ax)[0]) == 100
    assert ax.get_title() == "Results 5 to 9, from top to bottom, 20 of 30 owners"
    ax = plots.history(dupre.history([valuation(names=HOSTILE)] * 2), axes())
    assert not any(text.get_parse_math() for text in ax.get_yticklabels() if "$" in text.get_text())


def test_a_figure_of_history_is_written_as_its_name_says_or_not_at_all(tmp_path):
    found = dupre.history(three_results())
    for name, start in (("a.png", b"\x89PNG"), ("b.svg", b"<?xml"), ("c.PDF", b"%PDF")):
        plots.save_history(found, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    refused("ends in .png, .svg or .pdf, got", plots.save_history, found, tmp_path / "d.jpg")
    refused("cannot be written", plots.save_history, found, tmp_path / "nowhere/d.png")
    assert {file.name for file in tmp_path.iterdir()} == {"a.png", "b.svg", "c.PDF"}


def test_what_cannot_be_drawn_says_why():
    for draw, v, why in (
        (plots.utilities, bare(), "holds no evidence"),
        (plots.distances, bare(), "holds no evidence"),
        (plots.owner_map, bare(), "holds no evidence"),
        (plots.predictions, exact(), "nothing was predicted"),
        (plots.uncertainty, bare(), "does not record how its uncertainty fell"),
    ):
        with pytest.raises(InputError, match=why):
            draw(v, axes())
