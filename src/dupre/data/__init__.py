"""Who holds which rows, and a coalition of owners as one vector."""
