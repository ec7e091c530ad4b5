"""Numbers, and what may be no number."""

from __future__ import annotations

SCALARS = {
    "i": """
1 $i.bit_length()
1 $i.bit_count()
1 pow($i, $n)
1 pow($i, $n, 97)
1 pow(2, $i % 70)
1 $i & ~$i
1 ($i >> 3) & 0x7
1 $i % -7
1 -$i // 3
1 $i // -$n
1 int($i / 2)
1 int($x * 100) / 100 > 1 and 1 or 0
1 int($x // 1)
1 round($i, -2)
1 round($x / 3)
1 math.trunc($x)
1 int(math.log2(abs($i) + 1))
1 math.lcm($i % 1000, $i % 1000)
1 math.factorial($n)
1 math.comb($n, 2)
1 math.prod($li)
1 sum($li, $k)
1 sum($p' for @w:s in $ls)
1 sum([$p, $p, $p])
1 sum(map(len, $ls))
1 sum(@a * @b for @a:i, @b:i in zip($li, $li))
1 sum(@v for @v:i in $li if @v % 2 == 0)
1 sum(ord(@ch) for @ch:s in $s)
1 sum($b)
1 max($b)
1 max(len(@w) for @w:s in $ls)
1 max([abs(@v) for @v:i in $li])
1 max((@v for @v:i in $li if @v > 0), default=-1)
1 min($li, key=abs)
1 max($li, key=lambda @v: -@v)
1 max($i, $i, $k)
1 min($i, $k, key=abs)
1 sorted($li)[len($li) // 2]
1 sorted($li, key=lambda @v: (@v % 3, @v))[0]
1 $li.index($i)
1 $ls.index($s, $n)
1 $ls.index(max($ls))
1 [$i, $i][$p]
1 len($ll)
1 len($ll[$k])
1 sum(len(@row) for @row:ls in $ll)
1 len(list(filter(None, $ls)))
1 len([@w for @w:s in $ls if @w not in STOP])
1 len(set($s.lower()) & {"a", "e", "i"})
1 len($Si | {1})
1 len($Ss ^ $Ss)
1 len($s.strip()) - len($s)
1 len(str($i))
1 len(str(abs($x)))
1 len($b.split())
1 len(F("{}{}", $s, $s))
1 len({*$ls, "a"})
1 len([*$li, $i])
1 len({**$dsi, "a": 1})
1 len(dict.fromkeys($ls))
1 len($dsi | {"a": 1})
1 len(range($i % 10, $k))
1 len(range(0, $n, 2))
1 len($lti)
1 sum(@n for _, @n:i in $lti)
1 sum(@n for @w:s, @n:i in $lti if @w)
1 dict($lti).get($s, 0)
1 dict(RULES).get($s, 0)
1 LIMITS.get($s, (1, 2))[1]
1 LIMITS[$s][0]
1 sum(@n for @w:s, @n:i in RULES if @w in $s)
1 len(TAGS.get($s, []))
1 clamp($i)
1 clamp($i, high=$k)
1 clamp($i, -5, 5)
1 (parsed($s) or 0)
1 (-1 if parsed($s) is None else 1)
1 len(pair_of($s)[0])
1 hash($i) % 2 + 1
1 int($s, 2)
1 int($s, 0)
1 int($b)
1 int($p) + int($x > 0)
1 int(F("{}", $i))
1 int.from_bytes($b[:8], "little", signed=True)
1 ord($b[:1])
1 $b[0] if $b else 0
1 $b[$i]
1 $b.count(b"a")
1 $b.index(b"a")
1 sum(1 for @v:i in $b if @v > 64)
1 $s.find($c, $k)
1 $s.find($c, $k, $k)
1 $s.rfind($s)
1 $s.count($c, $k)
1 $s.count("")
1 $s.index($w, 1)
1 $a.day * 100 + $a.month
1 $a.microsecond // 1000
1 $a.isocalendar()[1]
1 $e.isocalendar().week
1 $a.timetuple().tm_yday
1 ($a.date() - $e).days
1 ($e - dt.date(1970, 1, 1)).days
1 int($a.timestamp())
1 int($g.total_seconds())
1 $g.microseconds
1 $g.seconds // 3600
1 int($g / HOUR)
1 $g // HOUR
1 abs($g).days
1 (lambda v: v * 2 + 1)($i)
1 ($i if $i > $k else $k if $p else -$i)
1 ($i and $i)
1 ($i or $k)
1 (not $i) + 1
1 ($i > 0) - ($i < 0)
1 ($i == $i) + ($s == $s)
1 True + $i
1 $i * ($i > 0)
1 next((@n for @n:i, @w:s in enumerate($ls) if $p'), -1)
1 next((@v for @v:i in $li if @v > $k), 0)
1 operator.itemgetter(1)(($s, $i))
1 functools.reduce(lambda p, q: p * 31 + q, $li, 7) % 1000003
1 functools.reduce(operator.xor, $li, 0)
1 bisect.bisect_left([1, 5, 9, 100], $i)
1 bisect.bisect(LEVELS, $i)
1 collections.Counter($ls)["a"]
1 collections.Counter($s).most_common(1)[0][1]
1 statistics.median($li) > 1 and 1 or 0
1 divmod(-$i, 60)[1]
1 divmod($x, 2)[0] > 0 and 3 or 4
1 math.floor($x / 2) * 2
1 math.floor(math.log10(abs($x) + 1))
1 -(-$i // 10)
1 $i // 10 ** $n
1 $i % 10 ** $n
1 (~$i & 0xFFFF) ^ 0x55
1 ($i << 8 | $i & 0xFF)
1 int($i ** 0.5)
1 int(round($x, 1) * 10)
1 int(1e3)
1 min(len($s), $k)
1 abs(len($s) - len($s))
1 len($s) // (len($ls) or 1)
1 sum(@a != @b for @a:s, @b:s in zip($s, $s))
1 sum(@a == @b for @a:s, @b:s in zip($s, $s[1:]))
1 [@v for @v:i in $li if @v][0]
1 [@n for @n:i in range(10) if @n % 3 == $i % 3][-1]
1 len([1 for @a:s in $ls for @b:s in $ls if @a == @b])
1 max(0, $i - $i)
1 max(max($li), $i)
1 sum({@w: len(@w) for @w:s in $ls}.values())
1 {len(@w) for @w:s in $ls}.pop()
1 (@q:i := $i) + @q * 2
1 len(@q := $s) + @q.count("a")
""",
    "x": """
1 $x ** 3
1 $x ** -1
1 $x ** $x
1 2 ** $x
1 $i ** -1
1 $i ** 0.5
1 $i % $x
1 $i // $x
1 -$x ** 2
1 1 / $x
1 $x - $i
1 $x + $p
1 $x * ($x > 0)
1 float($x)
1 float("inf") if $p else $x
1 float(F("{:.3f}", $x))
1 float($s.strip() or 0)
1 float($s.replace(",", "."))
1 float($b)
1 round($x)  * 1.0
1 round($x * 100) / 100
1 round($x + $x, 3)
1 abs($x - $x)
1 sum($lx) / (len($lx) or 1)
1 sum($li) / len($li)
1 sum(@v * @v for @v:x in $lx)
1 sum((@v - 1.5) ** 2 for @v:x in $lx)
1 sum($lx, 0.5)
1 max(@v for @v:x in $lx)
1 max($lx, key=abs)
1 min($lx, default=0.0)
1 max($x, $i)
1 min($i, $x, 0.5)
1 max(0, $x)
1 max(0.0, min(1.0, $x))
1 sorted($lx)[len($lx) // 2]
1 sorted($lx, reverse=True)[0]
1 sorted([$x, $x], key=lambda @v: -@v)[0]
1 math.sqrt(sum(@v * @v for @v:x in $lx))
1 math.sqrt($x * $x + $x * $x)
1 math.log($x, 2)
1 math.log2($x)
1 math.log(abs($i) + 1)
1 math.exp(-abs($x))
1 math.radians($x)
1 math.degrees($x)
1 math.asin($x)
1 math.acos($x)
1 math.atan($x)
1 math.sinh($x)
1 math.cosh($x)
1 math.expm1($x)
1 math.modf($x)[0]
1 math.frexp($x)[0]
1 math.dist(($x, $x), ($x, $x))
1 math.hypot($x, $x, $x)
1 math.cbrt($x)
1 math.ulp($x)
1 math.nextafter($x, 0.0)
1 math.remainder($x, $x)
1 math.erf($x)
1 math.prod($lx)
1 math.inf if $x > 1 else -math.inf
1 math.nan if $p else $x
1 $x * math.pi / 180
1 ratio($x, $x)
1 ratio($i, $i)
1 ratio($x, $i)
1 clamp($x, 0.0, 1.0)
1 clamp($x)
1 statistics.mean($lx)
1 statistics.fmean($lx)
1 ($x or 1.0)
1 ($x and $x)
1 ($nx or 0.5)
1 ($x if $x == $x else 0.0)
1 divmod($x, $x)[1]
1 divmod($i, 0.5)[0]
1 $x // 0.1
1 $x % 1
1 $x % -0.3
1 $a.timestamp() % 60
1 $g.total_seconds() / 60
1 $g / dt.timedelta(seconds=1)
1 ($a - CUTOFF) / HOUR
1 np.clip($x, 0.0, 1.0)
1 np.sign($x)
1 np.minimum($x, $i)
1 np.float32($x)
1 np.mean(np.array($lx))
1 np.array($lx).sum()
1 int($x) / 2
1 complex($x, 1.0).real
1 float.fromhex("0x1.8p1") * $x
1 $x.as_integer_ratio()[1] * 1.0
1 $x.conjugate()
1 $x.real
1 {"a": 1.0, "b": 2.0}.get($s, 0.0)
1 [0.1, 0.2, 0.3][$i % 3]
1 (0.5, $x)[$p]
1 sum(@x1 * @y1 for @x1:x, @y1:x in zip($lx, [1.0, 2.0]))
1 (lambda v: v * 0.5)($x)
1 1e308 * $x
1 0.1 + 0.2 + $x
""",
    "ni": """
1 parsed($s)
1 ($i or None)
1 (t.n + 1 if t.n is not None else None)
1 (t.n and t.n % 7)
1 (int($s) if $s.isdigit() else None)
1 (len($ls) or None)
1 next((@v for @v:i in $li if @v > 2), None)
1 max($li, default=None)
1 (None if t.n == 0 else t.n)
1 (t.n if t.n else $ni)
""",
    "nx": """
1 (t.q * 2 if t.q is not None else None)
1 ($x / $x if $x else None)
1 (sum($lx) / len($lx) if $lx else None)
1 (None if $x != $x else $x)
1 max($lx, default=None)
1 (t.q or None)
1 (math.sqrt($x) if $x >= 0 else None)
""",
}
