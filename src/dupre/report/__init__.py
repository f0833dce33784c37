"""The report: valuations as one self-contained HTML page that opens from disk.

`page` says what is on it and `statements` what each owner is told; `templates/` has the markup,
which `document` fills in. `pdf` prints both, `excel` writes a workbook. Figures are drawn by
`plots` (`dupre.plots` to users). Everything comes from `Valuation` records alone.
"""
