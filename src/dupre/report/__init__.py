"""The report: valuations as one self-contained HTML page that opens from disk.

`page` puts it together from `sections`, whose tables are in `listings`, whose figures `figures`
makes of `dupre.plots`, and whose words are in `summary`, `relations` and `statements`. Everything
on it comes from `Valuation` records alone.
"""
