"""Statements of loops, ifs, tries and matches."""

from __future__ import annotations

STATEMENTS = """
1
@grid = [[0] * 2 for _ in range(2)]
for @v:i in $li:
    @grid[@v % 2][@v % 2] += @v
@n:i = @grid[0][0] - @grid[1][1]
--- 1
@low:i, @high:i = 0, len($s)
while @low < @high:
    @mid:i = (@low + @high) // 2
    if @mid * 3 < $n:
        @low = @mid + 1
    else:
        @high = @mid
--- 1
@a:i, @b:i = 0, 1
for _ in range($n):
    @a, @b = @b, @a + @b
--- 1
@a:s, @b:s = $s, $s
@a, @b = @b, @a
--- 1
@n:i = 0
for @at:i in range(len($s) - 1, -1, -1):
    if $p:
        @n = @at
        break
--- 1
@prev:s = ""
@runs:i = 0
for @ch:s in $s:
    if @ch != @prev:
        @runs += 1
    @prev = @ch
--- 1
@crc:i = 0
for @v:i in $b:
    @crc = (@crc * 31 + @v) & 0xFFFFFFFF
--- 1
@h:i = 5381
for @ch:s in $s:
    @h = ((@h << 5) + @h + ord(@ch)) % 4294967296
--- 1
@text:s = $s
while "  " in @text:
    @text = @text.replace("  ", " ")
--- 1
@text:s = $s
while @text and not @text[-1].isalnum():
    @text = @text[:-1]
--- 1
@n:i = $i0
while True:
    @n = @n // 3 - 1
    if @n < $k or @n < 0:
        break
--- 1
@lowest:x = float("inf")
@highest:x = float("-inf")
for @v:x in $lx:
    @lowest = min(@lowest, @v)
    if @v > @highest:
        @highest = @v
--- 1
@lowest = None
for @v:i in $li:
    if @lowest is None or @v < @lowest:
        @lowest = @v
@n:i = 0 if @lowest is None else @lowest
--- 1
@found = None
for @w:s in $ls:
    if $p':
        @found = @w
        break
@v:s = @found if @found is not None else "none"
--- 1
@found = None
for @w:s in $ls:
    if $p':
        @found = @w
@v:s = @found or "none"
--- 1
@n:i = 0
for @w:s, @score:i in RULES:
    if @w in $s:
        @n += @score
--- 1
@name:s = "other"
for @w:s, (@lo:i, @hi:i) in LIMITS.items():
    if @lo <= $i < @hi:
        @name = @w
        break
--- 1
def @inner(v):
    return v * 2 + $i0

@n:i = @inner($i) - @inner(1)
--- 1
def @inner(v, low="a"):
    return v.strip() or low

@v:s = @inner($s) + @inner($s, "z")
--- 1
@scale = lambda v: v * $k
@n:i = @scale($i)
--- 1
@n:i = 0
@skipped:i = 0
for @w:s in $ls:
    try:
        @n += int(@w)
    except ValueError:
        @skipped += 1
        continue
    if @n > 100:
        break
--- 1
try:
    @n:i = int($s)
except ValueError as error:
    @n = len(str(error))
--- 1
try:
    @v:s = $dss[$s]
except KeyError as error:
    @v = str(error)
--- 1
try:
    @v:s = str($i // $i)
except ZeroDivisionError as error:
    @v = F("bad: {}", error)
--- 1
try:
    @n:i = int($s)
    @ok:p = True
except (ValueError, TypeError):
    @n, @ok = 0, False
else:
    @n += 1
--- 1
if not $s:
    raise ValueError("empty")
--- 1
if $i > 100:
    raise ValueError(F("too much: {} of {}", $i, $s))
--- 1
assert $s, "no text"
--- 1
assert $i >= $k
--- 1
@m = PAIR.search($s)
@key:s, @value = @m.groups()[:2] if @m else ("", None)
--- 1
@m = re.match(r"(?P<host>\\w+):(?P<port>\\d+)", $s)
@port:i = int(@m["port"]) if @m else 80
@host:s = @m.group("host") if @m else "-"
--- 1
@m = re.search(r"(\\d+)-(\\d+)", $s)
@n:i = 0
if @m:
    @lo, @hi = map(int, @m.groups())
    @n = @hi - @lo
--- 1
@m = WORD.search($s)
@at:i = @m.start() if @m else -1
@to:i = @m.end() if @m is not None else -1
--- 1
@n:i = 0
for @m in re.finditer(r"\\w+", $s):
    @n += @m.end() - @m.start()
--- 1
@x1:x = $x
@n:i = 0
while @x1 > 1.0 and @n < 60:
    @x1 /= 2
    @n += 1
--- 1
@mean:x = sum($lx) / len($lx)
@var:x = sum((@v - @mean) ** 2 for @v:x in $lx) / len($lx)
@std:x = math.sqrt(@var)
--- 1
@total:x = 0
for @v:x in $lx:
    @total += @v
--- 1
@total:x = 0
for @v:i in $li:
    @total += @v / 2
--- 1
@n:i = $i
@n <<= 2
@n ^= 0x5A
@n |= 1
@n //= 3
@n %= 1000
--- 1
@v:s = $s
@v *= 2
@v += $s
--- 1
@first:i, *@others:li, @last:i = $li
--- 1
(@one:s, @n:i), @two:s = ($s, $i), $s
--- 1
@one:s = @two:s = $s
--- 1
@n:i = $i; @z:x = $x
--- 1
@n: int = $i
@k:i = @n
--- 1
match $tsi:
    case ("GET", @n:i):
        @r:i = @n
    case (@w, 0):
        @r = len(@w)
    case (_, @n):
        @r = @n + 1
--- 1
match ($p, $i % 3):
    case (True, 0):
        @r:s = "both"
    case (False, 0):
        @r = "fizz"
    case _:
        @r = $s
--- 1
match $s:
    case @one:s if @one.startswith("a"):
        @r:i = 1
    case "the" | "a":
        @r = 2
    case _:
        @r = 3
--- 1
match t.n:
    case None:
        @r:i = -1
    case 0:
        @r = 0
    case @n:i:
        @r = @n
--- 1
match $ls:
    case []:
        @r:s = "none"
    case [@one:s]:
        @r = @one
    case [@one, *@rest]:
        @r = @one + str(len(@rest))
--- 1
match $x:
    case 0.0:
        @r:s = "zero"
    case @z:x if @z > 1:
        @r = "big"
    case _:
        @r = "rest"
--- 1
if t.n is None:
    @n:i = 0
elif t.n > 10 and $p:
    @n = 10
else:
    @n = t.n
--- 1
if t.m:
    @v:s = t.m
elif t.q is not None and t.q > 0:
    @v = "q"
else:
    @v = $s
--- 1
@n = t.n
if @n is None:
    $EXIT
@k:i = @n + 1
--- 1
@n = parsed($s)
if @n is None or @n < 0:
    $EXIT
@k:i = @n * 2
--- 1
if (@n := parsed($s)) is not None and $p:
    $EXIT
--- 1
while (@at:i := $s.find($c, $n)) > 100:
    break
--- 1
@left:s = $s
@n:i = 0
while (@at:i := @left.find($c)) >= 0 and @n < 10:
    @left = @left[@at + 1:]
    @n += 1
--- 1
@text:s = $s
@cut:s = @text if len(@text) <= 5 else @text[:5] + "..."
--- 1
@n:i = 0
for @a:s in $ls:
    for @b:s in $ls:
        if @a == @b:
            continue
        if @a > @b:
            @n += 1
--- 1
@n:i = 0
for @a:i in range(3):
    for @b:i in range(@a, 3):
        @n += @a * @b + $i0 % 3
--- 1
@first:s = $s
del @first
@first = "x"
--- 1
pass
--- 1
@a:s, @b:s = ($s.split(":", 1) + ["", ""])[:2]
--- 1
@a:i, @b:i = sorted([$i, $i])
--- 1
@a:i, @b:i, @c:i = (int(@v) for @v:s in $s.split("."))
--- 1
@a:i, @b:i = map(int, $s.split(":"))
--- 1
@start:a = $a
@stop:a = @start + HOUR
@span:g = @stop - @start
while @start < @stop:
    @start += dt.timedelta(minutes=25)
--- 1
@sign:i = -1 if $g < dt.timedelta(0) else 1
@secs:i = int(abs($g).total_seconds())
@hh:i, @rest:i = divmod(@secs, 3600)
@mm:i, @ss:i = divmod(@rest, 60)
@clock:s = F("{:02d}:{:02d}:{:02d}", @hh, @mm, @ss)
"""
