"""What one coalition scores when it is trained, and utilities that need no training."""
