"""The report: valuations as one self-contained HTML page that opens from disk.

`page` puts it together from `sections`. Their tables are in `listings`, their figures in `figures`
and `dupre.plots`, their sentences in `summary`, `relations` and `statements`. Everything on the
page comes from `Valuation` records alone.
"""
