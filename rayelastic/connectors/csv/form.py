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
    one, texts = "Pass one ASCII character", "Pass texts, such as ['', 'NA']"
    for name, value, is_valid, hint in (
        ("delimiter", form.delimiter, _is_character(form.delimiter), one),
        ("quote", form.quote, form.quote is None or _is_character(form.quote), one),
        ("escape", form.escape, form.escape is None or _is_character(form.escape), one),
        ("comment", form.comment, form.comment is None or _are_texts(form.comment or None), "Pass text, such as '#'"),
        ("nulls", form.nulls, _are_texts(*form.nulls), texts),
        ("header", form.header, _are_texts(*form.header or ()), "Pass False, or names of columns"),
    ):
        if not is_valid:
            problem = f"{name}={shown(value)} is invalid"
            raise SourceError(problem, operator=operator, hint=hint, code=ErrorCode.WRONG_TYPE)
    escape, problem = form.escape, ""
    if escape is not None and escape in (form.quote, form.delimiter):
        problem, hint = f"escape={escape!r} is the delimiter or the quote", "Quotes are doubled anyway"
    elif escape is not None and (null := next((text for text in form.nulls if escape in text), None)) is not None:
        problem = f"nulls= has {null!r}, which escape={escape!r} reads as {null.replace(escape, '', 1)!r}"
        hint = "Pass the text without the escape, or none of the two"
    if problem:
        raise SourceError(problem, operator=operator, hint=hint, code=ErrorCode.CONFLICTING_ARGUMENTS)


def _is_character(value: object) -> bool:
    return isinstance(value, str) and len(value) == 1 and value.isascii() and value not in "\r\n"


def _are_texts(*values: object) -> bool:
    return all(isinstance(value, str) for value in values)
