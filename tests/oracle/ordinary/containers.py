"""Lists, sets, dicts, and containers in them; what is made of them."""

from __future__ import annotations

CONTAINERS = {
    "ls": """
1 [@w.strip() for @w:s in $s.split($c)]
1 [@w for @w:s in $ls if @w and @w not in STOP]
1 [@w for @row:ls in $ll for @w:s in @row]
1 [@a + @b for @a:s in $ls[:2] for @b:s in $ls[:2]]
1 [@w for @w:s, _ in $lti]
1 [@k for @k:s, @v:i in sorted($dsi.items(), key=lambda @kv: -@kv[1])]
1 [@ch for @ch:s in $s if @ch.isalpha()]
1 [$s[@n:@n + 2] for @n:i in range(0, len($s), 2)]
1 [@a + @b for @a:s, @b:s in zip($s, $s[1:])]
1 [F("{}:{}", @n, @w) for @n:i, @w:s in enumerate($ls, 1)]
1 [str(@v) for @v:i in $li]
1 [@w if $p' else "-" for @w:s in $ls]
1 [@w for @n:i, @w:s in enumerate($ls) if @w not in $ls[:@n]]
1 [@w for @w:s in $ls][:$k]
1 list(dict.fromkeys($ls))
1 list(reversed($ls))
1 list(filter(None, $ls))
1 list(filter(lambda @w: $p', $ls))
1 list(map(lambda @w: @w[:2], $ls))
1 list(map(str.strip, $s.split($c)))
1 list(set($ls[:1]))
1 list($s.partition($c))
1 sorted($ls, key=str.lower)
1 sorted($ls, key=lambda @w: (len(@w), @w))
1 sorted($ls, key=lambda @w: @w[::-1], reverse=True)
1 sorted($Ss | {"a"})
1 sorted($dsi, key=lambda @k: (-$dsi.get(@k, 0), @k))
1 $ls * 2
1 $ls[::2]
1 $ls[-2:]
1 [*$ls, $s]
1 re.split(r"[,;]\\s*", $s)
1 re.split(r"(\\d)", $s)
1 re.findall(r"[A-Z]\\w*", $s)
1 re.findall(r"(\\w)=", $s)
1 [m.group() for m in re.finditer(r"\\d+", $s)]
1 $s.lower().split()
1 $s.replace(",", " ").split()
1 $s.splitlines(True)
1 $s.split("\\n")
1 $s.split(sep=$c, maxsplit=1)
1 $ls.copy()
1 [$s] * $n
1 []  + $ls
1 TAGS.get($s, $ls)
1 ($ls if $p else $ls)
1 ($ls or [""])
1 [@w for @w:s, @n:i in RULES if @n > 0]
""",
    "li": """
1 [@v for @v:i in $li if $p']
1 [@v * @v for @v:i in range($n)]
1 [@a + @b for @a:i, @b:i in zip($li, $li)]
1 [@n * @v for @n:i, @v:i in enumerate($li)]
1 [@b - @a for @a:i, @b:i in zip($li, $li[1:])]
1 [@n for _, @n:i in $lti]
1 [int(@w) for @w:s in re.findall(r"\\d+", $s)]
1 [int(@w or 0) for @w:s in $s.split(",")]
1 [@v for @v:i in $b]
1 [0] * $n
1 [$i] * 3
1 list($b)
1 list(range($k, $n))
1 list(range($n, 0, -1))
1 list(range(0, $i % 20, 3))
1 list(map(lambda @v: @v % 10, $li))
1 list(map(ord, $s))
1 list(map(len, $s.split($c)))
1 list(filter(lambda @v: @v > 0, $li))
1 list(reversed($li))
1 list({1, $i})
1 sorted($li, reverse=True)
1 sorted($li, key=abs)
1 sorted($li, key=lambda @v: -@v)[:3]
1 sorted(set($li))
1 $li[::-1]
1 $li[-$n:]
1 [*$li, *$li]
1 [min($i, $i), max($i, $i)]
1 ($li if $p else [])
1 list(dict($lti).values())
1 [@m for @n:i in range(3) for @m:i in range(@n)]
1 list(itertools.accumulate($li))
""",
    "lx": """
1 [@v * 2 for @v:x in $lx]
1 [@v for @v:x in $lx if @v > 0]
1 [@v / 2 for @v:i in $li]
1 [round(@v, 1) for @v:x in $lx]
1 [abs(@v) for @v:x in $lx]
1 list(map(float, $ls))
1 list(map(abs, $lx))
1 [0.0] * $n
1 [$x, $i, 0.5]
1 $lx + [1.5]
1 $lx[1:]
1 sorted($lx, key=abs)
1 [@a - @b for @a:x, @b:x in zip($lx, $lx[1:])]
1 list($dsx.values())
""",
    "dsi": """
1 {@w: @n for @w:s, @n:i in $lti}
1 {@w: $ls.count(@w) for @w:s in $ls}
1 {@w: $s.count(@w) for @w:s in set($s.split())}
1 {@k: @v for @k:s, @v:i in $dsi.items() if @v > 0}
1 {@k.lower(): @v for @k:s, @v:i in $dsi.items()}
1 {**$dsi, $s: $i}
1 {**$dsi, **{"a": 5}}
1 $dsi | $dsi
1 dict($dsi)
1 dict($lti)
1 dict($dsi, b=2)
1 dict.fromkeys($ls, 0)
1 dict(sorted($dsi.items()))
1 dict([("a", 1), ($s, $i)])
1 $dsi.copy()
1 {@w: @w.count("a") for @w:s in $s.split($c) if @w}
1 CODES
1 collections.Counter($ls)
""",
    "dss": """
1 {@k: @v for @k:s, @v:s in (@p.split("=", 1) for @p:s in $s.split("&") if "=" in @p)}
1 dict([@p.split("=", 1) for @p:s in $s.split(";") if "=" in @p])
1 dict(zip($ls, $ls))
1 dict(pair_of(@p) for @p:s in $s.split(";"))
1 {@v: @k for @k:s, @v:s in $dss.items()}
1 {**$dss, "a": "z"}
1 $dss | {"a": $s}
1 {str(@n): @w for @n:i, @w:s in enumerate($ls)}
1 dict(re.findall(r"(\\w+)=(\\w+)", $s))
""",
    "dsx": """
1 {@k: @v / 2 for @k:s, @v:i in $dsi.items()}
1 {@k: round(@v, 2) for @k:s, @v:x in $dsx.items()}
1 dict(zip($ls, $lx))
1 RATES
""",
    "Ss": """
1 {@w.lower() for @w:s in $ls}
1 {@ch for @ch:s in $s if @ch.isalpha()}
1 set()  | $Ss
1 $Ss - STOP
1 $Ss ^ {"a"}
1 set($dsi)
1 frozenset($ls)
1 $Ss.union($ls)
1 $Ss.intersection($ls)
1 {@w for @row:ls in $ll for @w:s in @row}
1 {*$ls, $s}
1 ({$s} if $p else set())
""",
    "Si": """
1 {@v % 3 for @v:i in $li}
1 set(range($n))
1 $Si & {1, 2, 3}
1 $Si - {0}
1 set($b)
1 set($dsi.values())
""",
    "tsi": """
1 min($lti)
1 $lti[$k]
1 max($lti, key=lambda @kv: @kv[1])
1 sorted($dsi.items(), key=lambda @kv: (-@kv[1], @kv[0]))[0]
1 (pair_of($s)[0], $i)
1 min((len(@w), @w) for @w:s in $ls)[::-1]
1 ($tsi if $p else $tsi)
""",
    "ll": """
3 [@p.split($c) for @p:s in $ls]
2 [[$s, $s], $ls]
2 [@w.split("=") for @w:s in $s.split(";")]
1 [$ls, $ls]
1 [[@w] for @w:s in $ls]
1 sorted([$ls, $ls])
1 [@r:ls for @r in $ll if @r]
1 [list(@p) for @p:s in $ls]
1 list(map(str.split, $ls))
""",
    "lti": """
3 list($dsi.items())
3 [(@w, len(@w)) for @w:s in $ls]
2 sorted($dsi.items())
2 [($s, $i), ("a", 1)]
2 list(zip($ls, $li))
1 sorted($lti, key=lambda @kv: @kv[1])
1 sorted($lti, key=lambda @kv: (-@kv[1], @kv[0]))
1 sorted($dsi.items(), key=operator.itemgetter(1), reverse=True)
1 [(@w, @n) for @n:i, @w:s in enumerate($ls)]
1 [(@w, @n + 1) for @w:s, @n:i in $lti if $p']
1 $lti[:$k]
1 RULES
1 collections.Counter($ls).most_common(2)
""",
    "dsl": """
3 {"a": $ls, $s: $ls}
2 {@w: @w.split("=") for @w:s in $ls}
1 {@w[:1]: [@w] for @w:s in $ls}
1 {@w: list(@w) for @w:s in $ls}
""",
}

LEAVES = {
    "ll": ["[t.s.split(), t.u.split()]", '[["a", t.s], [t.u]]'],
    "lti": ["[(t.s, t.i), (t.u, 1)]", '[("a", t.i)]'],
    "dsl": ['{"a": t.s.split()}', '{t.s: ["x", t.u], "b": [t.s]}'],
}

CONSUMERS = {
    "ll": ["i len($v)", "i sum(len(@r) for @r:ls in $v)", "s $v[$k][$k]", 's ";".join(",".join(@r) for @r:ls in $v)'],
    "lti": ["i len($v)", "i sum(@n for _, @n:i in $v)", "s $v[$k][0]", "i dict($v).get($s, -1)",
            's ",".join(F("{}={}", @w, @n) for @w:s, @n:i in $v)'],
    "dsl": ["i len($v)", 'i len($v.get("a", []))', 's ";".join(",".join(@l) for @l:ls in $v.values())',
            "i max(len(@l) for @l:ls in $v.values())", "s $v[$s][$k]"],
}  # fmt: skip
