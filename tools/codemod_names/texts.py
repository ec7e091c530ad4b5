"""Finds the programs in a file: strings and docstrings of Python, blocks of Markdown, cells of a notebook."""

from __future__ import annotations

import bisect
import io
import json
import re
import tokenize
from dataclasses import dataclass, field
from pathlib import Path

from tools.codemod_names.calls import NEEDED, calls
from tools.codemod_names.edits import Edit, Offsets, applied, shifted

CALL = re.compile(rf"\.(?:{'|'.join(NEEDED)})\(\s*\\?(?:[rRfF]?[\"']|\{{|_*name\b(?!\s*=))")
DOUBTFUL = re.compile(CALL.pattern.replace("|split|", "|").replace("|match|", "|").replace("|join|", "|"))
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>python|py|pycon|text)\b[^\n]*\n(?P<code>.*?)^(?P=indent)```",
    re.MULTILINE | re.DOTALL,
)
SPAN = re.compile(r"(?<!`)`(?P<code>[^`]+)`(?!`)")
PROMPT = re.compile(r"^ *(?:>>>|\.\.\.)(?: |$)", re.MULTILINE)
PREFIXES = ("", "if 1:\n", "_", "_(", "lambda: _")  # what makes a part of a program a program


@dataclass
class Codemod:
    """Rewrites one file.

    Args:
        doubtful: the lines that look like calls in the old form and couldn't be read.
    """

    doubtful: list[str] = field(default_factory=list)

    def file(self, path: Path, text: str) -> str:
        if path.suffix == ".ipynb":
            return self.notebook(text)
        if path.suffix == ".md":
            return applied(text, self.markdown(text))
        return applied(text, self.program(text))

    def notebook(self, text: str) -> str:
        cells = json.loads(text)
        for cell in cells["cells"]:
            source = "".join(cell["source"])
            masked = re.sub(r"^([ \t]*)[%!]", r"\1#", source, flags=re.MULTILINE)
            edits = self.program(masked) if cell["cell_type"] == "code" else self.markdown(source)
            if edits:
                cell["source"] = applied(source, edits).splitlines(keepends=True)
        made = json.dumps(cells, indent=1, ensure_ascii=False) + "\n"
        return text if json.loads(made) == json.loads(text) else made

    def markdown(self, text: str) -> list[Edit]:
        edits: list[Edit] = []
        inside = []
        for fence in FENCE.finditer(text):
            inside.append(fence.span())
            spoken = fence["language"] == "text"  # perhaps no program
            found = (self.fragment(fence["code"]) or []) if spoken else self.text(fence["code"])
            edits += shifted(found, fence.start("code"))
        for span in SPAN.finditer(text):
            if not any(start <= span.start() < end for start, end in inside):
                edits += shifted(self.fragment(span["code"], spoken=True) or [], span.start("code"))
        return edits

    def program(self, text: str) -> list[Edit]:
        """Of a whole program: its calls, and what its strings hold."""
        edits = calls(text)
        if edits is None:
            self.doubt(text)
            return []
        offsets = Offsets(text)
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.STRING and CALL.search(token.string):
                start = offsets.of(*token.start)
                edits += shifted(self.string(token.string), start)
        return edits

    def string(self, literal: str) -> list[Edit]:
        prefix = re.match(r"[a-zA-Z]*", literal)
        kind = prefix[0].lower() if prefix else ""
        quote = 3 if literal[len(kind) :][:3] in ('"""', "'''") else 1
        start = len(kind) + quote
        body = literal[start:-quote]
        masked = body if "r" in kind else re.sub(r"\\(?:\\|[^\\])", _unescaped, body, flags=re.DOTALL)
        masked = _without_fields(masked) if "f" in kind else masked
        return shifted(self.text(masked, body), start)

    def text(self, masked: str, text: str | None = None) -> list[Edit]:
        """Of a text that holds a program, examples of a docstring, blocks of Markdown, or a part of a program."""
        text = masked if text is None else text
        if PROMPT.search(masked):
            return self.examples(masked)
        if "```" in masked:
            return self.markdown(masked)
        found = self.fragment(masked, text)
        if found is None:
            edits = []
            for span in SPAN.finditer(masked):
                edits += shifted(self.fragment(span["code"], spoken=True) or [], span.start("code"))
            if not edits:
                self.doubt(text)
            return edits
        return found

    def examples(self, masked: str) -> list[Edit]:
        """Of the examples in a docstring: all of them are one program, whose other lines are left out."""
        program, places, at = "", [], 0
        for line in masked.splitlines(keepends=True):
            prompt = re.match(r" *(?:>>>|\.\.\.)(?: |$)", line)
            if prompt:
                places.append((len(program), at + prompt.end()))
                program += line[prompt.end() :]
            at += len(line)
        edits = self.fragment(program, program)
        if edits is None:
            self.doubt(program)
            return []
        starts = [start for start, _ in places]
        moved: list[Edit] = []
        for edit in edits:
            begin, there = places[bisect.bisect_right(starts, edit.start) - 1]
            end_begin, end_there = places[bisect.bisect_left(starts, max(edit.end, 1)) - 1]
            start, end = edit.start - begin + there, edit.end - end_begin + end_there
            moved.append(Edit(start, max(start, end), edit.text))
        return moved

    def fragment(self, masked: str, text: str | None = None, *, spoken: bool = False) -> list[Edit] | None:
        """Of a program or a part of one; None: it is none. `spoken`: `name` stands for any name, and is left out."""
        text = masked if text is None else text
        if not CALL.search(masked):
            return []
        for prefix in PREFIXES:
            for suffix in ("", ")"):
                found = calls(prefix + masked + suffix, prefix + text + suffix, spoken=spoken)
                if found is not None:
                    return shifted(found, -len(prefix))
        return None

    def doubt(self, text: str) -> None:
        self.doubtful += [line.strip() for line in text.splitlines() if DOUBTFUL.search(line)]


def _unescaped(found: re.Match[str]) -> str:
    """Same length: a new line, a quotation mark, or two spaces."""
    escaped = found[0][1]
    return {"n": " \n", '"': ' "', "'": " '", "\n": "\\\n"}.get(escaped, "  ")


def _without_fields(body: str) -> str:
    """Return an f-string with names of the same length in place of its fields."""
    made, at, depth, start = list(body), 0, 0, 0
    while at < len(body):
        pair = body[at : at + 2]
        if not depth and pair in ("{{", "}}"):
            made[at : at + 2] = "{ " if pair == "{{" else " }"
            at += 1
        elif body[at] == "{":
            start = start if depth else at
            depth += 1
        elif body[at] == "}" and depth:
            depth -= 1
            if not depth:
                made[start : at + 1] = "_" * (at + 1 - start)
        at += 1
    return "".join(made)
