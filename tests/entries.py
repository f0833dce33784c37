"""Random entries of weights as a list, however they are kept."""

import numpy as np

from dupre.game.weights import Entries


def list_entries(found):
    """Entries by columns as a list of them, n for each draw; a list as it is."""
    if isinstance(found, Entries):
        return found
    n, d = found.members.shape[1], len(found.draw)
    inside = found.members[found.column].T
    return Entries(
        owner=np.repeat(np.arange(n), d),
        coalition=np.tile(found.column, n),
        weight=np.where(inside, found.inside, found.outside).ravel(),
        unit=np.tile(found.draw, n),
        stratum=np.zeros(n * d, dtype=np.int64),
    )
