"""The command `dupre`: a mediator's whole job without writing Python.

`app` is the entry point, and every verb has a file of its name. A verb reads options, calls
`dupre.runs`, and prints.
"""
