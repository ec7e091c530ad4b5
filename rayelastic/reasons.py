"""Why something was decided, or can't be: a code with values, and the sentence that people read.

This is the only place where such sentences are written. Layers below and above return a `Reason`; logs, event logs and
`--json` carry its code and values, so that programs and tests need no prose.

>>> because = Code.HOT_KEY(key="'home'", share=0.61, region="r1")
>>> because.as_dict()
{'code': 'hot_key', 'key': "'home'", 'share': 0.61, 'region': 'r1'}
>>> sentence([because, Code.STABLE()])
"Key 'home' has 61 % of the load of r1. The region level is stable."
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Any, Self

from rayelastic.graph.records.shown import counted, short

FEW = 0.0995  # as a share: below it, one digit behind the point is shown


@unique
class Code(Enum):
    """What a reason says; the value is its sentence, with a name and a form of each value.

    Forms are those of `_Sentences`; a noun counts the value: `{threads:thread}` reads '2 threads'.
    """

    # --- threads and queues of a PE ---

    NOT_IN_FORCE = "waiting until the last change is in force"
    PINNED = "the configuration is fixed"
    CPU_BUDGET = "this PE now has {cpus:CPU} of its node"
    STAGE_BUDGET = "this stage now has {cpus:CPU} of its process"
    NO_CPU_BUDGET = "this PE now shares its node with no other PE of the job"
    OTHER_PROCESSES = "other processes use {cpus} of {of:CPU}, {before} before"
    NO_TUPLES = "no tuples arrive"
    THREADS_IDLE = "threads are idle {idle:%} of the time, and so are the sources"
    SOURCES_WAIT = "every source waits for input at least {wait:%} of the time"
    SOURCE_BUSY = "a source waits for input only {wait:%} of the time"
    NO_PROFILE = "operator costs aren't measured yet"
    QUEUE_FULL = "a queue is {fill:%} full"
    THREADS_BLOCKED = "threads are blocked on output {blocked:%} of the time"
    THREADS_WAIT_FOR_GIL = "threads wait for the GIL {wait:%} of the time"
    THREAD_FULL = "the operators between two queues keep a thread {busy:%} busy"
    CPUS_BUSY = "{busy:.1f} of {cpus:CPU} are busy"
    PARTLY_BUSY = "{busy:.1f} of {cpus:CPU} are busy, and threads are idle {idle:%} of the time"
    SOURCES_LIMIT = "the sources emit no more"
    FASTER_BEFORE = "throughput was higher before"
    DEMAND_MET = "the PE keeps up with its sources"
    DEMAND_UNMET = "the PE no longer keeps up with its sources"
    THREADS_BUSY = "only {busy:.1f} of {threads:thread} were busy"
    COST_CHANGED = "the cost of a tuple changed"
    COST_MAY_HAVE_CHANGED = "the cost of a tuple may have changed"
    MEASURED = "{rate:rate} with {setting:setting}"
    EXPECTED = "{rate:rate} with {setting:setting}, {expected:rate} expected"
    MEASURING = "measuring {setting:setting}"
    BASELINE = "measuring {setting:setting} longer, to judge a small difference"
    UNDECIDED = "{tried:were} {change:faster} than {base:setting} so far; measuring on"
    KEPT = "kept: {tried:were} {change:faster} than {base:setting} ({rate:rate} against {base_rate:rate})"
    REVERTED = "reverted: {tried:were} {change:faster} than {base:setting} ({rate:rate} against {base_rate:rate})"
    NOT_ENOUGH = (
        "reverted: {tried:were} only {change:faster} than {base:setting} ({rate:rate} against {base_rate:rate})"
    )
    AS_REMEMBERED = "throughput is as it was under such a load before"
    BEHIND = "no further trials while a backlog is worked off"
    TRIALS_COST = "trials have cost {share:%} of the throughput, {most:%} is the most"
    NO_BETTER = "no better setting found"
    SETTLED = "staying with {setting:setting}"
    CHANGED_BY_OTHERS = "this isn't the setting that was asked for; it is kept"
    LOAD_CHANGED = "the load changed"
    LOAD_CHANGED_LITTLE = "the load changed by little"
    SAME_WORK = "the work is the same, at another pace"
    TRYING = "trying {setting:setting}"
    BEST_BEFORE = "{setting:were} best under such a load before"
    BEST_EARLIER = "{setting:were} best in an earlier run"
    UNKNOWN_ABOVE = "nothing is known of more than {threads:thread}"
    PEAK_PASSED = "throughput rose up to {low:thread} and fell before {high:thread}"
    FEWER_MAY_DO = "fewer than {threads:thread} may be enough"
    COSTS_ALLOW = "operator costs allow {factor:.2f} times as much with {threads:thread}"
    COSTS_ALLOW_QUEUES = "no operator has a queue, and operator costs allow {factor:.2f} times as much with queues"
    WORTH_A_TRY = "a trial is expected to gain {gain:%}"
    ONCE_MORE = "measuring the best setting once more before it is kept"

    # --- the papers' controllers, and channels of parallel stages ---

    EVERY_QUEUE = "every operator gets a queue"
    SWITCHING = "queues are being switched"
    OTHER_LOAD = "this is another load"
    UNKNOWN = "nothing is known of {setting:setting}"
    FEWEST = "no fewer than {setting:setting} are allowed"
    FASTER = "{setting:were} faster"
    SLOWER = "{setting:were} slower"
    NO_SLOWER = "{setting:were} no slower"
    NO_FASTER = "{setting:were} no faster"
    HOST_BUSY = "the node is {busy:%} busy, so no thread is added"
    GROUP_FIRST = "no queue was tried before"
    GROUP_BETTER = "the whole group was {gain:%} faster"
    GROUP_WORSE = "the whole group was slower"
    PART_BETTER = "faster than with {operators} of the group"
    PART_WORSE = "slower than with {operators} of the group"
    PART_NO_BETTER = "no faster than with {operators} of the group"
    PART_BEST = "the best is {operators} of the group"
    NEXT_GROUP = "trying group {group} of {groups} next, with {operators:operator}"
    NEXT_PART = "trying {operators} of the group next"
    LAST_GROUP = "no group is left"
    BUFFERS = "buffers are {fill:%} full"
    NOISE = "the difference counts as noise"
    NO_CONGESTION = "buffers aren't congested"
    FEWER_CONGESTED = "fewer channels were congested"
    BUSY_LAST_THREAD = "the system is busy, but the last thread stays"
    BUSY_TRY_FEWER = "the system is busy, so one thread less is tried"
    STILL_IMPROVING = "throughput still improves, so one thread more is tried"
    ONE_MORE_FASTER = "one thread more was faster"
    STABLE_ABOVE = "more threads were no faster"
    STABLE_BELOW = "fewer threads were no slower"

    # --- regions: replicas, pipelines, nodes ---

    RATES = "{offered:rate} offered, {carried:rate} processed"
    LATENCY = "p99 latency is {p99:.3g} s, and the goal is {goal:.3g} s; replicas are sized for {aim:%} use"
    LATENCY_UNKNOWN = "the latency isn't measured yet, and the goal is {goal:.3g} s"
    REGIONS_ROLLED_BACK = "the plan in force isn't the one asked for: it was rolled back, or changed by others"
    WARMING_UP = "warming up after the change"
    MEASURING_REGIONS = "measuring the regions"
    NO_CPU = "threads had no CPU for {share:%} of their work"
    NOTHING_MADE = "sources are blocked on output and have emitted nothing"
    NOT_JUDGED = "not judged for {periods} of at most {most:period}"
    LOCAL_UNSETTLED = "threads and queues haven't settled, after {periods} of at most {most:period}"
    LOAD_MAY_CHANGE = "the load seems to change"
    STABLE = "the region level is stable"
    REPLICAS_EARLIER = "{replicas:replica} of {region} paid off in an earlier run"
    PROCESS_EARLIER = "a process for {operators:list} paid off in an earlier run"
    HOT_KEY = "key {key} has {share:%} of the load of {region}"
    INDIVISIBLE = "one indivisible part of {region} has {share:%} of its load"
    REPLICAS_LIMIT = "more than {replicas:replica} would hardly help"
    TWO_STEPS = "declaring {aggregate} with two_steps=True would divide it"
    FEWER_REPLICAS_MAY_DO = "more replicas helped far less than expected, and no CPU was free: fewer may be enough"
    SPLIT = "split {region} before {at}"
    MERGE = "merge {region} at {at}"
    REPLICAS = "{region} from {before:replica} to {replicas}"
    MOVE = "move replicas of {region} to {pes:list}"
    SHARE = "partitions of {region} as {shares:ratio}"
    SHARE_EVENLY = "partitions of {region} as evenly as possible"
    GAIN = "expected gain {gain:%}, cost {cost:.1f} s"
    SAVES_THREADS = "saves {gain:%} of the threads, cost {cost:.1f} s"
    SAVES_PROCESSES = "saves {gain:%} of the processes, cost {cost:.1f} s"
    NOT_WORTH_IT = "not worth it"
    NO_ROOM = "no node has room, except for what didn't help before"
    BOUNDS_NO_ROOM = (
        "no room for replicas of {regions:list}: nodes are full, or Elasticity(max_processes=...) is reached"
    )
    BOUNDS = "the bounds on replicas at this time require it"
    UNEVEN = "replicas aren't equally busy"
    GIL_FULL = "one GIL isn't enough: start a process for {operators:list}"
    BACK_TOGETHER = "move {operators:list} back to the process upstream"
    GIL_FULL_STAYS = "one GIL isn't enough for {operators:list} and others, but they stay in one process"
    HOST_FULL = "the CPUs of {nodes:list} aren't enough: {operators:list} go to another host"
    HOST_FULL_STAYS = "the CPUs of one host aren't enough, but {operators:list} stay in their process"
    HOST_HAS_ROOM = "CPUs of {nodes:list} are idle, and threads of a process can use them: another host wouldn't help"
    ONE_HOST = "the CPUs of {node} are all in use, and there is no other host"
    HOSTS_FULL = "the CPUs of one host aren't enough, and no other host has any left"
    ONE_THREAD = "one operator needs a whole thread, so another host wouldn't help"
    LINKS_TOO_MUCH = "no other division of the operators over hosts frees more CPU than its links use"
    TRIED_IN_VAIN = "{operators:list} on another host didn't help before"
    GAINED = "throughput changed by {gain:+%}"
    REPLICAS_KEPT = "kept"
    REPLICAS_REVERTED = "reverted: less gain than expected; not tried again until the load changes"
    NODE_LOST = "node {node} is lost"
    PE_MOVES = "{pe} moves to {node}"
    NEEDS_MORE = "{region} needs {use:%} of its capacity: it scales out if this lasts"
    LESS_WOULD_DO = "fewer threads or replicas are enough for {regions:list}: scale in if this lasts"
    CANT_GROW = "nothing makes {regions:list} faster"
    BUSIEST = "{region} is the busiest region, at {use:%}"
    CPUS_MISSING = "the load needs {cpus:.1f} CPUs more than may be used"
    NO_ROOM_FOR_CPUS = "replicas that need {cpus:.1f} CPUs have no room"
    PIPELINE_BUSY = "{region} is {busy:%} busy"
    PIPELINES_CALM = "no pipeline is more than {busy:%} busy"
    NOTHING_LEFT = "over the limit, with nothing left to try: {regions:list}"
    REGION_GAIN = "the throughput of {region} changed by {gain:+%}"
    NOTHING_ELSE = "there is nothing else to try"

    # --- why operators stay in one process, or a region keeps one replica ---

    PLACED_BY_CONFIG = "JobConfig(pes=...) fixes which operators run where"
    REMEMBERS = "'{operator}' remembers {names:code} outside its state"
    CANT_SEEK = "after a move, {sources:list} would emit rows again, as no position can be restored"
    NO_CHECKPOINTS = "the job takes no checkpoints to restore from"
    IN_ORDER_OF_TIMES = (
        "'{operator}' emits tuples in the order of their times, unless key_by takes a field of its left stream"
    )
    ONE_SINK = "'{operator}' is a sink, which has one replica"
    OBJECT_MAY_CHANGE = "'{operator}' is an object that may change: declare stateless=True, or state by key"
    WHOLE_STREAM = "'{operator}' has state of the whole stream"
    ACTS_AT_END = "'{operator}' acts at the end of its input"
    KIND_HAS_ONE = "a {kind} region has one replica"
    NO_OUTPUT_USED = "no operator receives its output"
    ONE_GROUP = "it has one group of all tuples"
    SEVERAL_INPUTS = "only a join may have several input ports: {operators:list}"
    SEVERAL_OUTPUTS = "several output ports, or the head of a loop: {operators:list}"
    IN_A_CHANNEL = "it runs in a channel whose order is restored"
    OTHER_KEYS = "its region has other keys: {operators:list}"
    PIPELINES_APART = "its pipelines are in different PEs"
    FIXED_BY_CONFIG = "the job has JobConfig(regions='fixed')"

    # --- the bottleneck of a job, and why the runtime doesn't scale it ---

    WAITS_OUTSIDE = "its function waits {asleep:%} of the time and computes {cpu:%}"
    COMPUTES = "its function is busy {busy:%} of the time of one thread"
    UPSTREAM_BLOCKED = "operators upstream are blocked on output {blocked:%} of the time"
    HOLDS_GIL = "threads wait for the GIL {wait:.1f} s a second, and it holds the GIL {busy:%} of the time"
    ONE_GIL = "one Python function runs at a time in a process: compile it, or run it in a PE of its own"
    SKEWED = "{share:%} of its tuples go to {pe}, one of {replicas:replica}"
    HOTTEST_KEY = "key {key} has {share:%} of the tuples of {region}"
    KEY_HAS_ONE_REPLICA = "a key belongs to one replica, so more replicas don't divide a hot key"
    TWO_STEPS_DIVIDE = "an aggregate with two_steps=True divides it"
    BUSIEST_OPERATOR = "the busiest operator is {busy:%} busy"
    NOTHING_RUNS = "no operator runs"
    KEEPS_UP = "the job keeps up with its sources"
    SOURCES_FULL_SPEED = "the sources emit as fast as they can"
    KEEPS_ONE = "its region {region} keeps one replica:"
    RUNS_AS = "its region {region} runs as {replicas:replica}"
    NOT_ELASTIC = "it scales with JobConfig(regions='elastic'), the default on Ray"
    LAST_REGION_DECISION = "last decision on replicas:"
    LAST_THREAD_DECISION = "last decision on threads and queues of {pe}:"
    THREADS_FIXED = "JobConfig fixes threads and queues"

    # --- regions of a plan ---

    SOURCE_ALONE = "a source stands alone"
    SPLIT_BY_KEY = "can be split into pipelines and replicated by key; each key keeps its order"
    SPLIT_IN_TURN = "can be split into pipelines and replicated; the order of its input is restored ({by})"
    SPLIT_MEETING = "can be split into pipelines and replicated; each stream that it receives keeps its order ({by})"
    SPLIT_ANY_ORDER = "can be split into pipelines and replicated; tuples may overtake each other ({by})"
    SPLIT_ONLY = "can be split into pipelines"
    LOOP_TOGETHER = "what goes round stays together"
    CHANNELS = "has as many channels as pay"

    # --- why a function isn't compiled: what the compiler doesn't support ---

    UNSUPPORTED = "{what} isn't compiled"
    ARGUMENTS = "{what} isn't compiled with these arguments"
    WRITE_INSTEAD = "{what} isn't compiled: write {instead}"
    CONSTANT_ONLY = "{what} is compiled with a constant {argument} only"
    ITEMS_AT_ONCE = "{what} is compiled only where all its items are taken at once, as by list(..)"
    NEEDS_INTERPRETER = "{what} isn't compiled: it needs the interpreter"
    LAST_DIGIT = "{what} isn't compiled: it may differ in the last digit"
    BY_IDENTITY = "{what} isn't compiled: Python compares NaN by identity"
    PATTERN = "{what} isn't compiled: its pattern has {feature}"
    NO_PATTERN_ENGINE = "{what} isn't compiled: PCRE2 (Debian's libpcre2-8-0) is missing or rejects the pattern"
    DIRECTIVES = "{what} is compiled with the directives {directives:list} only"
    INVALID = "{what} is wrong: {error}"
    INTEGER_TOO_LARGE = "the constant {value} doesn't fit the 64 bits of compiled integers"
    COMPILER_SAYS = "{error}"

    # --- why a function isn't compiled: names, kinds and control flow ---

    CHANGES_OUTSIDE = "it changes '{name}', which compiled code copies at declaration; keep what changes in state="
    CAN_CHANGE = "'{name}' is a {kind} outside the function and can change: make it {cure}"
    OUTSIDE = "'{name}' outside the function is a {kind}, which isn't compiled"
    NO_ATTRIBUTE = "'{what}' has no attribute '{name}' at declaration"
    UNDEFINED = "name '{name}' is not defined"
    UNASSIGNED = "'{name}' may have no value where it is read"
    MAY_BE_NONE = "what may be None is used here, where a handler could catch that: ask whether it is None first"
    TWO_KINDS = "{what} is once {first} and once {second}: make all of one kind"
    MIXED_KINDS = "{what} have different kinds here: make all of one kind"
    KIND_UNKNOWN = "the kind of {what} isn't known"
    NOTHING_PUT_IN = "what {what} holds isn't known: nothing is put in"
    READS_EXCEPTION = "it reads the exception that it catches, which compiled code doesn't have"
    CATCHES_UNKNOWN = "it catches what isn't known to be classes of exceptions; their names are compiled"
    TRY_FLOW = "its try statements are too complex"
    RAISES_IN_TRY = "'{name}', a function inside the function, is called in a try and can raise: move it outside"
    LAZY_IN_TRY = "what it returns in a try may raise later: return a list"
    ITEMS_TOO_EARLY = "items that may raise or change are computed here before the first is used: use a loop"
    IMPORTS = "it imports {name}, which isn't in the standard library: import it outside the function"
    NO_SOURCE = "the source of {function} isn't known"
    NOT_A_METHOD = "{function} isn't a plain method of Python"
    NOT_PYTHON = "it is a {kind}, and only functions in Python are compiled"
    TOO_LARGE = "it leads to thousands of functions and objects of other libraries"
    PATCHED = "{name} isn't Python's own at present: it was replaced"

    NO_COMPILER = "{package} isn't installed, and it makes the machine code"

    # --- why a function isn't compiled: state, ports and results ---

    STATE_CLASS = "its state is no NamedTuple class with defaults, so it has no fixed layout"
    STATE_LAYOUT = "its state has no fixed layout: {error}"
    IN_EACH_PROCESS = "it has {method}(), which Python calls in each process"
    SIDE_OUTPUT = "it has the side output '{name}'"
    ANNOTATED = "its parameter is annotated with {library}"
    SEVERAL_PORTS = "it has several ports, or no output"
    WAITS_FOR_TUPLES = "it waits for a number of tuples"
    NO_ON_TIME = "it sets timers, and the class has no on_time"
    HAS_SELF = "invoke has self, whose attributes aren't compiled; make it a @staticmethod"
    IMMUTABLE = "a tuple is immutable: assigning '{field}' fails"
    WRONG_COUNT = "{what} has {count:value}, and {schema} has {fields:field}"
    WRONG_KIND = "field '{field}' of {schema} is {kind}, but receives {value}"
    NO_FIELD_KIND = "output field '{field}' would be {kind}, which a record doesn't hold"
    NO_RESULT = "it never {returns} a value"
    NOT_A_CONDITION = "a filter returns a bool, and this returns {kind}"
    RETURNS_NONE = "it {returns} None for {which} tuples"
    RETURNS_DIFFERENT = "it returns tuples of different {parts}; declare the output with schema="
    RETURNS_OTHER_FIELDS = "it returns a {kind} with the fields {names:list}, and {schema} is declared"

    def __call__(self, **values: Any) -> Reason:
        """Return the reason with its values: numbers, texts, lists and settings, as JSON has them."""
        return Reason(self, values)


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason, as a code and values.

    Args:
        code: what it says.
        values: {name: value} of all that the sentence names, as JSON has them. Shares are 0..1, rates are tuples/s.

    >>> str(Code.REVERTED(tried={"threads": 2, "queues": 0}, base={"threads": 1, "queues": 0}, change=-0.994, rate=82,
    ...                   base_rate=15_200))
    'reverted: 2 threads were 99 % slower than 1 thread (82/s against 15.2k/s)'
    """

    code: Code
    values: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return _SENTENCES.vformat(self.code.value, (), self.values)

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON values: the code beside its values."""
        return {"code": self.code.name.lower(), **self.values}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the reason that `as_dict` wrote.

        Raises:
            ValueError: Only another version has the code.
        """
        code = values["code"].upper()
        if code not in Code.__members__:
            raise ValueError(f"another version of rayelastic wrote it: {code.lower()} isn't a reason of this one")
        return cls(Code[code], {name: value for name, value in values.items() if name != "code"})


