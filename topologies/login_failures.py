"""Attempts to break in, from a log of failed logins (PLDI'17 Fig. 1; network monitoring of Joker 5.4, J34).

Lines of syslog are parsed; those of sshd about a failed authentication become failures (PLDI'17 Fig. 1). The last
failures of each remote host are a window. If they came in a short time (cut off), the topology emits an attempt to
break in with its duration (diff), as in Joker's Fig. 20. Lines of other forms are counted separately.

    rayelastic run rayelastic.topologies.login_failures --input /var/log/auth.log
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import rayelastic as rel

NAMES = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"
MONTHS = {name: number for number, name in enumerate(NAMES.split(), start=1)}
OUTPUT = "results/login_failures"


class Line(NamedTuple):
    """A line of a log, without its end."""

    line: str


class LogLine(NamedTuple):
    """A line of syslog."""

    time: int  # seconds since 1970 by the clock of the log
    host: str
    service: str
    message: str


class Failure(NamedTuple):
    """A failed authentication; fields that the line lacks are empty."""

    time: int
    uid: str
    euid: str
    tty: str
    rhost: str
    user: str
    failures: int  # that the line stands for: "PAM 5 more authentication failures"


class Attempt(NamedTuple):
    """A remote host that failed often in a short time."""

    rhost: str
    first: int
    seconds: int
    user: str
    failures: int


def is_log_line(t: Line) -> bool:
    """Return whether a line begins like `Dec  9 06:55:46 host `."""
    line = t.line
    if len(line) < 18 or line[:3] not in MONTHS:
        return False
    if line[3] != " " or line[6] != " " or line[9] != ":" or line[12] != ":" or line[15] != " ":
        return False
    day = line[4:6].strip()
    return day.isdecimal() and line[7:9].isdecimal() and line[10:12].isdecimal() and line[13:15].isdecimal()


def parser(year: int) -> Callable[[Any], LogLine]:
    """Return the function that parses a line of syslog, which lacks the year."""
    start = dt.date(1970, 1, 1)
    days = {name: (dt.date(year, number, 1) - start).days - 1 for name, number in MONTHS.items()}

    def parse(t: Line) -> LogLine:
        line = t.line
        hours = (days[line[:3]] + int(line[4:6])) * 24 + int(line[7:9])
        host, _, rest = line[16:].partition(" ")
        service, _, message = rest.partition(": ")
        return LogLine((hours * 60 + int(line[10:12])) * 60 + int(line[13:15]), host, service, message)

    return parse


def is_failure(t: LogLine) -> bool:
    """Return the filter of PLDI'17 Fig. 1."""
    return "sshd" in t.service and "authentication failure" in t.message


def value(message: str, name: str) -> str:
    """Return what follows `name` up to the next space; empty if it isn't there."""
    at = message.find(name)
    if at < 0:
        return ""
    return message[at + len(name) :].partition(" ")[0]


def failure(t: LogLine) -> Failure:
    """Take the message of a failed authentication apart."""
    message = t.message
    failures = 1
    if message.startswith("PAM "):
        count = message[4:].partition(" ")[0]
        if count.isdecimal():
            failures = int(count)
    return Failure(
        t.time,
        value(message, " uid="),
        value(message, " euid="),
        value(message, " tty="),
        value(message, " rhost="),
        value(message, " user="),
        failures,
    )


def within(seconds: int) -> Callable[[Any], bool]:
    """Return the cut off: whether a window of failures is that short."""

    def cut_off(t: Any) -> bool:
        took: int = t.last - t.first
        return 0 <= took <= seconds

    return cut_off


def diff(t: Any) -> Attempt:
    """How long the failures took."""
    return Attempt(t.rhost, t.first, t.last - t.first, t.user, t.failures)


