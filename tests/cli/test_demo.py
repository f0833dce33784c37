from commands import refuse


def test_the_demonstration_overwrites_nothing(place):
    (place / "mine").mkdir()
    (place / "mine/validation.csv").write_text("precious")
    assert "'mine' exists and is no demonstration" in refuse("demo", "--run", "mine")
    assert (place / "mine/validation.csv").read_text() == "precious"
