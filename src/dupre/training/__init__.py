"""Where trainings run, and where their results are kept."""
