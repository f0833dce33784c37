"""Every experiment of the DUPRE paper as a command: `python -m experiments NAME`."""
