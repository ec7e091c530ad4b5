"""Texts, bytes and what may be no text: formats, slices, lookups."""

from __future__ import annotations

SCALARS = {
    "s": """
1 F("{:+d}", $i)
1 F("{:_}|{:,}", $i, $i)
1 F("{:#x} {:#b} {:o}", $i, $i, $i)
1 F("{:08.3f}", $x)
1 F("{:+.1e}", $x)
1 F("{:.0f}", $x)
1 F("{:.3%}", $x)
1 F("{:,.2f}", $x)
1 F("{:*^10}", $s)
1 F("{:.3}", $s)
1 F("{:>6.2}|", $s)
1 F("{:10.4g}", $x)
1 F("{~r}", $x)
1 F("{~r}", $ns)
1 F("{}", $ni)
1 F("{}", $p)
1 F("{}", $b)
1 F("{}", $li)
1 F("{}", $ls)
1 F("{:%H:%M}", $a)
1 F("{:%Y/%m/%d}", $e)
1 F("{}", $a)
1 F("{}", $e)
1 F("{}", $g)
1 "%05d|%-6s|%+.2f" % ($i, $s, $x)
1 "%x %o %r" % ($i, $i, $s)
1 "%s" % $x
1 "%s,%s" % ($ns, $p)
1 "%c" % ($i % 128)
1 "{0}{1}{0}".format($s, $i)
1 "{a}-{b:>4}".format(a=$s, b=$i)
1 "{:^9}|{:<4d}".format($s, $i)
1 format($x, ".3f")
1 format($s, ">8")
1 str($li)
1 str($ls)
1 str($ni)
1 str($ns)
1 str($b)
1 str($e)
1 repr($x)
1 repr($b)
1 oct($i)
1 bin($i)
1 ascii($s)
1 $s.translate(str.maketrans("abc", "xyz"))
1 $s.translate({97: None, 228: "ae"})
1 $s.encode("ascii", "replace").decode()
1 $s.encode("ascii", "ignore").decode("ascii")
1 $s.encode("latin-1", "replace").decode("latin-1")
1 " ".join($s.split())
1 "\\n".join($s.splitlines()[:2])
1 $c.join(map(str, $li))
1 $c.join(str(@v) for @v:i in $li)
1 $c.join(F("{:02x}", @v) for @v:i in $b)
1 "".join(reversed($s))
1 "".join(sorted($s))
1 "".join(sorted(set($s)))
1 "".join(filter(str.isalnum, $s))
1 "".join([@ch for @ch:s in $s if @ch.isalpha() or @ch == " "])
1 "".join(@ch.upper() if @n % 2 else @ch for @n:i, @ch:s in enumerate($s))
1 $s[-$n:]
1 $s[:-$n]
1 $s[$i:$i]
1 $s[$k::-1]
1 $s[$i]
1 $s.lstrip($w)
1 $s.strip(" \\t\\n=")
1 $s.rsplit(maxsplit=1)[-1]
1 $s.split(None, 1)[-1]
1 $s.rpartition($w)[0]
1 $s.replace($s, $s)
1 $s.replace("", $c)
1 $s.replace($s, "", $k)
1 first_word($s)
1 first_word($s, "none")
1 grade($i)
1 grade($x)
1 pair_of($s)[1]
1 WEEK[$a.weekday()]
1 WEEK[$i % 7]
1 max($ls, key=lambda @w: (len(@w), @w))
1 min($ls, key=lambda @w: @w.lower())
1 max($dsi, key=$dsi.get)
1 max($dsi.items(), key=lambda @kv: @kv[1])[0]
1 sorted($ls, key=lambda @w: -len(@w))[0]
1 sorted($dsi.items(), key=lambda @kv: (-@kv[1], @kv[0]))[0][0]
1 next((@w for @w:s in $ls if $p'), "none")
1 next(iter($ls), "")
1 ($s and $s)
1 ($s if $s else $s if $p else "x")
1 re.sub(r"\\s+", " ", $s)
1 re.sub(r"(\\w)(\\w)", r"\\2\\1", $s)
1 re.split(r"[,; ]+", $s)[0]
1 re.sub(r"[aeiou]", lambda m: m.group().upper(), $s)
1 PAIR.sub(r"\\1:\\2", $s)
1 $a.strftime("%d/%b/%Y %I %p %j")
1 $a.strftime("%A %U %w %%")
1 $e.strftime("%y%m%d")
1 $a.isoformat(sep=" ", timespec="milliseconds")
1 $a.time().isoformat()
1 str($a.time())
1 $a.ctime()
1 $b.decode("ascii", "ignore")
1 $b.decode("latin-1")
1 $b.hex(":")
1 {True: "yes", False: "no"}[$p]
1 {0: "a", 1: "b"}.get($i % 3, "c")
1 (lambda v: v + "!")($s)
1 chr(ord($s[0]) + 1)
1 chr($i % 1114112)
1 $s.join($ls)
1 TAGS.get($s, ["none"])[0]
1 "".join(@a + @b for @a:s, @b:s in zip($s, $s))
1 type($i).__name__
1 "a" "b" + $s
1 $s.upper() if $s.islower() else $s.lower()
1 $s.format($i)
""",
    "b": """
1 $b[::-1]
1 $b[$k:$k]
1 b"".join([$b, b"-", $b])
1 b",".join($b.split())
1 $b.ljust(8, b"\\0")
1 $b.rstrip(b"\\0")
1 $b.partition(b"=")[2]
1 $b.removeprefix(b"a")
1 $b.title()
1 bytes([$i % 256])
1 bytes([@v for @v:i in $b if @v < 128])
1 bytes(@v ^ 1 for @v:i in $b)
1 bytes($n)
1 ($i % 65536).to_bytes(2, "big")
1 $i.to_bytes(8, "little", signed=True)
1 $s.encode("utf-8")[:3]
1 $s.encode("utf-16-le")
1 b"%d" % $i
1 bytes.fromhex($s)
1 ($b or b"none")
1 max($b, $b)
1 str($i).encode()
1 $b + b"\\xff"
1 b"\\0" * $n
1 $s.encode("ascii", "ignore")
1 $b.replace(b"a", $b, 1)
1 $b.zfill(5)
1 $b.swapcase()
""",
    "ns": """
1 ($s or None)
1 (None if $s == "" else $s)
1 ($s if $s in $ls else None)
1 (t.m and t.m.upper())
1 (t.m if $p else $ns)
1 (m.group(1) if (m := PAIR.search($s)) else None)
1 next((@w for @w:s in $ls if $p'), None)
1 ($ls[0] if $ls else None)
1 (NAMES[$i] if $i in NAMES else None)
1 min($ls, default=None)
1 (first_word($s) or None)
""",
}
