"""What a user holds in the end: a `Valuation`, its records, and both as text and as JSON."""
