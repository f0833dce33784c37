"""From a file to owners, validation rows and a model; for the command and for Python.

`read` finds and joins files, `formats` and `csv_json` read one of them, `columns` says what its
columns hold, `roles` checks the owner and target columns. `holdout` keeps rows for validation,
`preprocessing` and `models` build what is trained, `user_code` loads a user's own code.

The names below are for users (docs/tables.md). They are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dupre.tables.columns import Columns, columns_of
    from dupre.tables.holdout import hold_out
    from dupre.tables.models import Model, embed_for, metric, model
    from dupre.tables.preprocessing import preprocessor
    from dupre.tables.read import read_table, read_validation

__all__ = [
    "Columns",
    "Model",
    "columns_of",
    "embed_for",
    "hold_out",
    "metric",
    "model",
    "preprocessor",
    "read_table",
    "read_validation",
]

_MODULE_OF = {
    "Columns": "columns",
    "Model": "models",
    "columns_of": "columns",
    "embed_for": "models",
    "hold_out": "holdout",
    "metric": "models",
    "model": "models",
    "preprocessor": "preprocessing",
    "read_table": "read",
    "read_validation": "read",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'dupre.tables' has no attribute {name!r}")
    return getattr(import_module(f"dupre.tables.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
