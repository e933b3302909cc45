"""Parquet files, opened so that no cell decides whether they can be read."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

__all__ = ["OpenedParquet"]


class OpenedParquet:
    """A parquet file whose text is read as dictionaries, which hold each distinct cell once.

    Arrow writes its own types beside those of parquet, and reads categories back with the places
    that they had, such as the 8 bits of pandas'.  That fails where a row group has more levels than
    such places tell apart, or a level that is no UTF-8: one cell would decide that the file is
    unreadable.  Without its own types arrow reads dictionaries with places of 32 bits.

    Args:
        file: opened for reading bytes, of Python or of arrow.

    Raises:
        pyarrow.ArrowException: it is no parquet file.
        OSError: it cannot be read.
    """

    def __init__(self, file: Any) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._file = file
        self._plain = pq.ParquetFile(file)
        self.schema = self._plain.schema_arrow
        types = pa.types
        self._categories = [field.name for field in self.schema if types.is_dictionary(field.type)]
        self._texts = [
            field.name
            for field in self.schema
            if types.is_string(field.type) or types.is_large_string(field.type)
        ]

    @cached_property
    def _as_written(self) -> Any:
        import pyarrow.parquet as pq

        return pq.ParquetFile(self._file, read_dictionary=self._texts)

    @cached_property
    def _wide(self) -> Any:
        """The file without arrow's own types, where there are categories."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self._categories:
            return self._as_written
        footer = io.BytesIO()
        self._plain.metadata.write_metadata_file(footer)
        # a key of the same length, which says nothing to arrow
        unnamed = footer.getvalue().replace(b"\x0cARROW:schema", b"\x0cARROW:______")
        metadata = pq.read_metadata(pa.BufferReader(unnamed))
        texts = [*self._texts, *self._categories]
        return pq.ParquetFile(self._file, metadata=metadata, read_dictionary=texts)

    def read(self, name: str) -> Any:
        """The cells of a column; categories with their order, where they can be read as such."""
        import pyarrow as pa

        try:
            return self._as_written.read(columns=[name]).column(name)
        except pa.ArrowInvalid:
            if name not in self._categories:
                raise
        return self._wide.read(columns=[name]).column(name)

    def batches(self, n_rows: int, names: Sequence[str]) -> Iterator[Any]:
        """The rows in pieces, of columns of text and numbers."""
        yield from self._wide.iter_batches(n_rows, columns=list(names))
