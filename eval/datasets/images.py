"""Images of questions: opened when a model reads them, never all in memory.

A reference is a path in the data folder (`images/1.jpg`), or a place in a parquet file
(`data/test.parquet::image::12`, with a fourth part for one of a list), as `eval.datasets.records` makes them.
"""

from __future__ import annotations

import io
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, UnidentifiedImageError

from eval.datasets.records import DataError

_ROW_GROUPS = 2


class LazyImage(Image.Image):
    """An RGB image that reads its file whenever its pixels are needed and keeps none of them.

    Transparent pixels become white, and greys of 16 bits those of 8. Size and pixels raise DataError, naming
    the image, when it cannot be read.
    """

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self._mode = "RGB"

    @property
    def size(self) -> tuple[int, int]:
        with self._opened() as image:
            return image.size

    @property
    def im(self) -> Any:
        return self._decoded().im

    @im.setter
    def im(self, im: Any) -> None:
        raise TypeError(f"{self.source} is read-only; work on a copy of the image")

    def load(self) -> Any:
        return self._decoded().load()

    def copy(self) -> Image.Image:
        return self._decoded()

    def convert(self, mode: str | None = None, *arguments: Any, **options: Any) -> Image.Image:
        return self._decoded().convert(mode, *arguments, **options)

    def png(self) -> bytes:
        """The image as a PNG file."""
        content = io.BytesIO()
        self._decoded().save(content, "PNG")
        return content.getvalue()

    def _opened(self) -> Image.Image:
        try:
            return Image.open(io.BytesIO(image_bytes(self.source)))
        except DataError:
            raise
        except Image.DecompressionBombError as error:
            raise DataError(
                f"the image {self.source} cannot be read: {error}; scale it down, or leave its question out"
            ) from error
        except (OSError, ValueError) as error:
            raise DataError(
                f"the image {self.source} cannot be read: {reason_of(error)}; fetch it again"
            ) from error

    def _decoded(self) -> Image.Image:
        try:
            with self._opened() as image:
                if image.mode == "RGB":
                    return image.copy()
                if image.mode.startswith("I;16"):  # Pillow would cut what is above 255 to white
                    return _of_16_bits(image).convert("RGB")
                if image.mode in ("I", "F"):
                    raise DataError(
                        f"the image {self.source} has pixels of 32 bits (mode {image.mode}), and nothing "
                        "says which is white; save it with 8 bits a channel"
                    )
                opaque = image.convert("RGBA")
                white = Image.new("RGBA", opaque.size, (255, 255, 255, 255))
                return Image.alpha_composite(white, opaque).convert("RGB")
        except (OSError, SyntaxError) as error:
            raise DataError(f"the image {self.source} cannot be decoded: {error}; fetch it again") from error


def _of_16_bits(image: Image.Image) -> Image.Image:
    """A grey image of 16 bits with the upper 8 of them."""
    values = np.frombuffer(image.convert("I").tobytes(), dtype=np.int32)
    return Image.frombytes("L", image.size, (values >> 8).astype(np.uint8).tobytes())


def image_bytes(source: str) -> bytes:
    """The file of an image at a located reference. Raises DataError, naming it, when it is not there."""
    path, *place = source.split("::")
    try:
        if not place:
            return Path(path).read_bytes()
        column, row, *index = place
        value = _parquet_cell(path, column, int(row))
        return bytes((value[int(index[0])] if index else value)["bytes"])
    except FileNotFoundError as error:
        raise DataError(f"the image {source} is missing; fetch the data set's images again") from error
    except (LookupError, TypeError, OSError) as error:
        raise DataError(f"the image {source} cannot be read: {error}; fetch the file again") from error


def _parquet_cell(path: str, column: str, row: int) -> Any:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, memory_map=True) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    for group, size in enumerate(sizes):
        if row < size:
            return _row_group(path, group, column)[row].as_py()
        row -= size
    raise IndexError(f"{path} has {sum(sizes)} rows")


@lru_cache(maxsize=_ROW_GROUPS)
def _row_group(path: str, group: int, column: str) -> Any:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, memory_map=True) as file:
        return file.read_row_group(group, columns=[column]).column(column)


def reason_of(error: Exception) -> str:
    """Why Pillow does not read a file; its own words may name an address in memory, another one each time."""
    return "no image file" if isinstance(error, UnidentifiedImageError) else str(error)
