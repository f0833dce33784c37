"""What each data owner's data is worth, with honest uncertainty, after training a few models.

Names are imported on first use, so that `import dupre` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dupre.diagnostics import Diagnostics
    from dupre.errors import DupreError, EvaluationError, InputError, Interrupted
    from dupre.owners import Owners
    from dupre.semivalues import Semivalue, banzhaf, beta_shapley, leave_one_out, shapley
    from dupre.utility import ModelUtility
    from dupre.valuer import Valuer, value
    from dupre.values import Valuation

__version__ = "0.1.0"

__all__ = [
    "Diagnostics",
    "DupreError",
    "EvaluationError",
    "InputError",
    "Interrupted",
    "ModelUtility",
    "Owners",
    "Semivalue",
    "Valuation",
    "Valuer",
    "banzhaf",
    "beta_shapley",
    "leave_one_out",
    "shapley",
    "value",
]

_MODULE_OF = {
    "Diagnostics": "diagnostics",
    "DupreError": "errors",
    "EvaluationError": "errors",
    "InputError": "errors",
    "Interrupted": "errors",
    "ModelUtility": "utility",
    "Owners": "owners",
    "Semivalue": "semivalues",
    "Valuation": "values",
    "Valuer": "valuer",
    "banzhaf": "semivalues",
    "beta_shapley": "semivalues",
    "leave_one_out": "semivalues",
    "shapley": "semivalues",
    "value": "valuer",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'dupre' has no attribute {name!r}")
    return getattr(import_module(f"dupre.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
