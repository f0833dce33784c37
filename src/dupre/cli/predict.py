"""`dupre predict`: the utility of a coalition without training it."""

from __future__ import annotations

from typing import Annotated

from dupre.cli import options as o
from dupre.cli.output import Place, about_a_run, print_json


@about_a_run
def predict(
    place: Place,
    members: Annotated[list[str], o.MEMBERS],
    json: Annotated[bool, o.JSON] = False,
) -> None:
    """Predict the utility of a coalition without training it."""
    from dupre.result.as_text import format_predictions
    from dupre.runs.external import parse_members
    from dupre.runs.values import stored_valuer

    directory, run = place.open()
    directory.check_store()
    coalitions = [parse_members(text, run.owners.names) for text in members]
    with directory.name_errors():
        found = stored_valuer(run, directory.store).predict(coalitions)
    if json:
        print_json(found.to_dict("records"))
    else:
        print(format_predictions(found))
