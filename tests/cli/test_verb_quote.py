"""`dupre quote`: rows of an owner who has not joined, as a mediator would ask for them."""

import json

import numpy as np
import pandas as pd
import pytest

from commands import refuse, run
from dupre.result.quotes import KeptQuote
from dupre.runs.results import keep_quote, read_quotes

RUN = "dupre-data"
ROLES = ("--owner", "site", "--target", "y", "--model", "logistic", "--folds", "2")


def table(sites="ABC", rows=30, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows * len(sites), 2)).round(3)
    y = np.where(x[:, 0] + 0.3 * rng.normal(size=len(x)) > 0, "yes", "no")
    return pd.DataFrame(
        {
            "site": np.repeat([*sites], rows),
            "a": x[:, 0],
            "share": [f"{v} %" for v in x[:, 1]],
            "y": y,
        }
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("quotes")
    table().to_csv(place / "data.csv", index=False)
    table("D", seed=1).to_csv(place / "new.csv", index=False)
    run("value", "data.csv", *ROLES, cwd=place)
    return place


def test_a_quote_says_what_an_owner_would_be_worth_and_leaves_the_values_alone(place):
    values = (place / RUN / "values.csv").read_text()
    done = run("quote", RUN, "new.csv", cwd=place)
    assert done.stdout.startswith("Quote for D (30 rows), before any training.\n")
    assert "A quote pays nobody." in done.stdout
    trained = run("quote", RUN, "new.csv", "--spend", "2", "--amount", "100", cwd=place).stdout
    assert trained.startswith("Quote for D (30 rows), after 2 trainings with it.\n")
    assert "Of 100.00, as a proposal:" in trained
    assert (place / RUN / "values.csv").read_text() == values
    page = (place / RUN / "report.html").read_text()
    assert "Quotes for owners who have not joined" in page
    assert run("verify", RUN, cwd=place).stdout
    found = json.loads(run("quote", RUN, "new.csv", "--json", cwd=place).stdout)
    assert found["trained"] == 2  # those of before count
    assert [row["owner"] for row in found["owners"]] == ["A", "B", "C", "D"]


def test_rows_that_do_not_exist_are_quoted_as_such(place):
    done = run("quote", RUN, "--like", "B", "--rows", "45", "--name", "more", cwd=place)
    assert done.stdout.startswith("Quote for more (45 rows), before any training.")
    assert "These rows do not exist" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "state a file of rows, or --like"),
        (("new.csv", "--like", "A", "--rows", "3"), "state a file of rows, or --like"),
        (("--like", "A"), "--rows"),
        (("--like", "A", "--rows", "9", "--spend", "1"), "do not exist"),
        (("--like", "A", "--rows", "0"), "expected 1 to 3,000"),
        (("--like", "Z", "--rows", "9"), "Z"),
        (("both.csv",), "rows of 2 owners"),
        (("here.csv",), "there is an owner"),
        (("short.csv",), "share"),
        (("class.csv",), "maybe"),
    ],
)
def test_bad_input_is_refused(place, arguments, message):
    table("DE").to_csv(place / "both.csv", index=False)
    table("A").to_csv(place / "here.csv", index=False)
    table("D").drop(columns="share").to_csv(place / "short.csv", index=False)
    table("D").assign(y="maybe").to_csv(place / "class.csv", index=False)
    assert message in refuse("quote", RUN, *arguments, cwd=place)


def test_the_last_quote_of_an_owner_is_kept_and_a_damaged_file_is_named(tmp_path):
    file = tmp_path / "quotes.json"
    first = KeptQuote("D", 30, "Shapley", 0.1, 0.0, 0.2, 0, True, "2026-01-01")
    other = KeptQuote("E", 30, "Shapley", 0.1, 0.0, 0.2, 0, True, "2026-01-01")
    last = KeptQuote("D", 30, "Shapley", 0.15, 0.1, 0.2, 3, True, "2026-01-02")
    for one in (first, other, last):
        keep_quote(file, one)
    assert read_quotes(file) == [last, other]
    file.write_text("[{")
    with pytest.raises(Exception, match="quote again"):
        read_quotes(file)
