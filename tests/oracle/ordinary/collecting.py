"""Statements that fill and change containers."""

from __future__ import annotations

STATEMENTS = """
1
@groups:dsl = {}
for @w:s in $ls:
    @groups.setdefault($s', []).append(@w)
--- 1
@groups:dsl = {}
for @w:s in $ls:
    if @w[:1] not in @groups:
        @groups[@w[:1]] = []
    @groups[@w[:1]].append($s')
--- 1
@groups:dsl = collections.defaultdict(list)
for @w:s in $ls:
    @groups[len(@w)].append(@w)
--- 1
@d:dsi = collections.defaultdict(int)
for @w:s in $ls:
    @d[@w] += 1
--- 1
@d:dsi = collections.Counter()
for @w:s in $ls:
    @d[@w] += 1
--- 1
@rows:ll = $ll
@wide:i = 0
for @row:ls in @rows:
    for @w:s in @row:
        if $p':
            break
        @wide += 1
    else:
        @wide += 100
--- 1
@pairs:lti = []
for @n:i, @w:s in enumerate($ls):
    @pairs.append((@w, @n))
--- 1
@pairs:lti = []
for @w:s in $ls:
    @k:s, _, @v:s = @w.partition("=")
    if @v.isdigit():
        @pairs.append((@k, int(@v)))
@pairs.sort(key=lambda @kv: (-@kv[1], @kv[0]))
--- 1
@pairs:lti = $lti
@pairs.sort()
--- 1
@l:ls = $ls
@l.extend($ls)
@l.insert(0, $s)
--- 1
@l:ls = $ls
@l.sort(key=len, reverse=True)
--- 1
@l:ls = $ls
@l.remove($s)
--- 1
@l:ls = $ls
del @l[$k]
--- 1
@l:ls = $ls
@l[0] = $s
@l[-1] += "!"
--- 1
@l:li = $li
@l[$k] += $i
--- 1
@l:li = $li
@l[0], @l[-1] = @l[-1], @l[0]
--- 1
@l:li = $li
@l += [$i, $i]
@l.sort(reverse=True)
--- 1
@l:li = $li
@l.pop(0)
--- 1
@l:li = $li
@l.insert($k, $i)
@l.extend(range($n))
--- 1
@l:li = $li
@m:li = @l
@m.append(7)
@same:i = len(@l)
--- 1
@l:li = $li
@m:li = @l[:]
@m.append(7)
@apart:i = len(@l)
--- 1
@l:li = [0] * 3
for @v:i in $li:
    @l[@v % 3] += 1
--- 1
@stack:ls = []
for @ch:s in $s:
    if @ch in "([":
        @stack.append(@ch)
    elif @ch in ")]" and @stack:
        @stack.pop()
--- 1
@seen:Ss = set()
@again:ls = []
for @w:s in $ls:
    if @w in @seen:
        @again.append(@w)
    else:
        @seen.add(@w)
--- 1
@seen:Ss = $Ss
@seen.discard($s)
@seen.update($ls)
--- 1
@seen:Ss = $Ss
@seen |= {"a"}
@seen -= STOP
--- 1
@d:dsi = $dsi
@d |= {"a": 3}
@d["b"] = @d.get("b", 0) * 2 + 1
--- 1
@d:dsi = $dsi
for @k:s in list(@d):
    if $p':
        del @d[@k]
--- 1
@d:dsi = $dsi
@top:s = max(@d, key=lambda @k: @d[@k])
--- 1
@d:dsi = $dsi
@n:i = 0
for @at:i, (@k:s, @v:i) in enumerate(@d.items()):
    @n += @at * @v
--- 1
@d:dsi = $dsi
if (@v := @d.get($s)) is not None:
    @n:i = @v + 1
else:
    @n = 0
--- 1
@d:dsi = $dsi
@d.clear()
@d[$s] = 1
--- 1
@d:dsi = $dsi
@d.pop($s)
--- 1
@d:dss = {"method": $s, "path": $s}
@d["path"] = @d["path"].rstrip("/") or "/"
--- 1
@d:dsi = {"a": 0, "b": 0}
@d[$s] += 1
--- 1
@q = collections.deque($ls, maxlen=2)
@q.append($s)
@v:s = @q[0]
"""
