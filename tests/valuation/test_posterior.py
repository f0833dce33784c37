"""What researchers look at: the joint posterior, the learned forms, distances and kernel matrices.

Against formulas written out here, and POT.
"""

import numpy as np
import ot
import pytest

import dupre
from dupre import kernels
from dupre.data.sketch import Resolution, unit_directions
from dupre.game.coalitions import from_names
from owners_and_games import make_owners, record, smooth

GAME = smooth(make_owners(6))
NAMES = GAME.owners.names
ASKED = [NAMES[:2], NAMES[1:4], NAMES[:1], NAMES[2:]]


def recorded(**options):
    valuer = dupre.Valuer(GAME.owners, empty=GAME.empty, **options)
    record(valuer, {members: GAME.of(members) for members in valuer.suggest(13)})
    return valuer


def membership(gamma, A, B):
    return np.exp(-gamma * (A[:, None] != B).sum(axis=2))


def test_a_plain_joint_posterior_is_that_of_the_formula():
    kernel, noise, mean = 0.7 * kernels.Membership(gamma=0.2), 1e-3, kernels.Constant(0.3)
    fixed = ("gamma", "variance")
    prior = kernels.Prior(kernel, mean=mean, fixed=fixed, noise=noise, plain=True)
    valuer = recorded(kernel=prior)
    seen = np.array([from_names(members, NAMES) for members in valuer.evaluations])
    u = np.array(list(valuer.evaluations.values()))
    asked = np.array([from_names(members, NAMES) for members in ASKED])
    K = 0.7 * membership(0.2, seen, seen) + noise * np.eye(len(seen))
    across = 0.7 * membership(0.2, seen, asked)
    posterior = 0.7 * membership(0.2, asked, asked) - across.T @ np.linalg.solve(K, across)
    found = valuer.posterior(ASKED)
    known = valuer.predict(ASKED)["evaluated"].to_numpy()
    new = ~known
    assert found.coalitions == tuple(ASKED)
    assert found.mean[new] == pytest.approx(
        (0.3 + across.T @ np.linalg.solve(K, u - 0.3))[new], abs=1e-8
    )
    # Utilities are standardised: the formula is relative to the square of their scale.
    scale = valuer.state.beliefs.predictor.gp.scale.warp.width**2
    assert found.covariance[np.ix_(new, new)] == pytest.approx(
        scale * posterior[np.ix_(new, new)], rel=1e-6
    )
    assert not found.covariance[known].any()
    assert found.mean[known] == pytest.approx(u[[list(valuer.evaluations).index(NAMES[:1])]])


def test_a_joint_posterior_agrees_with_predictions_and_is_a_covariance(all_forms):
    valuer = recorded()
    found, predicted = valuer.posterior(ASKED), valuer.predict(ASKED)
    assert found.mean == pytest.approx(predicted["utility"].to_numpy())
    assert np.sqrt(np.diag(found.covariance)) == pytest.approx(predicted["std"].to_numpy())
    assert found.covariance == pytest.approx(found.covariance.T)
    assert np.linalg.eigvalsh(found.covariance)[0] > -1e-12
    again = valuer.posterior(ASKED[::-1])
    assert again.covariance[::-1, ::-1] == pytest.approx(found.covariance, rel=1e-6)
    assert valuer.posterior([]).covariance.shape == (0, 0)


def test_a_matrix_of_too_many_coalitions_and_of_no_utility_are_refused():
    with pytest.raises(dupre.InputError, match=r"4,097 coalitions .* at most 4,096"):
        recorded().posterior([NAMES[:1]] * 4_097)
    with pytest.raises(dupre.InputError, match="no utility to learn from"):
        dupre.Valuer(GAME.owners, empty=0.0).posterior(ASKED)


def test_forms_are_those_that_predict_and_the_likelihood_is_that_of_the_formula(all_forms):
    valuer = recorded()
    found = valuer.forms()
    assert found["weight"].sum() == pytest.approx(1)
    assert found["weight"].is_monotonic_decreasing
    predictor = valuer.state.beliefs.predictor
    assert len(found) == len(predictor.fits) > 3
    # Without a prior on hyper-parameters nor a curved scale: RW06 Eq. 5.8 for utilities.
    kernel, noise = 0.7 * kernels.Membership(gamma=0.2), 1e-3
    fixed = {"fixed": ("gamma", "variance"), "noise": noise, "plain": True}
    plain = recorded(kernel=kernels.Prior(kernel, mean=kernels.Constant(0.3), **fixed))
    (row,) = plain.forms().to_dict("records")
    assert row["kernel"] == kernel
    assert (row["weight"], row["curved"], row["noise"]) == (1.0, False, pytest.approx(noise))
    seen = np.array([from_names(members, NAMES) for members in plain.evaluations])
    u = np.array(list(plain.evaluations.values())) - 0.3
    scale = plain.state.beliefs.predictor.gp.scale.warp.width
    K = scale**2 * (0.7 * membership(0.2, seen, seen) + noise * np.eye(len(seen)))
    density = -u @ np.linalg.solve(K, u) / 2 - np.linalg.slogdet(2 * np.pi * K)[1] / 2
    assert row["log_likelihood"] == pytest.approx(density, abs=1e-8)


@pytest.mark.parametrize("p", [1, 2])
def test_distances_of_coalitions_are_those_of_pot(p):
    owners = make_owners(4, rows=150)
    valuer = dupre.Valuer(owners, empty=0.0, seed=3)
    coalitions = [owners.names[:1], owners.names[1:3], owners.names[:3]]
    kernel = kernels.RawSlicedWasserstein(p=p, eta=0.6)
    x = valuer.features(coalitions)
    found = kernel.distance(x, x)
    centred = owners.y - np.median(owners.y)
    rows = np.column_stack([0.6 * owners.X, 0.4 * centred])
    theta = unit_directions(3, Resolution().directions, 3)
    held = [rows[from_names(members, owners.names)[owners.owner]] for members in coalitions]
    expected = np.array(
        [[ot.sliced_wasserstein_distance(a, b, projections=theta, p=p) for b in held] for a in held]
    )
    assert found == pytest.approx(expected**p, rel=0.02, abs=1e-12)
    whole = 2.0 * kernel
    gamma = whole.kernel.gamma
    assert whole(x, x) == pytest.approx(2.0 * np.exp(-gamma * found))


def test_membership_and_size_compare_owners_and_rows():
    valuer = dupre.Valuer(GAME.owners, empty=0.0)
    x, rows = valuer.features(ASKED), GAME.owners.rows
    M = np.array([from_names(members, NAMES) for members in ASKED])
    assert (kernels.Membership().distance(x, x) == (M[:, None] != M).sum(axis=2)).all()
    sizes = np.log1p(M @ rows)
    assert kernels.Size().distance(x, x) == pytest.approx((sizes[:, None] - sizes) ** 2)
