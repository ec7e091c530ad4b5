"""Expressions that give containers, the simplest ones of each kind, and what is made of a container at the end.

Templates as grammar.py describes them.
"""

from __future__ import annotations

CONTAINERS = {
    "ls": """
8 $s.split()
7 $s.split($c)
2 $s.split($c, $n)
2 $s.strip().split($c)
5 [$s' for @w:s in $ls]
4 [@w for @w:s in $ls if $p']
2 [$s' for @v:i in $li]
3 sorted($ls)
2 sorted($ls, key=len)
1 sorted(set($ls))
1 sorted($ls, reverse=True)
3 list($s)
2 [$s, $s]
2 $ls + $ls
2 $ls[$k:]
1 $ls[::-1]
2 list($dsi.keys())
2 list($dsi)
1 sorted($dsi)
1 list($dss.values())
1 $s.splitlines()
1 $s.rsplit($c, 1)
1 re.findall(r"\\w+", $s)
1 [@k for @k:s, @v:i in $dsi.items() if $p']
1 list(map(str.lower, $ls))
""",
    "li": """
5 [len(@w) for @w:s in $ls]
4 [$i' for @w:s in $ls]
3 [int(@w) for @w:s in $ls if @w.isdigit()]
3 [$i, $i, $i]
3 list(range($n))
2 [$i' for @v:i in range($n)]
2 [@v * 2 for @v:i in $li if @v > $k]
2 sorted($li)
2 list($dsi.values())
1 $li + $li
2 $li[$k:]
1 sorted($dsi.values(), reverse=True)
1 [ord(@ch) for @ch:s in $s]
1 list(map(int, $ls))
1 [@n for @n:i, @w:s in enumerate($ls) if $p']
""",
    "lx": """
3 [$x, $x, $x]
3 [$x' for @w:s in $ls]
2 [float(@w) for @w:s in $ls]
2 [$x' for @v:i in range($n)]
1 sorted($lx)
""",
    "dsi": """
6 {"a": 1, "b": 2, $s: $i}
5 {@w: $i' for @w:s in $ls}
3 {$s': 1 for @w:s in $ls}
3 {$s: $i, $s: $i}
2 {"GET": 1, "POST": 2}
2 dict(a=1, b=$i)
1 {@k: @v for @k:s, @v:i in zip($ls, $li)}
1 dict(zip($ls, $li))
1 {@w: @n for @n:i, @w:s in enumerate($ls)}
2 {@ch: 1 for @ch:s in $s}
1 {@k: @v + 1 for @k:s, @v:i in $dsi.items()}
""",
    "dss": """
4 {"a": $s, "key": $s}
4 {@w: @w.upper() for @w:s in $ls}
3 {$s: $s, $s: $s}
2 {@w[:1]: @w for @w:s in $ls}
2 dict(@p.split("=", 1) for @p:s in $s.split(";") if "=" in @p)
""",
    "dsx": """
3 {"a": $x, $s: $x}
3 {@w: $x' for @w:s in $ls}
""",
    "dii": """
4 {1: 5, 2: $i}
3 {@v: @v * 2 for @v:i in $li}
2 {len(@w): $i' for @w:s in $ls}
""",
    "dis": """
4 {1: "one", 2: $s}
3 {len(@w): @w for @w:s in $ls}
2 {200: "ok", 404: "missing"}
""",
    "dxi": """
4 {$x: 1, $x: 2}
2 {0.0: 5, 1.5: $i}
2 {@v: 1 for @v:x in $lx}
""",
    "dbi": """
3 {b"a": 1, b"GET": 2}
3 {$b: 1, $b: 2}
2 {@w: len(@w) for @w:b in $b.split(b",")}
""",
    "dti": """
3 {($s, $i): 1, ("a", 1): 2}
3 {(@w, 1): $i' for @w:s in $ls}
""",
    "Ss": """
4 {$s, $s}
3 {"GET", "POST", $s}
4 set($ls)
3 {$s' for @w:s in $ls}
1 set($s)
1 $Ss | $Ss
1 $Ss & $Ss
1 $Ss - $Ss
""",
    "Si": """
3 {$i, $i, 1}
3 {len(@w) for @w:s in $ls}
2 set($li)
""",
    "tsi": """
3 ($s, $i)
1 max([(@w, len(@w)) for @w:s in $ls])
1 max($dsi.items())
""",
}  # fmt: skip

LEAVES = {
    "ls": ["t.s.split()", 't.s.split(",")', "t.u.split()", "[t.s, t.u]"],
    "li": ["[1, 2, 3]", "[t.i, t.j]", "[len(t.s), t.i]"],
    "lx": ["[t.x, t.y]", "[0.5, t.x]"],
    "dsi": ['{"GET": 1, "POST": 2}', '{t.s: 1}', '{"a": t.i}'],
    "dss": ['{"GET": "get", "a": "b"}', "{t.s: t.u}"],
    "dsx": ['{"a": t.x}', "{t.s: 0.5}"],
    "dii": ["{1: 5, 2: 7}", "{t.i: 1}"],
    "dis": ['{1: "one", 200: "ok"}', "{t.i: t.s}"],
    "dxi": ["{0.0: 5}", "{t.x: 1}"],
    "dbi": ['{b"a": 1}', "{t.b: 1}"],
    "dti": ["{(t.s, t.i): 1}", '{("a", 1): 2}'],
    "Ss": ['{"GET", "POST"}', "{t.s, t.u}"],
    "Si": ["{1, 2, t.i}"],
    "tsi": ["(t.s, t.i)"],
}  # fmt: skip

CONSUMERS = {  # what is given of a local name, `$v`, at the end: type and template
    "dsi": ["i len($v)", "i $v.get($s, 0)", "i max($v.values())", 's ",".join($v.keys())', "i sum($v.values())",
            's $c.join(sorted($v))', "p $s in $v", 'i $v["a"] if "a" in $v else -1', "i $v[$s]",
            's ";".join([F("{}={}", @k, @n) for @k:s, @n:i in $v.items()])', "i $v.pop($s, -1)"],
    "dss": ["i len($v)", 's $v.get("a", "-")', 's $v["a"] if "a" in $v else "-"', "s $c.join($v.values())",
            "p $s in $v", "s $v[$s]", "s $v.pop($w, $s)"],
    "dsx": ["i len($v)", "x $v.get($s, 0.0)", "x sum($v.values())"],
    "dii": ["i len($v)", "i $v.get($i, 0)", "i sum($v.keys())"],
    "dis": ["i len($v)", 's $v.get($i, "")', "s $c.join($v.values())"],
    "dxi": ["i len($v)", "i $v.get($x, -1)"],
    "dbi": ["i len($v)", "i $v.get($b, -1)"],
    "dti": ["i len($v)", "i $v.get(($s, 1), -1)"],
    "Ss": ["i len($v)", "p $s in $v", 's ",".join(sorted($v))'],
    "Si": ["i len($v)", "p $i in $v", "i sum($v)"],
    "ls": ['s ",".join($v)', "i len($v)", "s $v[$k]", "p $s in $v", 's ",".join(sorted($v))', "s $v[-1]"],
    "li": ["i sum($v)", "i len($v)", "i max($v)", "i $v[$k]", "p $i in $v"],
    "lx": ["x sum($v)", "i len($v)", "x max($v)"],
    "tsi": ["s $v[0]", "i $v[1]"],
}  # fmt: skip
