"""Cooperative games as arrays: coalitions, semivalues, their weights, the least core.

Nothing here knows of data or of models.
"""
