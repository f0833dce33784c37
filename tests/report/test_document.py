from dupre.report.document import list_names, with_minus_signs, without_directories


def test_names_in_sentences_are_isolated_and_numbers_have_a_minus_sign_unless_they_are_zero():
    assert list_names(["a", "b"]) == "\u2068a\u2069 and \u2068b\u2069"
    said = "from -0.00 and -0 to -0.5 (95 %: -1.4 … -0.1), 2024-05-31, 1e-05, x-1"
    expected = "from 0.00 and 0 to −0.5 (95 %: −1.4 … −0.1), 2024-05-31, 1e-05, x-1"
    assert with_minus_signs(said) == expected


def test_files_are_named_without_their_directories():
    for text, expected in (
        ("dupre value /home/u/a.csv --validation=/b/c.csv", "dupre value a.csv --validation=c.csv"),
        ("'/my data/x y.csv' is missing", "'x y.csv' is missing"),
        (r"C:\Users\me\x.csv and ~/d/e.csv", "x.csv and e.csv"),
        ("your own /home/me/model.py:build", "your own model.py:build"),
        ("https://scikit-learn.org/stable/x.html", "https://scikit-learn.org/stable/x.html"),
        ("data/x.csv, and/or 1/2", "data/x.csv, and/or 1/2"),
    ):
        assert without_directories(text) == expected
