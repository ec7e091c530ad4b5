"""Find long sentences, words that the field has better ones for, long pages, and pages and claims without a test.

`python -m tools.wording [FILES]` reads the README, the guide, docstrings, messages and fragments of the changelog. Each
finding is an error.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT_PAGES = {"README.md", "AGENTS.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
PYTHON = ("rayelastic/", "papers/", "topologies/", "examples/")
NATIVE = ("native_sched/src/", "native_sched/include/", "rayelastic/web/assets/")  # not docstrings of bindings
LONG_SENTENCE = 25
LONG_PAGE = 1000
LOGGING = {"warning", "info", "error", "exception"}

# What an engineer of this field doesn't search for, with the word to say instead.
WORDS = {
    r"hand(s|ed|ing)? (it |them )?on\b": "emits",
    r"go(es|ing)? back\b|goes on from|way back": "restores, recovers, rolls back",
    r"gives? back|go(es)? apart|comes? together": "scales in, splits, merges",
    r"h(olds?|eld) (it |them |a job )?back|waits? for room": "bottleneck, back-pressure, blocked on output",
    r"\btells?\b|\btold\b|\bhears?\b": "reports, logs, returns, raises, shows",
    r"can't be had|\brefus(e|es|ed|ing)\b(?<!onnection refused)": "rejected, unsupported",
    r"(a|the|their|its) token\b(?= (of|that) (Python|the GIL))|share a token|waits? for the token": "GIL",
    r"(?<!\bout\.)\bgives?\b|\b(is|are|was|were|be) given\b": "emits, returns, passes",
    r"functions? that waits?|[Oo]nce, whatever is lost|nothing promises more": "async I/O; exactly once; settled",
    r"\b(is|are) looked at\b|\b(is|are) had\b|\bnobody would\b|\bas far as it goes\b": "subject, verb, object",
    r"\bdear(er)?\b": "expensive",
    r"\bway out\b": "hint",
    r"\bwish(es)?\b": "constraint, bound, limit",
}
NOT_WORDS = re.compile("|".join(f"(?:{pattern})" for pattern in WORDS))
CLAIM = re.compile(r"\bnot yet\b|\bisn't supported\b|\baren't supported\b|\bunsupported\b|\bcan't\b|\bcannot\b")
MADE = re.compile(r"<!-- made: .*?<!-- end -->", re.DOTALL)  # a table made from the code
SHOWN_BY = re.compile(r"<!-- test: ([\w/.]+)(?:::(\w+))?")
EXAMPLES, TABLES = "```python\n", "<!-- made"  # what tests/component/project/test_guide.py runs, and others compare


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that doesn't read well.

    Args:
        path: of the file.
        line: its number, from 1.
        kind: 'long sentence', 'word', 'long page', 'claim', 'owner' or 'fragment'.
        text: what is there.
    """

    path: str
    line: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Prose:
    """A run of text that people read: a paragraph, a cell of a table, a docstring, a message.

    Args:
        line: its first, from 1.
        text: what is there.
        has_sentences: False for texts that may be code, such as SQL, whose words count alone.
    """

    line: int
    text: str
    has_sentences: bool = True


