"""A small residual network as a scikit-learn classifier, for the images of CIFAR-10.

It is the example of a PyTorch model under `dupre.ModelUtility`: `fit`, `predict`, and a
`random_state` from which everything random follows, so that a training can be repeated anywhere.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from dupre.errors import InputError

SIDE, CHANNELS = 16, 3
"""Images are rows of SIDE x SIDE x CHANNELS numbers between 0 and 1."""


class ResidualClassifier(ClassifierMixin, BaseEstimator):
    """Two residual blocks of 3 x 3 convolutions with batch normalisation, AdamW, one-cycle rate.

    Args:
        width: channels of the first convolution.
        epochs: passes over the rows.
        batch: rows per step.
        rate: highest learning rate.
        random_state: of first weights and of the order of rows.
    """

    def __init__(
        self,
        width: int = 8,
        epochs: int = 15,
        batch: int = 64,
        rate: float = 0.01,
        random_state: int | None = None,
    ):
        self.width = width
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Train on images X, (m, SIDE * SIDE * CHANNELS), and labels y, (m,)."""
        torch = _import_torch()
        self.classes_, codes = np.unique(y, return_inverse=True)
        images, labels = _as_images(torch, X), torch.as_tensor(codes)
        with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay as they are
            torch.manual_seed(0 if self.random_state is None else self.random_state)
            net = _residual_network(torch, self.width, len(self.classes_))
            steps = self.epochs * -(-len(images) // self.batch)
            optimizer = torch.optim.AdamW(net.parameters())
            schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, self.rate, total_steps=steps)
            for _ in range(self.epochs):
                for rows in torch.randperm(len(images)).split(self.batch):
                    optimizer.zero_grad()
                    torch.nn.functional.cross_entropy(net(images[rows]), labels[rows]).backward()
                    optimizer.step()
                    schedule.step()
        self.net_ = net.eval()
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The label of each image."""
        torch = _import_torch()
        with torch.no_grad():
            return self.classes_[self.net_(_as_images(torch, X)).argmax(1).numpy()]


def _residual_network(torch: Any, width: int, classes: int) -> Any:
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc]
        """Two convolutions, the first of stride 2, beside one of a single pixel."""

        def __init__(self, inside: int, outside: int):
            super().__init__()
            self.main = nn.Sequential(
                nn.Conv2d(inside, outside, 3, 2, 1, bias=False),
                nn.BatchNorm2d(outside),
                nn.ReLU(),
                nn.Conv2d(outside, outside, 3, 1, 1, bias=False),
                nn.BatchNorm2d(outside),
            )
            self.short = nn.Conv2d(inside, outside, 1, 2, bias=False)

        def forward(self, x: Any) -> Any:
            """The block's output."""
            return torch.relu(self.main(x) + self.short(x))

    return nn.Sequential(
        nn.Conv2d(CHANNELS, width, 3, 1, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        Block(width, 2 * width),
        Block(2 * width, 4 * width),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4 * width, classes),
    )


def _as_images(torch: Any, X: np.ndarray) -> Any:
    images = np.asarray(X, dtype=np.float32).reshape(-1, SIDE, SIDE, CHANNELS)
    return torch.as_tensor(images).permute(0, 3, 1, 2) * 2 - 1


def _import_torch() -> Any:
    try:
        import torch
    except ImportError as cause:
        raise InputError(
            "the residual network needs PyTorch: pip install 'dupre[experiments]'"
        ) from cause
    return torch
