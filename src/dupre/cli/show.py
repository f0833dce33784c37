"""`dupre show`: the values of a run again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from dupre.cli import options as o
from dupre.cli.output import Place, Printing, about_a_run, prints_values, say
from dupre.notes import Code, note

if TYPE_CHECKING:
    from dupre.result.valuation import Valuation

UNFINISHED = note(Code.UNFINISHED, "the run is not finished; these are the values so far.")


@about_a_run
@prints_values
def show(
    place: Place,
    printing: Printing,
    semivalue: Annotated[list[str] | None, o.MORE_SEMIVALUE] = None,
) -> None:
    """Print the values of a run again, or those so far if it is not finished.

    With --semivalue, the values by that name alone, from the trainings there are.
    """
    from dupre.runs.directory import RunDirectory

    valuations, _ = results_so_far(place, semivalue)
    directory = RunDirectory(place.run)
    printing.print(valuations, directory)
    if directory.report.is_file() and not printing.json:
        say(f"Page: {directory.report}")
    printing.end(valuations)


def results_so_far(
    place: Place, semivalue: list[str] | None = None
) -> tuple[list[Valuation], bool]:
    """The last result; computed if trainings were stored since, or for other semivalues.

    And whether it is final: nobody is paid by the values of a run that is not finished.
    """
    from dupre.runs.directory import RunDirectory
    from dupre.runs.values import stored_values

    directory = RunDirectory(place.run)
    if not (behind := directory.is_behind) and semivalue is None:
        return directory.results(), True
    directory.check_store()  # opening a store that is gone would make an empty one
    directory, run = place.open()
    run = run if semivalue is None else run.with_semivalues(semivalue)
    with directory.name_errors():
        return stored_values(run, directory.store, *[UNFINISHED] * behind), not behind