def sentence(reasons: Iterable[Reason]) -> str:
    """Return what people read: each reason a sentence.

    >>> sentence([Code.NO_BETTER(), Code.SETTLED(setting={"threads": 2, "queues": 3})])
    'No better setting found. Staying with 2 threads and 3 queues.'
    """
    return " ".join(_sentence(reason) for reason in reasons)


def _sentence(reason: Reason) -> str:
    """Return a reason with its full stop, and a capital first letter unless a name comes first."""
    text, template = str(reason), reason.code.value
    start = text if template.startswith(("{", "'")) else text[0].upper() + text[1:]
    return start if template.endswith(":") else f"{start}."


class _Sentences(string.Formatter):
    """Writes values by their form: shares as '%', rates, settings, lists, or counted by a noun."""

    def format_field(self, value: Any, form: str) -> str:
        match form:
            case "%" | "+%":
                return _percent(value, form.removesuffix("%"))
            case "rate":
                return f"{short(value)}/s"
            case "faster":
                return f"{_percent(abs(value))} {'faster' if value >= 0 else 'slower'}"
            case "setting":
                return _setting(value)
            case "were":
                return f"{_setting(value)} {'was' if list(value.values()) in ([1], [1, 0]) else 'were'}"
            case "list":
                return ", ".join(value)
            case "code":
                return ", ".join(f"`{name}`" for name in value)
            case "ratio":
                return ":".join(map(str, value))
        return counted(value, form) if form.isalpha() else str(super().format_field(value, form))


def _percent(share: float, sign: str = "") -> str:
    return f"{100 * share:{sign}.{1 if 0 < abs(share) < FEW else 0}f} %"


def _setting(counts: Mapping[str, int]) -> str:
    """Return numbers of threads, queues or channels; without queues there is no word of them."""
    words: Sequence[str] = [counted(n, name.removesuffix("s")) for name, n in counts.items() if n or len(counts) == 1]
    return " and ".join(words)


_SENTENCES = _Sentences()