def of_markdown(text: str) -> Iterator[Prose]:
    """Paragraphs, list items and table cells, without code, comments and links' addresses."""
    blank = lambda found: "\n" * found.group().count("\n")  # noqa: E731 - lines keep their numbers
    text = re.sub(r"^(```+|:::+).*?^\1\s*$", blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", blank, text, flags=re.DOTALL)
    start, part = 1, ""
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        is_row = line.lstrip().startswith("|")
        if is_row or not line.strip() or re.match(r"\s*([-*+]|\d+\.|#+|>)\s", line):
            if part.strip():
                yield Prose(start, part)
            start, part = number, ""
        if is_row:
            yield from (Prose(number, cell) for cell in line.strip(" |").split("|") if cell.strip(" -:"))
        else:
            part += line + " "


def of_python(text: str) -> Iterator[Prose]:
    """Docstrings without their examples and literal blocks, and all other texts of several words, such as messages."""
    read: set[ast.AST] = set()  # docstrings, and the parts of f-strings
    messages: set[ast.AST] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            documented = ast.get_docstring(node)
            if documented and isinstance(node.body[0], ast.Expr):
                read.add(node.body[0].value)
                for part in re.split(r"\n\s*\n", documented):
                    if not re.fullmatch(r"( {4}.*\n?)+", part):
                        yield Prose(node.body[0].lineno, re.sub(r"(?ms)^\s*>>> .*", "", part))
        elif isinstance(node, ast.Raise) or (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOGGING
        ):
            messages.update(ast.walk(node))
        elif isinstance(node, ast.JoinedStr):
            read.update(node.values)
            pieces = (str(part.value) if isinstance(part, ast.Constant) else "`x`" for part in node.values)
            yield Prose(node.lineno, "".join(pieces), node in messages)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in read:
            has_words = " " in node.value.strip()
            yield from [Prose(node.lineno, node.value, node in messages)] * has_words


def of_native(text: str) -> Iterator[Prose]:
    """The texts of several words in C++ or JavaScript, such as messages."""
    for found in re.finditer(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+', text):
        spoken = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', found.group()))
        if " " in spoken.strip():
            yield Prose(text.count("\n", 0, found.start()) + 1, spoken, has_sentences=False)


def sentences(prose: str) -> Iterator[list[str]]:
    """Yield the words of each sentence or documented argument; code between backquotes is one word."""
    plain = re.sub(r"`[^`]+`", "code", re.sub(r"\]\([^)]*\)", "]", prose))
    for sentence in re.split(r"(?<=[.!?:;])\s+(?=[A-Z\[*(`]|code)|\n\s*(?=[-*] )|\n {4}(?=\w+: )", plain):
        words = re.findall(r"[A-Za-z][\w'’-]*", sentence)
        if words:
            yield words


def findings(path: str, text: str) -> tuple[list[Finding], int]:
    """What doesn't read well in a file, and how many sentences it has."""
    found, count = [], 0
    is_page = path.endswith(".md")
    written = MADE.sub(lambda table: "\n" * table.group().count("\n"), text)
    parts = list((of_markdown if is_page else of_python if path.endswith(".py") else of_native)(text))
    for part in parts:
        for words in sentences(part.text) if part.has_sentences else ():
            count += 1
            if len(words) > LONG_SENTENCE:
                found.append(Finding(path, part.line, "long sentence", " ".join(words)))
        spoken = re.sub(r"`[^`]+`", "code", part.text)
        found += [Finding(path, part.line, "word", word.group()) for word in NOT_WORDS.finditer(spoken)]
    if is_page:
        total = sum(len(words) for part in of_markdown(written) for words in sentences(part.text))
        if total > LONG_PAGE and path.startswith("docs/"):
            found.append(Finding(path, 1, "long page", f"{total} words"))
        found += [*_claims(path, text), *_owner(path, text)]
    return found, count


def _claims(path: str, text: str) -> Iterator[Finding]:
    """A line about what there isn't names the test that shows it in a comment; examples and made tables, too."""
    for number, line in enumerate(text.split("\n"), start=1):
        marks = SHOWN_BY.findall(line)
        for test, name in marks:
            if not _is_there(test, name):
                yield Finding(path, number, "claim", f"there is no test {test}::{name}")
        if CLAIM.search(re.sub(r"<!--.*?-->|`[^`]+`", "", line)) and not any(name for _, name in marks):
            yield Finding(path, number, "claim", f"no test is named: {line.strip()[:100]}")


def _is_there(path: str, name: str) -> bool:
    """Whether a file has the test of this name; without a name, whether there is the file."""
    if not Path(path).is_file():
        return False
    return not name or re.search(rf"(def |TEST\(){name}\b", Path(path).read_text()) is not None


def _owner(path: str, text: str) -> Iterator[Finding]:
    """A page of the guide has an example, which is run, a table made from the code, or names a test that owns it."""
    if path.startswith("docs/") and not (EXAMPLES in text or TABLES in text or SHOWN_BY.search(text)):
        yield Finding(
            path, 1, "owner", "add an example, or <!-- test: PATH::NAME --> of a test that fails with the page"
        )


def kind_of(path: str) -> str:
    """Return the kind of text, by the name of its file; empty if nobody reads it as such."""
    if path in ROOT_PAGES or (path.startswith("docs/") and path.endswith(".md")):
        return "guide"
    return "code" if (path.startswith(PYTHON) and path.endswith(".py")) or path.startswith(NATIVE) else ""


FRAGMENT = re.compile(r"\+[\w-]+\.(added|changed|deprecated|removed|fixed|security)\.md")


def of_fragment(path: Path) -> Iterator[Finding]:
    """What is wrong with a fragment of the changelog: its name, or more than one line of 160 characters."""
    if not FRAGMENT.fullmatch(path.name):
        yield Finding(str(path), 1, "fragment", "call it +NAME.KIND.md, with a KIND of CONTRIBUTING.md")
    text = path.read_text()
    if not text.strip() or text.strip() != text.removesuffix("\n") or "\n" in text.strip() or len(text) > 161:
        yield Finding(str(path), 1, "fragment", "write one line of at most 160 characters")
    spoken = re.sub(r"`[^`]+`", "code", text)
    yield from (Finding(str(path), 1, "word", word.group()) for word in NOT_WORDS.finditer(spoken))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="only these")
    options = parser.parse_args()
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n")
    counts: Counter[str] = Counter()
    errors = [one for path in sorted(Path("changes").glob("*.md")) for one in of_fragment(path)]
    for path in options.files or listed:
        if kind_of(path) and Path(path).is_file():
            found, spoken = findings(path, Path(path).read_text())
            counts[kind_of(path)] += spoken
            errors += found
    for one in errors:
        print(f"{one.path}:{one.line}: {one.kind}: {one.text}")
    print(", ".join(f"{kind}: {count} sentences" for kind, count in sorted(counts.items())))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
