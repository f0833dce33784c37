"""The same data give the same picks and values whatever the CPU, its BLAS kernels and threads.

Each CPU is a process of its own: libraries choose their kernels when they are loaded.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import dupre
from owners_and_games import make_owners

CHILD = Path(__file__).parent / "value_games.py"
FEATURES = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
NEEDS = {"Nehalem": "SSE42", "Sandybridge": "AVX", "Haswell": "AVX2"}
CORES = [core for core, feature in NEEDS.items() if FEATURES.get(feature)]

# As a CPU without them, a feature of numpy's that this CPU lacks cannot be switched off.
VECTORS = ("X86_V4", "X86_V3", "AVX512_SKX", "AVX512F", "AVX2", "FMA3")
BASELINE = np._core._multiarray_umath.__cpu_baseline__  # type: ignore[attr-defined]
DISPATCHED = np._core._multiarray_umath.__cpu_dispatch__  # type: ignore[attr-defined]
PLAIN = " ".join(f for f in VECTORS if f in DISPATCHED and f not in BASELINE and FEATURES.get(f))

SETTINGS = [
    *({"OPENBLAS_CORETYPE": core, "OMP_NUM_THREADS": "1"} for core in CORES),
    {"OMP_NUM_THREADS": "2", "NPY_DISABLE_CPU_FEATURES": PLAIN},
]


def value_games(setting: dict[str, str]) -> dict[str, dict[str, object]]:
    """What the child finds under this setting: picks and values by game."""
    command, env = [sys.executable, "-W", "error", str(CHILD)], {**os.environ, **setting}
    run = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.slow
def test_every_cpu_picks_the_same_coalitions_and_finds_the_same_values_in_the_same_order():
    first, *others = map(value_games, SETTINGS)  # one test: the children run once
    for setting, found in zip(SETTINGS[1:], others, strict=True):
        for game, expected in first.items():
            where = f"{game}, {setting}"
            assert found[game]["picks"] == expected["picks"], where
            assert found[game]["order"] == expected["order"], where
            for what in ("values", "std"):
                numbers = np.array(expected[what])
                how = {"rtol": 0, "atol": 1e-6 * np.abs(numbers).max(), "err_msg": where}
                np.testing.assert_allclose(found[game][what], numbers, **how)


@pytest.mark.slow
def test_the_number_of_threads_changes_no_bit_of_values_with_sampled_coalitions():
    owners = make_owners(18)

    def find(threads):
        with threadpool_limits(threads, user_api="blas"):
            valuer = dupre.Valuer(owners, empty=0.0)
            for members in valuer.suggest(37):
                valuer.record(members, len(members) ** 0.5)
            found = valuer.values()
        return found.mean.tobytes(), found.uncertainty.total.tobytes()

    assert find(1) == find(2)
