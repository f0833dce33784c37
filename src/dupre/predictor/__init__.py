"""What a coalition that was not trained would score: kernels, Gaussian process, calibration."""
