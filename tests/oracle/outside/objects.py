"""Modules whose function changes or reads objects, classes, and what the standard library and NumPy keep inside.

Written as those of memories.py.
"""

from __future__ import annotations

__all__ = ["OBJECTS_AND_LIBRARIES"]

OBJECTS_AND_LIBRARIES = """
map i
class C:
    n = 0
def f(t):
    C.n += {i}
    RETURN C.n
--- map i
class C:
    def __init__(self):
        self.n = {k}
    def __call__(self, t):
        self.n += {i}
        RETURN self.n
f = C()
--- map i
class C:
    def __init__(self):
        self.n, self.k = {k}, 2
    def run(self, t):
        RETURN self.added({i}) * self.k
    def added(self, x):
        self.n = self.n + x
        return self.n
f = C().run
--- map i
class C:
    def __init__(self):
        self.limit = {k}
    def __call__(self, t):
        RETURN self.limit + {i}
f = C()
def change():
    f.limit = 50
--- map i
class C:
    def __init__(self):
        self.seen = {0}
    def size(self, x):
        self.seen.add(x)
        return len(self.seen)
OBJECT = C()
f = lambda t: OBJECT.size({i})
--- map i
class C:
    calls = 0
    @property
    def n(self):
        C.calls += 1
        return C.calls
OBJECT = C()
def f(t):
    RETURN OBJECT.n + {i}
--- map i
def make():
    class Sum:
        def __init__(self):
            self.n = 0
        def __call__(self, t):
            self.n += {i}
            RETURN self.n
    return Sum()
f = make()
--- map i
def make():
    n = 0
    class Sum:
        def __call__(self, t):
            nonlocal n
            n += {i}
            RETURN n
    return Sum()
f = make()
--- map i
def make(k):
    class Scale:
        factor = k
        def __call__(self, t):
            RETURN {i} * self.factor
    return Scale()
f = make({k})
--- map i
def f(t):
    f.n += {i}
    RETURN f.n
f.n = 0
--- map i
@dataclasses.dataclass
class Config:
    n: int = {k}
CONFIG = Config()
def f(t):
    CONFIG.n += {i}
    RETURN CONFIG.n
--- map i
@dataclasses.dataclass
class Config:
    n: int = {k}
CONFIG = Config()
def change():
    CONFIG.n = 40
def f(t):
    RETURN CONFIG.n + {i}
--- map i
SPACE = types.SimpleNamespace(n=1)
def f(t):
    SPACE.n += {i}
    RETURN SPACE.n
--- map i
IDS = itertools.count({k})
def f(t):
    RETURN next(IDS) + {i}
--- map i
TURN = itertools.cycle((1, 2, 3))
def f(t):
    for one in TURN:
        RETURN one + {i}
--- map i
IT = iter([1, 2, 3, 4, 5])
def f(t):
    RETURN next(IT, 0) + {i}
--- map x
def f(t):
    RETURN random.random() + {x}
--- map i
def f(t):
    RETURN random.randint(1, 6) + {i}
--- map i
RNG = random.Random(7)
def f(t):
    RETURN RNG.randrange(100) + {i}
--- map x
def f(t):
    RETURN float(np.random.rand()) + {x}
--- map x
GENERATOR = np.random.default_rng(5)
def f(t):
    RETURN float(GENERATOR.random()) + {x}
--- map i
def f(t):
    a, b = 1, random.getrandbits(3)
    RETURN a + b + {i}
--- map i
def f(t):
    decimal.getcontext().prec = 5 + {i} % 3
    RETURN decimal.getcontext().prec
--- map s
def f(t):
    with decimal.localcontext() as own:
        own.prec = 3 + {i}
        RETURN str(decimal.Decimal(1) / 3)
--- map i
CALLS = [0]
@functools.lru_cache(maxsize=None)
def cached(x):
    CALLS[0] += 1
    return x
def f(t):
    RETURN cached({i}) + CALLS[0]
--- map i
@functools.lru_cache(maxsize=None)
def cached(x):
    return x * 2
def f(t):
    RETURN cached({i})
--- map i
VARIABLE = contextvars.ContextVar("VARIABLE", default=0)
def f(t):
    VARIABLE.set(VARIABLE.get() + {i})
    RETURN VARIABLE.get()
--- map i
LOCAL = threading.local()
LOCAL.n = 0
def f(t):
    LOCAL.n += {i}
    RETURN LOCAL.n
--- map s
def f(t):
    os.environ["ORACLE"] = str({i})
    RETURN os.environ["ORACLE"]
--- map s
os.environ["ORACLE"] = "a"
def change():
    os.environ["ORACLE"] = "b"
def f(t):
    RETURN os.environ["ORACLE"] + {s}
--- map i
LAST = collections.deque(maxlen=3)
def f(t):
    LAST.append({i})
    RETURN sum(LAST)
--- map i
COUNTS = collections.Counter()
def f(t):
    COUNTS[{s}] += 1
    RETURN COUNTS[{s}]
--- map i
GROUPS = collections.defaultdict(list)
def f(t):
    GROUPS[{i}].append(1)
    RETURN len(GROUPS[{i}])
--- map x
ARRAY = np.zeros(3)
def f(t):
    ARRAY[1] += {x}
    RETURN float(ARRAY[1])
--- map x
BASE = np.ones(3)
ARRAY = BASE[:]
ARRAY.flags.writeable = False
def change():
    BASE[1] = 7.0
def f(t):
    RETURN ARRAY[1] + {x}
--- map i
def put(d, t):
    d[{i}] = 1
    RETURN len(d)
f = functools.partial(put, {1: 1})
--- map i
def scaled(by, t):
    RETURN by * {i}
f = functools.partial(scaled, {k})
--- map s
def f(t):
    RETURN string.digits[:{k}] + {s}
--- map i
def f(t):
    n = 0
    for k in range(3):
        g = lambda: k + n
        n += g()
    RETURN n + {i}
--- map i
def f(t):
    fs = [lambda: k for k in range(3)]
    RETURN fs[0]() + {i}
--- map i
def f(t):
    if {p}:
        g = lambda x: x + 1
    else:
        g = lambda x: x * 2
    RETURN g({i})
--- map i
def f(t):
    def g(x=t.i % 4):
        return x + 1
    RETURN g() + g({i})
--- map i
def f(t):
    globals()["COUNT"] = globals().get("COUNT", 0) + 1
    RETURN COUNT
COUNT = 0
"""
