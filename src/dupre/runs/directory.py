"""A run directory: everything of one run in one place, and nothing anywhere else.

    config.toml    what was asked for
    store.sqlite   every training, the moment it was finished
    result.json    the values and all that belongs to them (docs/result.md)
    values.csv     the values for a spreadsheet
    report.html    a page to pass on
    payments.csv   what each owner is paid, once `dupre pay` has been asked
    ledger.jsonl   every payment that was booked (module `ledger`)
    quotes.json    what owners who had not joined would be worth
    report.pdf, values.xlsx   the page printed, and a workbook, if they were asked for

    history/N      a result or payments that others took the place of

Files are replaced as a whole and together: a reader never sees half of one, and if one cannot be
written all old ones stay. Only a kill at that moment may leave new files beside old ones. Nothing
here is a pickle, but config.toml names code: see `trust`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfile

import pandas as pd
from msgspec.structs import asdict, replace

from dupre.errors import DupreError, InputError, Interrupted
from dupre.files import replace_text, replace_texts
from dupre.report.document import Heading, read_logo
from dupre.result.as_text import failed_alone_are_left, seconds_each
from dupre.result.payments import Payments
from dupre.result.valuation import Valuation
from dupre.runs.ledger import Ledger, read_ledger, with_paid
from dupre.runs.results import read_history, read_quotes, read_results, result_text
from dupre.spec import Payment, Spec, dumps, loads
from dupre.store.frames import read_evaluations
from dupre.store.locks import FileLock
from dupre.wording import FORMULA, in_minutes, spell_out


class RunDirectory:
    """The directory of one run.

    Attributes:
        path: of the directory.
        config, store, result, table, report, payments, ledger, quotes, pdf, workbook: its files.

    Raises:
        InputError: one of its files is a link, which may point elsewhere.
    """

    def __init__(self, path: Path):
        self.path = path
        self.config, self.store = path / "config.toml", path / "store.sqlite"
        self.result, self.table = path / "result.json", path / "values.csv"
        self.report, self.payments = path / "report.html", path / "payments.csv"
        self.ledger = path / "ledger.jsonl"
        self.quotes = path / "quotes.json"
        self.pdf, self.workbook = path / "report.pdf", path / "values.xlsx"
        # A directory may come from elsewhere; by a link it could have us overwrite any file.
        for file in path.iterdir() if path.is_dir() else ():
            if file.is_symlink():
                raise InputError(
                    f"{file.name} in {str(self)!r} is a link; a run directory holds its own files, "
                    "remove the link or take another directory"
                )

    def __str__(self) -> str:
        return str(self.path)

    def command(self, verb: str, *options: str) -> str:
        """A command about this directory, quoted for a shell."""
        return shlex.join(["dupre", verb, str(self), *options])

    def way_on(self, v: Valuation) -> str:
        """The command that trains more; for trainings done elsewhere that which says what."""
        again = failed_alone_are_left(v)
        if self.spec().is_external:
            # What failed is not suggested again.
            return self.command(*(("record", "FILE") if again else ("suggest",)))
        if again:
            return self.command("resume", "--retry-failures")
        return self.command("resume", "--budget", f"+{len(v.owners)}") + self._expected(v)

    def _expected(self, v: Valuation) -> str:
        """What as many more trainings as there are owners take, and cost; "" if it is little."""
        seconds = len(v.owners) * seconds_each(v)
        if not (minutes := in_minutes(seconds)):
            return ""
        price = self.spec().machine.hourly
        cost = "" if price is None else f", {price.of(seconds)}"
        return f" ({minutes}{cost})"

    def check_store(self) -> None:
        """Raise InputError if there is a result, but its trainings are gone."""
        if not self.store.is_file() and self.result.is_file():
            raise InputError(
                f"the trainings of {str(self)!r} are gone: it has a result, but no "
                f"{self.store.name}; put that file back, or train again in another directory with "
                "--run OTHER"
            )

    def with_history(self, spec: Spec) -> Spec:
        """The spec with the history of the run here; InputError if that is another run."""
        if self.config.is_file():
            before = self.spec()
            if conflict := before.conflict(spec):
                verb = "suggest" if before.is_external else "resume"
                raise InputError(
                    f"{str(self)!r} holds another run ({conflict}); go on with "
                    f"`{self.command(verb)}`, or choose another directory with --run"
                )
            return replace(spec, history=before.history, page=before.page, payment=before.payment)
        # A run that was killed while it was set up may have left these.
        ours = ("store.sqlite", ".config.toml", ".lock")
        if self.path.is_dir() and not all(f.name.startswith(ours) for f in self.path.iterdir()):
            raise InputError(
                f"{str(self)!r} holds other files and no run of dupre; choose another directory "
                "with --run"
            )
        return spec

    def write_spec(self, spec: Spec) -> None:
        """Write down what is asked for, inside `lock`."""
        replace_text(self.config, dumps(spec))

    def spec(self) -> Spec:
        """What was asked for; InputError if it is no run directory, or of another version."""
        if not self.config.is_file():
            what = "there is no directory" if not self.path.exists() else "no run is kept in"
            raise InputError(
                f"{what} {str(self)!r}; expected the run directory that `dupre value` or "
                "`dupre init` made"
            )
        return read_spec(self.config)

    def results(self) -> list[Valuation]:
        """The valuations of the last result; InputError if there is none, or it is damaged."""
        self.spec()  # is it a run at all, and of this version?
        if not self.result.is_file():
            raise InputError(f"{str(self)!r} has no result yet; go on with `{self.renewal}`")
        try:
            return read_results(self.result)
        except InputError as cause:
            raise InputError(
                f"{str(self.result)!r}: {cause}; `{self.renewal}` makes it again from the store"
            ) from cause

    def earlier_results(self, present: Sequence[Valuation] = ()) -> dict[str, Path]:
        """Files of the results before the last one, in the order of time, by their names here.

        And that of the last one, if there is a present one that says something else.
        """
        files = [self._history / str(number) / self.result.name for number in self._numbers()]
        files = [file for file in files if file.is_file()]
        if present and self.table.is_file() and not _holds(self.table, spreadsheet(present)):
            files.append(self.result)
        return {file.relative_to(self.path).as_posix(): file for file in files}

    @property
    def renewal(self) -> str:
        """The command that makes the result from the store."""
        external = self.spec().is_external
        return self.command("record", "FILE") if external else self.command("resume")

    def write_results(self, valuations: Sequence[Valuation]) -> Path | None:
        """Write the result, the table, the page and the payments by the terms of `dupre pay`.

        Returns:
            where the files before are kept; None if there were none, or they say the same.
        """
        texts = {self.result: result_text(valuations), self.table: spreadsheet(valuations)}
        return self._replace(texts | self._pages(valuations, self.spec()))

    def _replace(self, texts: Mapping[Path, str | None]) -> Path | None:
        """Replace files, or remove those without a text; where those before are kept, if any."""
        # Of a result only its table is compared: the JSON also tells times and versions.
        compared = [file for file in (self.table, self.payments) if file in texts]
        old = [file for file in compared if file.is_file() and not _holds(file, texts[file])]
        old += [self.result] if self.table in old and self.result.is_file() else []
        kept = self._keep(old) if old else None  # before anything is replaced
        gone = [file for file, text in texts.items() if text is None]
        # They would say something else than the page, and are made again in a moment.
        gone += [] if _holds(self.report, texts[self.report]) else [self.pdf, self.workbook]
        replace_texts({file: text for file, text in texts.items() if text is not None})
        for file in gone:
            file.unlink(missing_ok=True)
        return kept

    def _keep(self, files: Sequence[Path]) -> Path:
        """Copy files to a new directory of the history."""
        # After the largest, not the first gap: numbers are in the order of time.
        kept = self._history / str(1 + max(self._numbers(), default=0))
        kept.mkdir(parents=True)
        for file in files:
            copyfile(file, kept / file.name)
        return kept

    def _numbers(self) -> list[int]:
        """Numbers in the history, in the order of time."""
        every = self._history.iterdir() if self._history.is_dir() else ()
        return sorted(int(path.name) for path in every if path.name.isdecimal())

    @property
    def _history(self) -> Path:
        return self.path / "history"

    @property
    def is_behind(self) -> bool:
        """Whether trainings are stored that came after the last result, or there is none yet."""
        if not self.result.is_file():
            return self.store.is_file() and bool(_last_finished(read_evaluations(self.store)))
        return self.has_newer(self.results()[0])

    def has_newer(self, last: Valuation) -> bool:
        """Whether trainings are stored that came after a result."""
        if not self.store.is_file():
            return False
        return _last_finished(read_evaluations(self.store)) > last.finished

    @property
    def last_result(self) -> Valuation | None:
        """The valuation by the first semivalue; None if there is no result that can be read."""
        try:
            return self.results()[0]
        except InputError:
            return None

    def write_report(self, valuations: Sequence[Valuation], *, final: bool = True) -> Path | None:
        """Replace the page and the payments; where the payments before are kept, if they differ.

        If the values are not final, nobody is paid by them: the page shows no payments, and those
        of the last result stay in their file.
        """
        if final:
            return self._replace(self._pages(valuations, self.spec()))
        unpaid = self._pages(valuations, replace(self.spec(), payment=Payment()))
        return self._replace({self.report: unpaid[self.report]})

    def booked(self, spec: Spec, after: RunDirectory | None = None) -> Ledger:
        """Every payment that was booked; what is wrong with the chain is among its `breaks`.

        Args:
            spec: that of this run.
            after: another run whose ledger goes on here.

        Raises:
            InputError: the ledger here does not begin with that of the other run, or that goes on
                elsewhere.
        """
        here = read_ledger(self.ledger, spec.history.ledger)
        if after is None:
            return here
        if after.identity == self.identity:
            raise InputError(f"the ledger of {str(self)!r} goes on in itself; leave out --after")
        there = after.booked(after.spec())
        there.check(str(after.ledger))
        if there.closing is not None and there.closing.run != self.identity:
            raise InputError(
                f"the payments of {str(after)!r} already go on in {there.closing.run!r}; state "
                "that directory with --after, or leave out --after if it was moved here"
            )
        if not here.head:
            return Ledger(there.entries)
        if here.entries[: len(there.entries)] != there.entries:
            raise InputError(
                f"the ledger of {str(self)!r} does not begin with that of {str(after)!r}; book in "
                "one of the two alone"
            )
        return here

    @property
    def identity(self) -> str:
        """What a ledger calls this run."""
        return str(self.path.resolve())

    def close_ledger(self, later: RunDirectory, time: str) -> None:
        """Book that the payments go on in another run; the page says so.

        Raises:
            InputError: this cannot be written.
        """
        spec = self.spec()
        if (ledger := self.booked(spec)).closing is not None:
            return
        try:
            self.write_payments(self.results(), spec, ledger.close(later.identity, time))
        except InputError as cause:
            raise InputError(
                f"nothing is booked: {str(self)!r} cannot keep that its payments go on in "
                f"{str(later)!r}, and could pay them twice ({cause})"
            ) from cause

    def share(self, v: Valuation, spec: Spec, ledger: Ledger) -> Payments:
        """The payments by the terms of a spec, beside what is already paid.

        Raises:
            InputError: nobody can be paid by these values and terms, or the ledger was changed.
        """
        ledger.check(str(self.ledger))
        return with_paid(v.payments(**asdict(spec.payment)), ledger)

    def write_payments(
        self, valuations: Sequence[Valuation], spec: Spec, ledger: Ledger
    ) -> Path | None:
        """Replace the ledger, the terms, the page and the payments, as `write_report` does."""
        texts: dict[Path, str | None] = {}
        if ledger.head:
            # First: a kill after it leaves payments that are booked but not in the table, which
            # the next `dupre pay` shows as paid. The other way round they could be paid twice.
            texts[self.ledger] = ledger.dumps()
            spec = replace(spec, history=replace(spec.history, ledger=ledger.head))
        texts[self.config] = dumps(spec)
        return self._replace(texts | self._pages(valuations, spec, ledger))

    def has_other_payments(self, v: Valuation) -> bool:
        """Whether the payments on the page are not those by these values."""
        return not _holds(self.payments, payments_table(self._paid(v, self.spec())))

    def _paid(
        self, v: Valuation, spec: Spec, ledger: Ledger | None = None
    ) -> Payments | InputError | None:
        """The payments by the last terms, or why there are none; None without terms."""
        if spec.payment.amount is None:
            return None
        try:
            return self.share(v, spec, self.booked(spec) if ledger is None else ledger)
        except InputError as cause:  # the terms fitted earlier values
            return cause

    def _pages(
        self, valuations: Sequence[Valuation], spec: Spec, ledger: Ledger | None = None
    ) -> dict[Path, str | None]:
        """The page and the table of payments; None for the table if nobody is paid."""
        from dupre.report.page import page

        paid = self._paid(valuations[0], spec, ledger)
        found = read_history(self.earlier_results(valuations), valuations[0])
        quoted = read_quotes(self.quotes)
        shown = page(valuations, heading=_heading(spec), paid=paid, history=found, quoted=quoted)
        return {self.report: shown, self.payments: payments_table(paid)}

    def write_statements(
        self, v: Valuation, directory: Path, only: Sequence[str], *, final: bool = True
    ) -> list[Path]:
        """Write statements as files of their own, and say where they are; `write_report`."""
        from dupre.report.statements import write_statements

        heading, paid = _heading(self.spec()), self._paid(v, self.spec()) if final else None
        return write_statements(v, directory, only=only, heading=heading, paid=paid)

    def write_workbook(self, valuations: Sequence[Valuation], *, final: bool = True) -> Path:
        """Write the Excel workbook, and say where it is; `write_report`."""
        from dupre.report.excel import workbook

        paid = self._paid(valuations[0], self.spec()) if final else None
        replace_text(self.workbook, workbook(valuations, paid))
        return self.workbook

    @contextmanager
    def name_errors(self) -> Iterator[None]:
        """Let errors of the library say which run they come from."""
        try:
            yield
        except (DupreError, Interrupted) as error:
            error.run = str(self)
            raise

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Make the directory and keep other runs out of it; errors say which run they come from.

        The lock ends with the process, however that ends.

        Raises:
            InputError: another process is using the directory.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as cause:
            raise InputError(
                f"the run directory {str(self)!r} cannot be made ({cause.strerror}); choose "
                "another with --run"
            ) from cause
        with closing(FileLock(self.path / ".lock")) as lock, self.name_errors():
            if not lock.acquire():
                raise InputError(
                    f"{str(self)!r} is in use by another run ({lock.holder}); wait for it to end, "
                    "or stop it"
                )
            yield


def read_spec(config: Path) -> Spec:
    """The settings in a file, as a run writes them; InputError if it cannot be read."""
    try:
        text = config.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise InputError(f"{str(config)!r} cannot be read: {cause}") from cause
    return loads(text, str(config))


def _last_finished(evaluations: pd.DataFrame) -> str:
    """When the last training was finished; "" if there is none."""
    return str(evaluations["finished"].max()) if len(evaluations) else ""


def _holds(file: Path, text: str | None) -> bool:
    """Whether a file holds a text, or is not there if there is none; others may have saved it."""
    found = file.read_bytes() if file.is_file() else None
    return found == (None if text is None else text.encode())


def payments_table(paid: Payments | InputError | None) -> str | None:
    """Payments as CSV; None if there are none."""
    if not isinstance(paid, Payments):
        return None
    frame = paid.table().rename(index=_escape).assign(currency=_escape(paid.currency))
    return frame.to_csv(lineterminator="\n")


def _heading(spec: Spec) -> Heading:
    """Title, contact and logo of pages and statements."""
    asked = spec.page
    return Heading(asked.title, asked.contact, read_logo(asked.logo))


def spreadsheet(valuations: Sequence[Valuation]) -> str:
    """The values as CSV that is safe to open in a spreadsheet.

    A name that a spreadsheet would take for a formula gets an apostrophe in front. Control
    characters, which can end a cell, are spelled out.
    """
    frames = [v.to_frame().rename(index=_escape) for v in valuations]
    names = [v.semivalue for v in valuations]
    return pd.concat(frames, keys=names, names=["semivalue"]).to_csv(lineterminator="\n")


def _escape(name: str) -> str:
    text = spell_out(name)
    return f"'{text}" if text.startswith(FORMULA) else text
