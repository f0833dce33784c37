"""Coalitions of six owners with made-up sketches, for tests of Gaussian processes."""

import numpy as np

from dupre.game.coalitions import all_coalitions
from dupre.predictor.kernel_inputs import Features

N = 6
ROWS = np.array([5, 8, 13, 20, 40, 90])


def features(members):
    """Any fixed vector per coalition will do for a sketch."""
    basis = np.random.default_rng(1).normal(size=(N, 8))

    def vectors(eta, p, C, view=(False, None)):
        return np.tanh((eta + view[0]) * C @ basis)

    return Features(members, ROWS, vectors)


def split(rng, evaluated=20):
    """Features of some evaluated and all other coalitions, and utilities of the evaluated."""
    order = rng.permutation(2**N - 1)
    every = features(all_coalitions(N))
    return every[order[:evaluated]], every[order[evaluated:]], rng.normal(size=evaluated)
