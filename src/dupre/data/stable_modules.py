"""Stable module names for dupre's own classes and functions, so that stored digests stay valid."""

from __future__ import annotations

import types

STABLE_MODULES = {
    "dupre.cli.models": ("NearestClassifier", "NearestRegressor", "embed_for"),
    "dupre.cli.preprocessing": ("as_levels", "as_numbers"),
    "dupre.errors": (
        "DupreError",
        "EvaluationError",
        "InputError",
        "Interrupted",
        "StoreError",
    ),
    "dupre.estimators": (
        "antithetic",
        "exact",
        "group_testing",
        "maximum_sample_reuse",
        "one_for_all",
        "permutation",
        "stratified",
        "stratified_svarm",
        "structured",
        "svarm",
    ),
    "dupre.interchange": ("from_game", "from_table", "read_evaluations", "to_game"),
    "dupre.model_free": ("DataVolume", "InformationGain"),
    "dupre.owners": ("Owners",),
    "dupre.payments": ("LeastCore",),
    "dupre.progress": ("Progress",),
    "dupre.records": ("Comparison", "Diagnostics", "Evidence", "Subsidy", "Validation"),
    "dupre.regression": ("regression",),
    "dupre.run": ("value",),
    "dupre.semivalues": (
        "Semivalue",
        "_banzhaf",
        "_beta",
        "_leave_one_out",
        "_shapley",
        "beta_shapley",
    ),
    "dupre.stopping": (
        "Rule",
        "evaluated",
        "ranking_settled",
        "settled",
        "wall_time",
        "within",
    ),
    "dupre.utility": ("ModelUtility",),
    "dupre.valuer": ("Valuer",),
    "dupre.values": ("Valuation",),
}
"""The module that digests state for each of dupre's own classes and functions.

It is the module where each was first published, wherever it is now. Stores hold digests, so these
names never change. What is not listed is stated as a member of `dupre`.
"""

_STABLE_MODULE_OF = {name: module for module, names in STABLE_MODULES.items() for name in names}


def stable_module(thing: type | types.FunctionType) -> str | None:
    """The module that a digest states for a class or a function; None if it has none."""
    module: str | None = thing.__module__
    if module is None or module.partition(".")[0] != "dupre":
        return module
    return _STABLE_MODULE_OF.get(thing.__qualname__.partition(".")[0], "dupre")
