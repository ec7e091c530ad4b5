"""The syntax of CSV files, and a source of files of one syntax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rayelastic.connectors.csv.text import CsvText
from rayelastic.connectors.files.byte_streams import check_encoding
from rayelastic.connectors.row_files import RowFiles
from rayelastic.errors import ErrorCode, SourceError
from rayelastic.graph.records.shown import shown

if TYPE_CHECKING:
    import pyarrow.csv as pa_csv

__all__ = ["CsvForm", "CsvSource", "check_form"]


@dataclass(frozen=True, slots=True)
class CsvForm:
    """The syntax of CSV files.

    Args:
        delimiter: One character.
        quote: One character around fields with delimiters or line ends; None: there is none.
        encoding: The files' encoding; None: UTF-8.
        comment: Lines that start with it are left out; None: there are none.
        nulls: Unquoted texts that stand for None.
        escape: The character that escapes the next one; None: there is none.
        header: The names of the columns, if the first row is data; empty: 'f0', 'f1' and so on; None: the first row
            names them.
    """

    delimiter: str = ","
    quote: str | None = '"'
    encoding: str | None = None
    comment: str | None = None
    nulls: tuple[str, ...] = ("",)
    escape: str | None = None
    header: tuple[str, ...] | None = None

    @property
    def first_row(self) -> int:
        """The number of the first row of data."""
        return 2 if self.header is None else 1

    def text(self, path: str) -> CsvText:
        """Open the text of a file."""
        return CsvText(path, self.encoding, self.comment, self.quote, self.escape)

    def parsing(self, bad_row: Callable[[Any], str] | None) -> pa_csv.ParseOptions:
        """Make the options of pyarrow's parser; `bad_row` decides about rows with too few or too many fields."""
        from pyarrow import csv

        return csv.ParseOptions(
            delimiter=self.delimiter,
            quote_char=self.quote or False,
            double_quote=self.quote is not None,
            escape_char=self.escape or False,
            newlines_in_values=self.quote is not None or self.escape is not None,
            invalid_row_handler=bad_row,
        )

    def reading(self, block_size: int, *, use_threads: bool = False) -> pa_csv.ReadOptions:
        """Make the options of pyarrow's reader."""
        from pyarrow import csv

        numbered = self.header == ()
        return csv.ReadOptions(
            block_size=block_size,
            use_threads=use_threads,
            column_names=self.header or None,
            autogenerate_column_names=numbered,
        )


@dataclass(frozen=True, slots=True)
class CsvSource(RowFiles):
    """Rows of CSV files of one syntax."""

    kind: ClassVar[str] = "CSV files"

    form: CsvForm = CsvForm()


def check_form(form: CsvForm, operator: str) -> None:
    """Raise SourceError for invalid options of the syntax."""
    check_encoding(form.encoding, operator)
    for name, value in (("delimiter", form.delimiter), ("quote", form.quote), ("escape", form.escape)):
        is_character = isinstance(value, str) and len(value) == 1 and value.isascii() and value not in "\r\n"
        if not is_character and not (value is None and name != "delimiter"):
            raise SourceError(
                f"{name}={shown(value)} is invalid",
                operator=operator,
                hint="Pass one ASCII character",
                code=ErrorCode.WRONG_TYPE,
            )
    comment: object = form.comment
    if comment is not None and not (isinstance(comment, str) and comment):
        raise SourceError(
            f"comment={shown(comment)} is invalid",
            operator=operator,
            hint="Pass text, such as '#'",
            code=ErrorCode.WRONG_TYPE,
        )
    if not all(isinstance(is_character, str) for is_character in form.nulls):
        raise SourceError(
            f"nulls={shown(form.nulls)} is invalid",
            operator=operator,
            hint="Pass texts, such as ['', 'NA']",
            code=ErrorCode.WRONG_TYPE,
        )
    if form.escape is not None and form.escape in (form.quote, form.delimiter):
        raise SourceError(
            f"escape={form.escape!r} is the delimiter or the quote",
            operator=operator,
            hint="Quotes are doubled anyway",
            code=ErrorCode.CONFLICTING_ARGUMENTS,
        )
    if form.escape is not None and (null := next((n for n in form.nulls if form.escape in n), None)) is not None:
        raise SourceError(
            f"nulls= has {null!r}, which escape={form.escape!r} reads as {null.replace(form.escape, '', 1)!r}",
            operator=operator,
            hint="Pass the text without the escape, or none of the two",
            code=ErrorCode.CONFLICTING_ARGUMENTS,
        )
    if form.header is not None and not all(isinstance(is_character, str) for is_character in form.header):
        raise SourceError(
            f"header={shown(form.header)} is invalid",
            operator=operator,
            hint="Pass False, or names of columns",
            code=ErrorCode.WRONG_TYPE,
        )
