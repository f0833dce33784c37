import json
import re
from unittest.mock import Mock, patch

import dupre
from command_tables import (
    WINE,
)
from commands import refuse, run


def test_payments_are_printed_kept_and_part_of_every_later_page(data):
    run("value", *WINE, "--budget", "7", "--run", "paid", cwd=data)
    refused = refuse("pay", "paid", "--amount", "99.95", cwd=data)
    assert "not payable: Too few trainings" in refused
    assert "state --anyway" in refused
    assert not (data / "paid/payments.csv").exists()
    asked = ("pay", "paid", "--anyway", "--amount")
    told = json.loads(run(*asked, "99.95", "--json", cwd=data).stdout)
    assert told["notes"].pop(0)["code"] == "paid_anyway"
    assert sum(round(100 * one["payment"]) for one in told["payments"]) == 9995
    shown = run("show", "paid", "--verbose", cwd=data).stdout.splitlines()
    lines = [f"Beware: {one['text']}" for one in told["notes"]]
    assert lines == [line for line in shown if line.startswith("Beware")] != []
    printed = run(*asked, "10", "--currency", "CHF", cwd=data).stdout
    assert "sum" in printed
    compared = run("compare", "paid", "Alba", "Etna", cwd=data).stdout
    for text in (printed, compared):
        assert text.endswith("\n".join(["", *lines, ""]))
    table = (data / "paid/payments.csv").read_text()
    assert table.startswith("owner,value,payment,low,high,currency\n")
    resumed = run("resume", "paid", "--budget", "+1", cwd=data).stderr
    assert "The payments have changed: payments.csv and the page have the new ones." in resumed
    (before,) = re.findall(r"Payments before: (\S+)", resumed)
    assert (data / before).read_text() == table != (data / "paid/payments.csv").read_text()
    page = (data / "paid/report.html").read_text()
    assert "Payment (CHF)" in page
    assert "paid although the values are not payable" in page  # for good
    assert "who is at or below zero gets nothing" in page
    assert "above zero" in refuse("pay", "paid", "--amount", "0", cwd=data)
    paid = (data / "paid/payments.csv").read_text()
    full = Mock(side_effect=dupre.InputError("'payments.csv' cannot be written"))
    with patch("dupre.runs.directory.replace_texts", full):
        printed = run(*asked, "20", "--currency", "CHF", cwd=data, code=2)
    assert "payment CHF" in printed.stdout
    assert printed.stderr == "Error: 'payments.csv' cannot be written\n"
    assert (data / "paid/payments.csv").read_text() == paid
    report = ("report", "paid", "--statements", "st", "--only", "Alba")
    (written,) = run(*report, cwd=data).stdout.split()
    assert "<dt>Payment</dt><dd>" in (data / written).read_text()
    assert " of 10.00 CHF" in (data / written).read_text()
    assert "Paid although the values are not payable." in (data / written).read_text()
    assert "--statements" in refuse("report", "paid", "--only", "Alba", cwd=data)
