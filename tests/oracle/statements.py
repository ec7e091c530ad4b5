"""Statements that people write, as templates (see grammar.py).

`@d:dsi` binds a name; one bound at the start of an unindented line lives on behind the statement. `!i` is a local
variable of that type, `$BLOCK` a block that sees the names bound, `$EXIT` what ends the function early, `$SMALL` one
simple statement.
"""

from __future__ import annotations

STATEMENTS = """
6
@v:s = $s
--- 6
@n:i = $i
--- 4
@z:x = $x
--- 2
@ok:p = $p
--- 4
@parts:ls = $ls
--- 2
@numbers:li = $li
--- 3
@d:dsi = $dsi
--- 3
@names:dss = $dss
--- 2
@table:dxi = $dxi
--- 1
@table:dis = $dis
--- 1
@table:dbi = $dbi
--- 1
@table:dti = $dti
--- 1
@table:dii = $dii
--- 2
@seen:Ss = $Ss
--- 1
@seen:Si = $Si
--- 1
@when:a = $a
--- 1
@day:e = $e
--- 1
@gap:g = $g
--- 6
@d:dsi = {}
for @w:s in $ls:
    @d[@w] = @d.get(@w, 0) + 1
--- 3
@d:dsi = {}
for @w:s in $ls:
    if @w in @d:
        @d[@w] += 1
    else:
        @d[@w] = 1
--- 2
@d:dsi = {}
for @ch:s in $s:
    @d[@ch] = @d.get(@ch, 0) + 1
--- 2
@d:dsi = {}
for @w:s in $ls:
    @d.setdefault($s', 0)
    @d[@w] = $i'
--- 5
@d:dss = {}
for @part:s in $s.split($c):
    @k:s, _, @v:s = @part.partition("=")
    @d[@k] = @v
--- 2
@d:dss = {}
for @part:s in $s.split(";"):
    if "=" in @part:
        @k:s, @v:s = @part.split("=", 1)
        @d[@k.strip()] = @v.strip()
--- 3
@d:dsi = {"a": 0, "b": 0}
for @w:s in $ls:
    if @w in @d:
        @d[@w] += 1
--- 2
@d:dsx = {}
for @w:s in $ls:
    @d[@w] = @d.get(@w, 0.0) + $x'
--- 2
@d:dxi = {}
for @v:x in $lx:
    @d[@v] = @d.get(@v, 0) + 1
--- 2
@d:dti = {}
for @w:s in $ls:
    @d[(@w, $n)] = $i'
--- 1
@d:dii = {}
for @w:s in $ls:
    @d[len(@w)] = @d.get(len(@w), 0) + 1
--- 3
@seen:Ss = set()
for @w:s in $ls:
    @seen.add($s')
--- 2
@seen:Ss = set()
@twice:i = 0
for @w:s in $ls:
    if @w in @seen:
        @twice += 1
    @seen.add(@w)
--- 4
@out:ls = []
for @w:s in $ls:
    if $p':
        @out.append($s')
--- 3
@out:ls = []
for @ch:s in $s:
    @out.append($s')
--- 2
@out:li = []
for @w:s in $ls:
    @out.append($i')
--- 4
@total:i = 0
for @w:s in $ls:
    @total += $i'
--- 3
@total:i = 0
for @w:s in $ls:
    $BLOCK
--- 3
@text:s = ""
for @ch:s in $s:
    $BLOCK
--- 3
@count:i = 0
for @ch:s in $s:
    if $p':
        @count += 1
--- 2
@total:x = 0.0
for @v:x in $lx:
    @total += @v
--- 2
@best:s = ""
for @w:s in $ls:
    if len(@w) > len(@best):
        @best = @w
--- 2
@acc:i = 0
for @v:i in range($n):
    $BLOCK
--- 2
@acc:i = $i0
for @v:i in $li:
    if @v > $k:
        break
    @acc += @v
else:
    @acc = -1
--- 2
@left:i = abs($i0) % 50
@steps:i = 0
while @left > 0:
    @left = @left // 2
    @steps += 1
--- 1
@r:s = ""
for @k:s, @v:i in $dsi.items():
    @r += @k + ";"
--- 2
@n:i = 0
for @at:i, @w:s in enumerate($ls):
    if $p':
        @n = @at
--- 1
@r:i = 0
for @w:s, @v:i in zip($ls, $li):
    @r += @v
--- 5
if $p:
    $EXIT
--- 3
try:
    @n:i = int($s)
except ValueError:
    @n = -1
--- 2
try:
    @z:x = float($s)
except ValueError:
    @z = 0.0
--- 2
try:
    @n:i = $i
except Exception:
    @n = -2
--- 2
try:
    @n:i = $dsi[$s]
except KeyError:
    @n = -3
--- 1
try:
    @w:s = $ls[$k]
except (IndexError, ValueError):
    @w = "none"
--- 1
try:
    @n:i = $i // $i
except ZeroDivisionError:
    @n = 0
finally:
    @done:p = True
--- 3
if (@at:i := $s.find($c)) >= 0:
    $EXIT
--- 2
@first:s, _, @rest:s = $s.partition($c)
--- 2
@one:s, @two:s = $s.split($c)
--- 2
@q:i, @r:i = divmod($i, $i)
--- 1
@first:s, *@rest:ls = $ls
--- 2
match $s:
    case "GET" | "POST":
        @code:i = 1
    case "":
        @code = 2
    case _:
        @code = $i
--- 1
match $i:
    case 0:
        @name:s = "zero"
    case 1 | 2:
        @name = $s
    case @other:i if $p':
        @name = str(@other)
    case _:
        @name = "many"
--- 1
match $s.split():
    case [@cmd:s]:
        @arg:s = @cmd
    case [@cmd, @what:s]:
        @arg = @what
    case _:
        @arg = "?"
--- 3
if $p:
    @v:s = $s
else:
    @v = $s
--- 2
if $p:
    @n:i = $i
elif $p:
    @n = $i
else:
    @n = 0
--- 2
@m = PAIR.search($s)
@key:s = @m.group(1) if @m else ""
--- 1
if (@m := PAIR.search($s)) is not None:
    $EXIT
--- 1
@m = re.search(r"(\\d+)", $s)
@n:i = int(@m.group(1)) if @m else 0
--- 1
@d:dsi = $dsi
@v:i = @d.pop($s, 0)
--- 1
@d:dsi = $dsi
@v:i = @d.setdefault($s, $i)
--- 1
@d:dsi = $dsi
@d.update({"a": $i})
--- 1
@d:dsi = $dsi
del @d[$s]
--- 1
@d:dsi = $dsi
@order:ls = sorted(@d, key=@d.get)
--- 1
@l:ls = $ls
@l.sort()
--- 1
@l:ls = $ls
@l.append($s)
@l.reverse()
--- 1
@l:ls = $ls
@last:s = @l.pop()
--- 2
@d:dsi = {}
for @w:s in $ls:
    try:
        @d[@w] = int(@w)
    except ValueError:
        continue
--- 1
@groups:dsi = {}
for @w:s in $ls:
    @key:s = @w[:1].lower()
    if @key not in @groups:
        @groups[@key] = 0
    @groups[@key] += len(@w)
--- 1
@top:s = ""
@d:dsi = {}
for @w:s in $ls:
    @d[@w] = @d.get(@w, 0) + 1
for @k:s, @v:i in @d.items():
    if @v > @d.get(@top, 0):
        @top = @k
"""

