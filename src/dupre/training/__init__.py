"""Where trainings run, and where they are kept."""
