"""From a file to owners, validation rows and a model; for the command and for Python.

`read` finds and joins files, `formats` reads one of them, `numbers` reads numbers and dates as
people write them, `columns` says what a column holds, `features` which ones models are given,
`roles` checks the owner and target columns, `folds` splits rows, `preprocessing` and `models` build
what is trained, `user_code` loads a user's own code.

The names below are for users (docs/tables.md).
"""

from dupre.spec import Data
from dupre.tables.features import Columns, columns_of
from dupre.tables.models import Model, embed_for, metric, model
from dupre.tables.preprocessing import preprocessor
from dupre.tables.read import read_table, read_validation

__all__ = [
    "Columns",
    "Data",
    "Model",
    "columns_of",
    "embed_for",
    "metric",
    "model",
    "preprocessor",
    "read_table",
    "read_validation",
]
