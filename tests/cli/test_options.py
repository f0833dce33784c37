import pytest

from commands import run
from dupre.cli.options import FLAGS, SETTINGS
from dupre.spec import SECTIONS

DATA = ("value", "no.csv", "--owner", "o", "--target", "y")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("pay", "no", "--amount", "1,000"),
            "'--amount': expected a number such as 0.25 or 1234.5",
        ),
        ((*DATA, "--holdout", "25%"), "'--holdout': expected a number such as 0.25 or 1234.5, "),
        ((*DATA, "--budget", "3.5"), "'--budget': expected a whole number, "),
        (("suggest", "no", "-n", "x"), "expected a whole number, "),
    ],
)
def test_what_is_no_number_is_shown_with_an_example(arguments, words):
    message = run(*arguments, code=2).stderr.splitlines()[-1]
    assert words in message
    assert message.endswith(f"got {arguments[-1]!r}")


def test_every_option_is_a_setting_and_every_setting_an_option_or_for_people_to_edit():
    settings = {name for section in SECTIONS.values() for name in section.__struct_fields__}
    assert settings - set(SETTINGS) == {
        *("path", "title", "contact", "logo", "commands", "columns", "forms", "ledger"),
        "for_these_rows",  # `pay --for rows|population`: two words say more than a switch
    }
    assert set(FLAGS) < set(SETTINGS) < settings
