"""Conditions, and times: what ifs and filters are about."""

from __future__ import annotations

SCALARS = {
    "p": """
1 $s <= $s < $s
1 0 <= $i <= $i < 100
1 0.0 < $x <= 1.0
1 $i == $x
1 $i != $i != $i
1 $p == $p
1 $p is True
1 $p ^ $p
1 $p & $p
1 $p != $p
1 ($p or $p) and not $p
1 $i is not None
1 $s == $s == "a"
1 bool($i)
1 bool($x)
1 bool($ls)
1 bool($dsi)
1 bool($g)
1 bool($b)
1 not $s
1 not $ls
1 not $x
1 not $i and $p
1 $s in "GET POST"
1 $s not in ("a", "b")
1 $s in ["a", t.u, ""]
1 $s in $s.split($c)
1 $s.lower() in {"get", "the"}
1 $s[:1] in "aeiou"
1 $s[-1:] == $c
1 $s[:3] == $w
1 $i in range($n)
1 $i in range(0, 100, 7)
1 $i in {1, 2, 3}
1 $i in [1, 2, $i]
1 $i not in LEVELS
1 $x in {0.0, 1.5}
1 $x in $lx
1 $b in (b"a", b"GET")
1 $b[:1] == b"G"
1 $b < $b
1 $e in ($e, $e)
1 $a == $a
1 $a <= $a < CUTOFF
1 $a.date() == $e
1 $e < dt.date(2020, 2, 29)
1 $g < dt.timedelta()
1 $g != $g
1 $a.hour in (8, 9, 10)
1 8 <= $a.hour < 18 and $a.weekday() < 5
1 $a.weekday() >= 5
1 any(@w in $s for @w:s in STOP)
1 any(@w == $s for @w:s in $ls)
1 any([$p, $p])
1 all([$p, $p])
1 all(@ch.isdigit() for @ch:s in $s)
1 all(@a <= @b for @a:i, @b:i in zip($li, $li[1:]))
1 any(@v > 1 for @v:i in $dsi.values())
1 any(@k.startswith("a") for @k:s in $dsi)
1 any(map(str.isdigit, $ls))
1 all(map(str.isalpha, $s))
1 $s == $s[::-1]
1 $s.lower() == $s.casefold()
1 $s.strip() != $s
1 $s.startswith(($w, $c))
1 $s.endswith(("a", ".log", ""))
1 $s.endswith($w, 0, $k)
1 $s.startswith($s)
1 $ls == []
1 $ls == ["a"]
1 $ls < $ls
1 $li == $li
1 $li > [1]
1 $Ss == $Ss
1 $Ss <= $Ss
1 $Ss < {"GET", "a", "the"}
1 $Si.issubset({1, 2, 3})
1 $Ss.isdisjoint($Ss)
1 $dsi == $dsi
1 ($s, $i) < ($s, $i)
1 ($x, $i) == ($x, $i)
1 ($i, $s) in [(1, "a"), ($i, $s)]
1 ($s, $s) in {("a", "b"), ($s, $s)}
1 isinstance($s, str)
1 isinstance($x, (int, float))
1 isinstance(t.n, int)
1 callable(len)
1 re.fullmatch(r"[a-z]+", $s) is not None
1 bool(re.search(r"(?i)error|warn", $s))
1 re.match(r"^\\s*$", $s) is None
1 re.search(r"\\d{2,}$", $s) is not None
1 math.isfinite($x)
1 math.isclose($x, $x, rel_tol=1e-3)
1 math.isclose($x, 0.0, abs_tol=0.5)
1 $x != $x
1 $x > $i
1 abs($x - $x) < 1e-9
1 t.n == $i
1 t.m == $s
1 t.n is not None and t.n > $k
1 t.m is not None and t.m.startswith("a")
1 (t.q or 0.0) > $x
1 t.n in (None, 1)
1 t.m in (None, "a")
1 (parsed($s) or 0) > 0
1 $s < $s or $i
1 operator.contains($s, "a")
1 $tsi > ("a", 1)
1 $tsi == ($s, $i)
1 ["a"] in $ll
1 $i % 2 == 0
1 $i & 1
""",
    "a": """
1 CUTOFF + $g
1 $a + HOUR * $k
1 $a + dt.timedelta(days=$k, seconds=$i % 100)
1 $a - dt.timedelta(minutes=$a.minute % 5, seconds=$a.second, microseconds=$a.microsecond)
1 $a.replace(year=$n + 2000)
1 $a.replace(hour=0)
1 dt.datetime($a.year, $a.month, $a.day)
1 dt.datetime.combine($a.date(), dt.time(1, 2))
1 dt.datetime.fromtimestamp($i % 100000, dt.timezone.utc).replace(tzinfo=None)
1 dt.datetime.utcfromtimestamp($i % 1000000)
1 dt.datetime.min + abs($g)
1 dt.datetime(1970, 1, 1) + $g * $k
1 max([$a, $a])
1 sorted([$a, $a, CUTOFF])[0]
1 min($a, $a, key=lambda v: v.minute)
1 ($a if $a > CUTOFF else CUTOFF)
""",
    "e": """
1 dt.date($a.year, $a.month, 1)
1 $e.replace(day=28)
1 $e - dt.timedelta(days=$e.weekday())
1 ($e.replace(day=1) + dt.timedelta(days=32)).replace(day=1)
1 ($a + HOUR).date()
1 min([$e, $e])
1 dt.date.fromisocalendar($n + 2000, $n + 1, 1)
1 dt.datetime.strptime($s, "%Y-%m-%d").date()
""",
    "g": """
1 dt.timedelta()
1 dt.timedelta(minutes=$n, seconds=-$n)
1 dt.timedelta(weeks=$k)
1 dt.timedelta(hours=$x)
1 dt.timedelta(microseconds=$i)
1 dt.timedelta(days=1) - $g
1 HOUR * $k
1 $k * $g
1 $x * $g
1 $g / $x
1 $g / $i
1 $g % dt.timedelta(minutes=7)
1 divmod($g, HOUR)[1]
1 sum([$g, $g], dt.timedelta())
1 abs($a - $a)
1 min($g, $g, HOUR)
1 $a - CUTOFF
1 $a - $a.replace(hour=0, minute=0, second=0, microsecond=0)
1 max([$g, HOUR])
1 +$g
""",
}
