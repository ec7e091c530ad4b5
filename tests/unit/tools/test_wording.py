"""The check of wording finds what it is there for, and counts sentences as people do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.wording import Finding, findings, of_fragment, sentences

LONG = "One " + "and one " * 13 + "end."


HERE = "<!-- test: tests/unit/tools/test_wording.py::test_a_page_is_bounded -->"


def kinds(text: str, path: str = "docs/page.md") -> list[str]:
    """The kinds of findings in a page that has an owner."""
    owned = f"{HERE}\n\n{text}" if path.endswith(".md") else text
    return [one.kind for one in findings(path, owned)[0]]


def test_a_sentence_has_words_and_code_is_one_of_them() -> None:
    assert [len(words) for words in sentences("It runs `a = f(b, c)` now. [A link](to/a page.md) follows!")] == [4, 3]


def test_long_sentences_are_found_in_pages_docstrings_and_messages() -> None:
    assert kinds(LONG) == ["long sentence"]
    assert kinds(f'def f():\n    """{LONG}"""\n', "rayelastic/x.py") == ["long sentence"]
    assert kinds(f'def f():\n    raise ValueError("{LONG}")\n', "rayelastic/x.py") == ["long sentence"]


@pytest.mark.parametrize(
    "text", ["The job goes back.", "It tells why.", "A lane that can't be had.", "There is a way out."]
)
def test_words_of_our_own_are_found(text: str) -> None:
    assert "word" in kinds(text)


def test_code_is_not_read_as_prose() -> None:
    assert kinds("```python\ntells = gives_back(token)\n```\nCall `tells`.") == []


def test_examples_and_literal_blocks_of_docstrings_are_not_prose() -> None:
    shown = f"First.\n\n    frame    {LONG}\n\n>>> f()\n'{LONG}'\n"
    assert kinds(f'"""{shown}"""\n', "rayelastic/x.py") == []
    with_argument = f'def f():\n    """First.\n\n    Args:\n        a: {LONG}\n    """\n'
    assert kinds(with_argument, "rayelastic/x.py") == ["long sentence"]


def test_the_name_of_a_method_is_no_word() -> None:
    assert kinds("Call out.give(tuple). Connection refused.") == []
    assert kinds("It gives tuples.") == ["word"]


def test_a_page_is_bounded() -> None:
    assert kinds("Short words. " * 501) == ["long page"]


def test_a_claim_needs_a_test_that_is_there() -> None:
    assert kinds("It can't do that.") == ["claim"]
    assert kinds(f"It can't do that. {HERE}") == []
    assert kinds("It can't do that. <!-- test: tests/unit/tools/test_wording.py -->") == ["claim"]
    assert kinds(f"It can't do that.\n{HERE}") == ["claim"]  # grep shows lines


@pytest.mark.parametrize("around", ["```text\n{}\n```", "<!-- made: errors -->\n| {} |\n<!-- end -->\n"])
def test_a_claim_in_an_example_or_a_made_table_needs_a_test_too(around: str) -> None:
    assert kinds(around.format("This isn't supported."), "docs/decisions/page.md") == ["claim"]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("All is well.", ["owner"]),
        ("```text\nrayelastic demo\n```", ["owner"]),
        ("```python\nrun()\n```", []),
        ("<!-- made: settings -->\n<!-- end -->", []),
        (HERE, []),
        ("<!-- test: native_sched/tests/engine/test_token.cpp::token_is_fair_to_who_waits -->", []),
        ("<!-- test: tests/unit/tools/test_wording.py -->", []),
        ("<!-- test: tests/unit/tools/test_wording.py::test_nothing -->", ["claim"]),
        (f"{HERE} <!-- test: tests/unit/test_gone.py -->", ["claim"]),
    ],
)
def test_a_page_has_an_owner_that_is_there(text: str, kinds: list[str]) -> None:
    found: list[Finding] = findings("docs/decisions/page.md", text)[0]
    assert [one.kind for one in found] == kinds


def test_rows_of_tables_are_read_by_cell() -> None:
    assert kinds(f"| a | b |\n|---|---|\n| {'word ' * 20}| {'word ' * 20}|\n") == []


def test_a_fragment_is_one_line_with_a_kind(tmp_path: Path) -> None:
    right = tmp_path / "+keys.added.md"
    right.write_text("`key_by` takes functions.\n")
    assert list(of_fragment(right)) == []
    for name, text in {
        "keys.new.md": "A.\n",
        "+a.fixed.md": "A.\nB.\n",
        "+b.fixed.md": "",
        "+c.fixed.md": "x" * 162,
    }.items():
        wrong = tmp_path / name
        wrong.write_text(text)
        assert [one.kind for one in of_fragment(wrong)] == ["fragment"], name


def test_a_message_in_a_variable_is_read_and_other_texts_may_be_long() -> None:
    assert kinds('HINT = "it gives nothing"\n', "rayelastic/x.py") == ["word"]
    assert kinds("WHY = f\"'{name}' tells nothing\"\n", "rayelastic/x.py") == ["word"]
    assert kinds(f'SQL = "{LONG}"\n', "rayelastic/x.py") == []
    assert kinds('NAME = "gives"\n', "rayelastic/x.py") == []


def test_native_messages_and_those_of_the_web_ui_are_read() -> None:
    assert kinds('throw Refused("the batch is "\n   "refused");\n', "native_sched/src/x.cpp") == ["word"]
    assert kinds('// it gives "x"\nshow("gives");', "rayelastic/web/assets/x.js") == []
