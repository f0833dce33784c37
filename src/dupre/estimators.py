"""Which coalitions enter a value with which weights.

An estimator turns a semivalue and n into `Weights`; values are then linear in the utilities:

    values = W @ u(coalitions) + empty * u(empty)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dupre.coalitions import all_coalitions
from dupre.semivalues import Semivalue
from dupre.typing import Floats, Members


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of coalitions in the values of n owners.

    Attributes:
        members: non-empty coalitions, (b, n).
        W: weight of each in the value of each owner, (n, b).
        empty: weight of the empty coalition, the same for every owner.
    """

    members: Members
    W: Floats
    empty: float


def exact(semivalue: Semivalue, n: int) -> Weights:
    """Every coalition with its weight in DUPRE Prop. 3: the exact value once all are known."""
    members = all_coalitions(n)
    return Weights(members, coalition_weights(semivalue, members), empty_weight(semivalue, n))


def coalition_weights(semivalue: Semivalue, members: Members) -> Floats:
    """W, (n, b): omega_(|C| - 1) where i is in C, -omega_|C| where it is not."""
    n = members.shape[1]
    omega = np.exp(semivalue.log_weights(n))
    size = members.sum(axis=1)
    joining = omega[size - 1]
    staying_out = np.append(omega, 0.0)[size]  # nobody is outside the grand coalition
    return np.asarray(np.where(members.T, joining, -staying_out))


def empty_weight(semivalue: Semivalue, n: int) -> float:
    """-omega_0."""
    return -float(np.exp(semivalue.log_weights(n)[0]))
