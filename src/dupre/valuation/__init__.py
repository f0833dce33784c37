"""The loop from a question to an answer: what to train, when to stop, what the values are."""
