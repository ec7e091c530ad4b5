"""The codemod that moves names of operators to `name=`. Its cases are text, so that the codemod itself leaves them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.codemod_names.__main__ import main
from tools.codemod_names.texts import Codemod

CASES = Path(__file__).with_name("codemod_names.txt").read_text(encoding="utf-8").split("===\n")
TITLES = [case.partition("\n")[0] for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=TITLES)
def test_calls_are_rewritten_once(case: str) -> None:
    title, _, texts = case.partition("\n")
    old, _, new = texts.partition("---\n")
    codemod, path = Codemod(), Path("program" + title.split()[0])
    assert codemod.file(path, old) == new
    assert codemod.file(path, new) == new
    assert codemod.doubtful == []


def test_what_cant_be_read_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, old = tmp_path / "program.py", 's.map("double"' + ", double)\n"
    program.write_text(old)
    assert main(["--check", str(program)]) == 1
    assert program.read_text() == old
    assert main([str(tmp_path)]) == 0
    assert program.read_text() == 's.map(double, name="double")\n'
    assert main(["--check", str(program)]) == 0
    program.write_text("def broken(:\n    " + old)
    assert main([str(program)]) == 1
    assert f"{program}: can't be read: {old.strip()}" in capsys.readouterr().err
