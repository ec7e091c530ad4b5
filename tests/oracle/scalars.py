"""Expressions that people write, by the type of scalar that they give: templates as grammar.py describes them."""

from __future__ import annotations

SCALARS = {
    "s": """
6 $s.lower()
6 $s.upper()
6 $s.strip()
2 $s.lstrip()
2 $s.rstrip()
3 $s.strip($c)
2 $s.rstrip($w)
5 $s.replace($c, $c)
2 $s.replace($w, $s)
1 $s.replace($c, $w, $n)
4 $s[$k:]
4 $s[:$k]
3 $s[$k:$k]
2 $s[::-1]
1 $s[$k:$k:2]
4 $s[$k]
4 $s + $s
2 $s * $n
4 F("{}={}", $s, $i)
3 F("{:>8}|{:<6}", $s, $s)
2 F("{:05d},{:x}", $i, $i)
3 F("{:.2f}", $x)
2 F("{}", $x)
2 F("{:e} {:g}", $x, $x)
1 F("{:,}", $i)
1 F("{~r}", $s)
3 "%s-%d" % ($s, $i)
2 "%5.1f%%" % $x
3 "{}:{}".format($s, $i)
4 str($i)
3 str($x)
2 str($p)
5 $c.join($ls)
4 $c.join(sorted($ls))
3 "".join($s' for @w:s in $ls)
3 "".join([$s' for @ch:s in $s if $p'])
2 $c.join($dss.keys())
2 $c.join($dsi)
1 $c.join(sorted($Ss))
4 $s.split($c)[0]
2 $s.split()[$k]
3 $s.partition($c)[2]
2 $s.partition($c)[0]
1 $s.rpartition($c)[2]
1 $s.rsplit($c, 1)[0]
2 $s.split($c, 1)[-1]
1 $s.title()
1 $s.capitalize()
1 $s.casefold()
1 $s.swapcase()
1 $s.zfill($n)
1 $s.rjust($n)
1 $s.ljust($n, "*")
1 $s.center($n)
1 $s.expandtabs()
2 $s.removeprefix($w)
2 $s.removesuffix($w)
5 ($s if $p else $s)
2 ($s or $s)
3 $dss.get($s, $s)
3 $dis.get($i, $s)
2 $dss[$s]
2 NAMES.get($i, $s)
2 ($ns or $s)
2 (t.m if t.m is not None else $s)
1 chr($i % 128)
2 min($s, $s)
2 max($ls)
1 min($ls, key=len)
1 max($ls, key=len, default="")
2 $ls[$k]
2 sorted($ls)[0]
1 repr($s)
1 hex($i)
1 format($i, "b")
2 $e.isoformat()
2 $a.isoformat()
1 $a.strftime("%Y-%m-%d %H:%M:%S")
1 str($a)
1 str($g)
1 re.sub(r"\\d+", "#", $s)
1 $b.decode("utf-8", "replace")
1 $b.hex()
2 ["low", "mid", "high"][$i % 3]
2 ("yes", "no")[$p]
""",
    "i": """
6 len($s)
3 len($b)
4 len($ls)
3 len($dsi)
3 len(set($ls))
2 len($Ss)
5 $i + $i
4 $i - $i
3 $i * $k
2 $i * $i
3 $i // $i
3 $i % $i
3 $i % 7
2 $i // 60
2 $i & 255
1 $i | $i
1 $i ^ $i
1 $i << $n
1 $i >> $n
1 ~$i
2 -$i
2 abs($i)
1 $i ** 2
2 divmod($i, $i)[$bit]
4 int($s)
1 int($s, 16)
3 int($x)
2 round($x)
1 math.floor($x)
1 math.ceil($x)
1 int($p)
3 $s.find($s)
2 $s.rfind($c)
2 $s.index($c)
4 $s.count($c)
2 $s.count($s)
2 ord($s[$k])
1 ord($c)
4 $dsi.get($s, $i)
4 $dsi.get($s, 0) + 1
3 $dsi[$s]
3 {"GET": 1, "POST": 2}.get($s, 0)
3 {$s: 1, $s: 2}[$s]
3 len({$s: 1, $s: 2})
2 len({$x: 1, $x: 2})
2 {0.0: 5, 1.5: 2}.get($x, -1)
2 $dxi.get($x, $i)
2 $dbi.get($b, $i)
2 $dti.get(($s, $i), 0)
3 $dii.get($i, $i)
2 max($dsi.values())
2 sum($dsi.values())
2 CODES.get($s, 0)
2 LEVELS[$i % 3]
2 $li[$k]
4 sum($li)
2 max($li)
2 min($li, default=0)
3 sum(len(@w) for @w:s in $ls)
3 sum(1 for @w:s in $ls if $p')
2 sum(@v for @v:i in $li if @v > 0)
2 min($i, $i)
3 max($i, $i)
1 $li.count($i)
1 $ls.count($s)
1 $ls.index($s)
4 ($i if $p else $i)
2 (t.n or $i)
2 (t.n if t.n is not None else $i)
2 $a.year
2 $a.hour + $a.minute
1 $a.weekday()
1 $a.toordinal()
1 $e.month
1 $e.day
1 $e.isoweekday()
1 $e.toordinal()
2 ($e - $e).days
2 $g.days
1 $g.seconds
1 $g // $g
1 $g // dt.timedelta(milliseconds=1)
1 int.from_bytes($b[:4], "big")
1 $b[$k]
1 $b.find(b"a")
2 int($s.split($c)[0])
2 len($s.encode())
1 math.gcd($i, $i)
1 math.isqrt($n)
1 bool($s) + $i
1 $tsi[1]
""",
    "x": """
5 $x + $x
4 $x - $x
4 $x * $x
3 $x / $x
3 $x / $i
3 $i / $i
2 $x // $x
2 $x % $x
2 $x ** 2
1 $x ** 0.5
2 -$x
2 abs($x)
4 round($x, 2)
2 round($x, $n)
1 round($x, -1)
4 float($s)
3 float($i)
3 $x * $i
2 math.sqrt($x)
2 math.sqrt(abs($x))
1 math.sin($x)
1 math.cos($x)
2 math.log($x)
1 math.log1p($x)
1 math.exp($x)
1 math.atan2($x, $x)
1 math.fmod($x, $x)
1 math.hypot($x, $x)
1 math.pow($x, $x)
1 math.copysign($x, $x)
1 math.log10($x)
1 math.tanh($x)
2 np.log1p($x)
2 np.round($x, 2)
1 np.sqrt(abs($x))
1 np.exp($x)
1 np.log($x)
1 np.abs($x)
1 np.floor($x)
1 np.maximum($x, $x)
1 np.float64($x) * 2
1 np.sin($x)
3 min($x, $x)
3 max($x, $x)
3 ($x if $p else $x)
2 RATES.get($s, $x)
2 RATES[$s]
2 (t.q if t.q is not None else $x)
1 (t.q or $x)
2 sum($lx)
2 max($lx)
1 $lx[$k]
2 sum($lx) / len($lx)
3 $g.total_seconds()
2 $g / $g
3 ($a - $a).total_seconds()
1 $a.timestamp()
2 $dsx.get($s, $x)
1 math.fsum($lx)
""",
    "p": """
5 $s == $s
3 $s != $w
4 $s in $s
3 $c in $s
5 $s in $ls
4 $s in $dsi
4 $s not in $dss
4 $s in {"GET", "POST", "the"}
3 $s in ("GET", "POST")
3 $s in STOP
3 $s in $Ss
2 $x in [$x, $x]
1 $x in ($x, $x)
1 $x in $dxi
2 $i in ($i, 1, 2)
2 $i in $Si
2 $b in $dbi
2 ($s, $i) in $dti
4 $i > $i
4 $i == $i
3 $x < $x
3 $x == $x
2 $i < $x
1 $n <= $i < 100
4 $s.startswith($w)
3 $s.endswith($c)
2 $s.startswith(("a", "GET", "ä"))
1 $s.startswith($w, $k)
3 $s.isdigit()
2 $s.isalpha()
2 $s.isspace()
1 $s.isalnum()
1 $s.isupper()
1 $s.islower()
1 $s.isdecimal()
1 $s.isnumeric()
1 $s.istitle()
1 $s.isidentifier()
1 $s.isprintable()
1 $s.isascii()
3 not $p
4 $p and $p
3 $p or $p
2 bool($s)
2 $s < $s
2 $ls == $ls
1 ($s, $i) == ($s, $i)
1 ($x,) == ($x,)
2 $a > CUTOFF
2 $a < $a
2 $e == $e
2 $g > HOUR
1 $g == $g
3 any($p' for @w:s in $ls)
3 all($p' for @w:s in $ls)
1 any($p' for @v:i in $li)
2 WORD.search($s) is not None
2 bool(PAIR.match($s))
1 re.match(r"\\d+", $s) is not None
2 math.isnan($x)
1 math.isinf($x)
1 math.isclose($x, $x)
1 np.isnan($x)
2 t.n is None
1 t.m is not None
1 t.q == $x
2 $b == $b
1 b"a" in $b
1 $b.startswith(b"GET")
1 $i in $dii
1 $x.is_integer()
1 isinstance($i, int)
""",
    "a": """
3 $a + $g
2 $a - $g
2 $a.replace(minute=0, second=0, microsecond=0)
1 $a.replace(day=1)
2 ($a if $p else $a)
2 max($a, $a)
2 min($a, CUTOFF)
1 dt.datetime(2020, 1, 1) + dt.timedelta(seconds=$i)
1 dt.datetime($n + 1970, $n + 1, $n + 1)
1 dt.datetime.fromisoformat($s)
1 dt.datetime.strptime($s, "%Y-%m-%d")
1 dt.datetime.combine($e, dt.time())
""",
    "e": """
3 $a.date()
2 $e + dt.timedelta(days=$k)
1 $e + $g
1 $e - $g
1 $e.replace(day=1)
2 ($e if $p else $e)
1 max($e, $e)
1 dt.date($n + 2000, 2, $n + 23)
1 dt.date.fromordinal($n + 1000)
1 dt.date.fromisoformat($s)
""",
    "g": """
3 $a - $a
3 $e - $e
3 $g + $g
2 $g - $g
2 $g * $k
3 $g * 1.5
2 $g * $x
1 $g / 3
1 $g / $k
1 $g // $k
2 -$g
1 abs($g)
2 ($g if $p else $g)
2 max($g, HOUR)
2 dt.timedelta(seconds=$i)
2 dt.timedelta(days=$k, hours=$k)
1 dt.timedelta(seconds=$x)
1 dt.timedelta(milliseconds=$i)
1 $g % HOUR
""",
    "b": """
2 $b + $b
3 $b[$k:]
2 $b[:$k]
2 $b.strip()
2 $b.lower()
1 $b.upper()
1 $b.split(b",")[0]
1 $b.replace(b"a", b"")
1 $s.encode()
1 ($b if $p else $b)
1 $b * $n
""",
    "ns": """
3 t.m
3 ($s if $p else None)
2 $dss.get($s)
2 NAMES.get($i)
""",
    "ni": """
3 t.n
3 ($i if $p else None)
2 $dsi.get($s)
2 CODES.get($s)
""",
    "nx": """
3 t.q
3 ($x if $p else None)
1 RATES.get($s)
""",
}  # fmt: skip
