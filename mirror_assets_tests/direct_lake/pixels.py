"""What is on a picture: its colours."""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO

import numpy as np
import numpy.typing as npt
from matplotlib.colors import to_rgb
from matplotlib.image import imread


def size(picture: bytes) -> tuple[int, int]:
    """Width and height of a PNG."""
    height, width, _ = _pixels(picture).shape
    return width, height


def amount(picture: bytes, colour: str) -> int:
    """How many pixels have this colour, or one that can't be told from it."""
    away = np.abs(_pixels(picture) - np.array(to_rgb(colour))).max(axis=2)
    return int((away < 0.06).sum())


@lru_cache(maxsize=4)
def _pixels(picture: bytes) -> npt.NDArray[np.float64]:
    return np.asarray(imread(BytesIO(picture), format="png"), dtype=np.float64)[:, :, :3]
