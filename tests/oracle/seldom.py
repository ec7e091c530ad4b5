"""What people write less often: items that are made in turn, functions of operator, keyword arguments inside try.

Templates as grammar.py describes them; they are added to those of scalars.py and statements.py.
"""

from __future__ import annotations

SCALARS = {
    "i": """
1 $p + $p
1 $i * $p
1 operator.add($i, $i)
1 operator.mul($i, $k)
1 operator.floordiv($i, $i)
""",
    "x": """
1 math.ldexp($x, $k)
1 operator.truediv($i, $i)
""",
    "p": """
1 $x in $Si
1 operator.lt($i, $x)
1 any($p' for @v:i in map(int, $ls))
1 all(@v > 0 for @v:i in (len(@w) for @w:s in $ls))
""",
}

STATEMENTS = """
2
@total:i = 0
try:
    for @v:i in (int(@w) for @w:s in $ls):
        @total += @v
except ValueError:
    @total += 1000
--- 1
@total:i = 0
try:
    for @v:i in map(int, $ls):
        @total += @v
except ValueError:
    @total += 1000
--- 1
@turn:i = 0
@text:s = ""
for @v:s in (@w + str(@turn) for @w:s in $ls):
    @turn += 1
    @text += @v[:20]
--- 1
@turn:i = 0
for @at:i, @v:s in enumerate((@w.strip() for @w:s in $ls if @w), 1):
    if $p':
        break
    @turn += @at
else:
    @turn = -1
--- 1
@turn:i = 0
for @v:i, @q:s in zip(map(len, $ls), $ls):
    @turn += @v
--- 1
@it = enumerate($ls)
@turn:i = 0
for @at:i, @w:s in @it:
    if $p':
        break
    @turn += @at
for @at, @w in @it:
    @turn += 100
--- 1
try:
    @when:a = $a.replace(hour=$n, day=$i)
except ValueError:
    @when = $a
--- 1
try:
    @n:i = int($s, base=16) + len($s.split(maxsplit=1))
except ValueError:
    @n = -1
"""