def synthetic(count: int, seed: int = 0) -> Iterator[str]:
    """Lines like those of a real server: logins, attacks in bursts, other services, a few lines of other forms."""
    chance = random.Random(seed)
    names = ("root", "admin", "müller", "oracle", "git", "test9", "o'neil", "guest")
    attackers = [f"203.0.113.{n}" for n in range(20)] + ["2001:db8::bad:1", "scan.example.net"]
    clock = dt.datetime(2025, 2, 27, 23, tzinfo=dt.UTC)
    attacker, left = attackers[0], 0
    for _ in range(count):
        clock += dt.timedelta(seconds=chance.choice((0, 0, 1, 2)) if left else chance.randrange(40))
        head = f"{NAMES.split()[clock.month - 1]} {clock.day:>2} {clock:%H:%M:%S} gate{chance.randrange(3)}"
        pid = chance.randrange(1000, 30000)
        if left == 0 and chance.random() < 0.02:
            attacker, left = chance.choice(attackers), chance.randrange(3, 30)
        if left:
            left -= 1
            user = chance.choice(names)
            pam = "logname= uid=0 euid=0 tty=ssh ruser= rhost=" + attacker
            yield chance.choice(
                (
                    f"{head} sshd[{pid}]: pam_unix(sshd:auth): authentication failure; {pam}  user={user}",
                    f"{head} sshd[{pid}]: pam_unix(sshd:auth): authentication failure; {pam} ",
                    f"{head} sshd[{pid}]: PAM {pid % 5 + 2} more authentication failures; {pam}  user={user}",
                    f"{head} sshd-session[{pid}]: Failed password for {user} from {attacker} port {pid} ssh2",
                )
            )
        else:
            yield chance.choice(
                (
                    f"{head} sshd[{pid}]: Accepted publickey for git from 198.51.100.7 port {pid} ssh2",
                    f"{head} CRON[{pid}]: pam_unix(cron:session): session opened for user root by (uid=0)",
                    f"{head} kernel: [{pid}.25] usb 1-1: new high-speed USB device",
                    f"{head} su[{pid}]: pam_unix(su:auth): authentication failure; logname=x uid=1000 user=root",
                    f"{head} last message repeated {pid} times",
                    f"{clock.isoformat()} gate0 sshd[{pid}]: authentication failure; rhost={attacker}",
                    "-- MARK --",
                    "",
                )
            )


def build(
    input: str | None = None,
    output: str = OUTPUT,
    attempts: int = 5,
    seconds: int = 60,
    year: int = 2025,
    lines: int = 100_000,
    repeat: int = 1,
) -> rel.Topology:
    """Declare the topology.

    Args:
        input: a log, a folder or a glob of logs; made up if not given.
        output: the folder that the attempts are written to, as Parquet.
        attempts: how many lines about failures make a window.
        seconds: in which they have to come.
        year: of the log, whose lines have none.
        lines: how many to make up.
        repeat: how often what is made up is gone through.
    """
    topology = rel.Topology("login_failures")
    read = topology.source(rel.text(input) if input else rel.arrow(_made_up(lines, repeat), Line), name="lines")
    forms = read.split(name="forms", log=is_log_line)
    forms.rest.sink(rel.count(), name="other_forms")
    failures = (
        forms.log.map(parser(year), name="parse")
        .filter(is_failure, name="auth_failures")
        .map(failure, name="failure_parser")
    )
    windows = failures.key_by("rhost").window(count=attempts, slide=1)
    window = windows.aggregate(
        name="failure_window",
        first=rel.first("time"),
        last=rel.last("time"),
        user=rel.last("user"),
        failures=rel.sum("failures"),
    )
    window.filter(within(seconds), name="cut_off").map(diff, name="diff").sink(rel.parquet(output), name="out")
    return topology


def _made_up(lines: int, repeat: int) -> Any:
    import pyarrow as pa

    table = pa.table({"line": pa.array(synthetic(lines), pa.string())})
    return pa.concat_tables([table] * repeat)


def report(result: rel.JobResult, output: str = OUTPUT, top: int = 10) -> str:
    """Return the hosts with most attempts, and how many lines weren't of the form.

    Args:
        result: what the job left.
        output: the folder of the attempts.
        top: how many hosts to show.
    """
    import pyarrow.dataset as dataset

    attempts = dataset.dataset(output, format="parquet").to_table()
    hosts = attempts.group_by("rhost").aggregate([("rhost", "count"), ("seconds", "min")])
    worst = hosts.sort_by([("rhost_count", "descending"), ("rhost", "ascending")]).slice(0, top).to_pylist()
    rows = [
        f"{row['rhost']:<40} {row['rhost_count']:>7,} attempts, the fastest in {row['seconds_min']} s" for row in worst
    ]
    counted = f"{attempts.num_rows:,} attempts of {hosts.num_rows:,} hosts"
    return "\n".join([*rows, f"{counted}; {result['other_forms']:,} lines of other forms"])
