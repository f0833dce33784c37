from __future__ import annotations

from dataclasses import astuple
from itertools import product

import numpy as np
import pytest

from dupre import Owners
from dupre.coalitions import all_coalitions
from dupre.gp import fit
from dupre.kernels import Features
from dupre.predictor import Form, Predictor, update
from dupre.sketch import SketchCache

N = 6
FORMS = [Form(*choice) for choice in product((1, 2), (0.5, 1.0), (0.2, 0.5, 0.8), (False, True))]


@pytest.fixture(scope="module")
def coalitions():
    """Features of 40 coalitions in random order, and what their rows add up to."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N * 10, 3)) + np.repeat(rng.normal(size=(N, 3)), 10, axis=0)
    owners = Owners.from_arrays(X, X @ [1.0, 2.0, 3.0], np.repeat(np.arange(N), 10))
    members = all_coalitions(N)[rng.permutation(2**N - 1)[:40]]
    return Features(members, owners.rows, SketchCache(owners, seed=0))


def smooth(coalitions):
    return 0.8 * (1 - np.exp(-(coalitions.members @ np.linspace(0.1, 1.0, N))))


def updated(earlier, inputs, utilities, choose_p=True):
    rng = np.random.default_rng(0)
    return update(earlier, inputs, utilities, spread=1.0, choose_p=choose_p, rng=rng)


def fitted(form, inputs, utilities, starts=4):
    rng = np.random.default_rng(0)
    warp = form.warp(utilities, 1.0)
    return fit(form.kernel(), inputs, utilities, warp=warp, starts=starts, rng=rng)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_neighbours_differ_in_one_choice_and_are_mutual(form):
    neighbours = form.neighbours()
    assert len(set(neighbours)) == len(neighbours) == 5
    for other in neighbours:
        assert sum(a != b for a, b in zip(astuple(form), astuple(other), strict=True)) == 1
        assert other in FORMS
        assert form in other.neighbours()


@pytest.mark.parametrize("seed", range(3))
def test_the_chosen_form_has_no_less_evidence_than_the_default(coalitions, seed):
    rng = np.random.default_rng(seed)
    inputs, utilities = coalitions[:25], smooth(coalitions[:25]) + rng.normal(0, 0.02, 25)
    chosen = updated(None, inputs, utilities)
    assert chosen.form in [Form(), *Form().neighbours()]
    assert chosen.gp.evidence >= fitted(Form(), inputs, utilities).evidence - 1e-9
    assert chosen.chosen_at == 25


@pytest.mark.parametrize("form", [Form(), Form(p=1), Form(rho=0.5), Form(eta=0.2)], ids=str)
def test_utilities_drawn_from_a_form_are_explained_by_it_or_better(coalitions, form):
    rng = np.random.default_rng(0)
    kernel = form.kernel()
    K = kernel.at_median(kernel.distances(coalitions, coalitions))(coalitions, coalitions)
    utilities = np.linalg.cholesky(K + 1e-4 * np.eye(len(K))) @ rng.normal(size=len(K))
    chosen = updated(None, coalitions, utilities)
    # A start near another form's optimum may find a slightly worse one: half a unit of evidence.
    assert chosen.gp.evidence >= fitted(form, coalitions, utilities).evidence - 0.5


def test_heavy_tails_are_bent_and_ordinary_utilities_without_a_scale_are_not(coalitions):
    utilities = smooth(coalitions)
    utilities[:2] = -10.0, -30.0
    chosen = updated(None, coalitions, utilities)
    assert chosen.form.curved
    assert chosen.gp.warp.curved
    assert not Form(curved=True).warp(np.ones(5), spread=2.0).curved
    assert Form(curved=True).warp(np.ones(5), spread=2.0).width == 2.0


def test_p_of_one_is_considered_only_when_asked(coalitions):
    inputs, utilities = coalitions[:20], smooth(coalitions[:20])
    earlier = Predictor(Form(rho=0.5), fitted(Form(rho=0.5), inputs, utilities, 1), 10)
    assert updated(None, inputs, utilities, choose_p=False).form.p == 2
    assert updated(earlier, inputs, utilities, choose_p=False).form.p == 2


@pytest.mark.parametrize(("now", "reconsidered"), [(21, False), (29, False), (30, True)])
def test_the_form_is_reconsidered_at_half_as_many_evaluations_again(coalitions, now, reconsidered):
    utilities = smooth(coalitions)
    utilities[:2] = -10.0, -30.0
    straight = fitted(Form(), coalitions[:20], utilities[:20], starts=1)
    later = updated(Predictor(Form(), straight, chosen_at=20), coalitions[:now], utilities[:now])
    assert len(later.gp.utilities) == now
    assert later.form.curved == reconsidered
    assert later.chosen_at == (now if reconsidered else 20)


def test_updating_from_an_earlier_predictor_of_the_same_evaluations_changes_nothing(coalitions):
    inputs, utilities = coalitions[:20], smooth(coalitions[:20])
    first = updated(None, inputs, utilities)
    again = updated(first, inputs, utilities)
    assert again.form == first.form
    assert again.gp.evidence == pytest.approx(first.gp.evidence, abs=1e-3)
    assert again.gp.evidence >= first.gp.evidence - 1e-9


def test_the_kernel_has_a_term_for_data_and_size_membership_and_worth():
    assert Form().kernel().label == "data × size + membership + linear"