BLOCK_STATEMENTS = """
4
!i += $i0
--- 3
!i = ($i) % 1000003
--- 3
!s = ($s)[:40]
--- 2
!s += $c
--- 2
!ls.append($s[:40])
--- 2
!li.append($i0)
--- 3
!dsi[$s[:40]] = $i0
--- 2
!dsi[$s[:40]] = !dsi.get($s[:40], 0) + 1
--- 1
!dsi[$s] += 1
--- 1
!dss[$s[:40]] = $s[:40]
--- 1
!Ss.add($s[:40])
--- 2
!x = min(!x + $x0, 1e9)
--- 4
if $p:
    $SMALL
--- 2
if $p:
    $SMALL
else:
    $SMALL
--- 2
if $p:
    continue
--- 2
if $p:
    break
--- 1
if $p:
    $EXIT
--- 1
try:
    !i += int($s)
except ValueError:
    pass
"""

STATE_STATEMENTS = """
4
st.count += 1
--- 3
st.total += $x0
--- 3
st.last = ($s)[:40]
--- 3
if $p:
    st.count = 0
--- 3
@before:s = st.last
st.last = ($s)[:40]
--- 2
st.peak = max(st.peak, $x0)
--- 2
if $s != st.last:
    st.last = ($s)[:40]
    st.count += 1
--- 2
st.seen = st.seen or $p
"""
