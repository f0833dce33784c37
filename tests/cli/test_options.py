import pytest

from commands import run

DATA = ("value", "no.csv", "--owner", "o", "--target", "y")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pay", "no", "--amount", "1,000"), "'--amount': expected a number such as 1234.5, "),
        (("pay", "no", "--amount", "1", "--minimum", "x"), "expected a number such as 99.5, "),
        ((*DATA, "--holdout", "25%"), "'--holdout': expected a number such as 0.25, "),
        ((*DATA, "--budget", "3.5"), "'--budget': expected a whole number, "),
    ],
)
def test_what_is_no_number_is_shown_with_an_example(arguments, words):
    message = run(*arguments, code=2).stderr.splitlines()[-1]
    assert words in message
    assert message.endswith(f"got {arguments[-1]!r}")
