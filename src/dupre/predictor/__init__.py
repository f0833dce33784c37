"""Predicts the utility of coalitions that were not trained: kernels, Gaussian process, checks."""
