"""What was paid for, and whether it is still of the same game."""
