"""
Native scheduler, operators, links and the Arrow edge of rayelastic. Errors are ValueError and TypeError that name the operator.
"""

from collections.abc import Callable, Mapping, Sequence
import enum
from typing import Any


class Schema:
    """
    The layout of a record: fields in order, natural alignment, then validity bits, size a multiple of 8.
    """

    def __init__(self, fields: Sequence[tuple[str, str, bool, str]], known: Sequence[object] = []) -> None:
        """
        Fields as (name, type, nullable, format), and what Python knows of their values. ValueError for a duplicate name or an unknown type.
        """

    @property
    def record_size(self) -> int:
        """Bytes of a record."""

    @property
    def validity_offset(self) -> int:
        """Where the validity bits start."""

    @property
    def offsets(self) -> list[int]:
        """Byte offset of each field."""

    @property
    def fields(self) -> list[tuple[str, str, bool, str]]:
        """What the schema was made of."""

class RecordCheck:
    """Tells whether values can be records of a schema."""

    def __init__(self, operator: str, schema: Schema) -> None: ...

    def __call__(self, value: object) -> None:
        """TypeError, ValueError: it can't."""

def are_json_objects(lines: bytes, deepest: int) -> bool:
    """
    Whether lines are UTF-8 with an object each, nested no deeper than so many levels; False where that isn't sure.
    """

def has_long_whole_number(lines: bytes, names: str) -> bool:
    """
    Whether a field of one of these names, a line each, has a whole number of 16 digits or more; an empty line means items of lists.
    """

class StateError(ValueError):
    pass

class OperatorPause:
    """
    Has an operator at its safe point for the time of one work on its state; TimeoutError if it doesn't come there.
    """

    def take_in_parts(self) -> None:
        """
        Has the state have all that was processed when this is called, also what a producer took beside the operator; StateError if a sum overflows.
        """

def key_hash(schema: Schema, key: tuple[Any, ...]) -> int:
    """
    The hash by which routers and state tables know a key, whose fields are those of the schema. TypeError or ValueError for what is no such key.
    """

def key_of(schema: Schema, key: bytes, null: bool) -> tuple[Any, ...]:
    """
    The values of a key that a router counts (key_extractor.hpp). StateError: it is none of these fields.
    """

def keys_in(data: bytes) -> int:
    """The number of keys of an export."""

class KeySelection:
    """Some keys of a KeyedState, by their hashes."""

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        """
        None yet, of those whose hash is in one of the ranges, which don't overlap.
        """

class StateCopy:
    """
    A KeyedState as it was at a moment, while its operator goes on (Scheduler.take_copy).
    """

    @property
    def number(self) -> int:
        """1 for the first copy of its table, and so on."""

    @property
    def changed_after(self) -> list[int]:
        """
        By segment the number of the last copy before its last change: what a copy with a higher number gave of it is right still.
        """

    def skip(self, segment: int) -> None:
        """Has a segment not be given."""

    def abandon(self) -> None:
        """Nobody wants the rest: the operator keeps nothing any more for it."""

    def next_chunk(self, max_bytes: int = 1048576) -> tuple[int, bytes] | None:
        """
        State of some of the keys of a segment, and which: about max_bytes, an export of its own; None when all have been given. One thread at a time.
        """

class KeyedState:
    """
    The state of a keyed operator. Exported, imported and removed from only while the operator isn't running (Scheduler.hold); size at any time.
    """

    def __init__(self, schema: Schema, keys: Sequence[str], record: Schema, initial: bytes, ttl: tuple[int, str, int, str] = (0, '', 0, 'last')) -> None:
        """
        State records of a schema, a copy of initial for a new key. ttl: a key that isn't touched for so many ticks of a time field, with a shift, is
        forgotten; nanoseconds of the clock where the field is ''; 0: none is.
        """

    @staticmethod
    def objects(schema: Schema, keys: Sequence[str], factory: Callable[[], Any], ttl: tuple[int, str, int, str] = (0, '', 0, 'last'), told: bool = False, unpickles: bool = True) -> KeyedState:
        """
        Any Python value per key, made by factory() when the key comes first. told: they are changed also when no record of their key comes, and
        will_change is called before. unpickles: False leaves imported values as pickled bytes.
        """

    @staticmethod
    def object(save: Callable[[], bytes], load: Callable[[bytes], Any]) -> KeyedState:
        """
        The state of an object without keys: bytes that save() returns and load(bytes) restores.
        """

    @property
    def size(self) -> int:
        """Keys."""

    @property
    def used_bytes(self) -> int:
        """Memory in use, without what Python values hold."""

    @property
    def layout(self) -> int:
        """
        Of keys and state record: states of the same layout can import from one another.
        """

    @property
    def pickled(self) -> bool:
        """Whether exports hold pickled values: only ever import what you trust."""

    def values(self) -> list[Any]:
        """
        The Python values that there are; by the operator, or while it is held.
        """

    @property
    def changes(self) -> int:
        """
        How often Python values have come or gone otherwise than by the operator's own runs.
        """

    def will_change(self, value: Any) -> None:
        """
        By the operator: a Python value is about to be changed of which no record has come in this run; a copy has it as it was.
        """

    def forget(self, values: Sequence[Any]) -> None:
        """
        By the operator, if told: it needs these Python values no more, and their keys are freed.
        """

    @property
    def exports_aside(self) -> bool:
        """
        Whether keys of which no record comes may be exported while the operator runs.
        """

    def export(self, low: int = 0, high: int = 18446744073709551615) -> bytes:
        """
        State of the keys whose hash is in [low, high]. Python values are pickled: only ever import what you trust.
        """

    def select(self, ranges: Sequence[tuple[int, int]]) -> KeySelection:
        """
        The keys whose hash is in one of the ranges, which don't overlap; it holds as long as nobody adds such keys.
        """

    def select_chunk(self, keys: KeySelection, at: int = 0, max_places: int = 65536, pause: OperatorPause | None = None) -> int:
        """
        Looks at some places and adds the keys there that are meant; where to go on, 0 when there is no more. The operator may run in between.
        """

    def export_chunk(self, keys: KeySelection, at: int = 0, max_bytes: int = 1048576, pause: OperatorPause | None = None) -> tuple[bytes, int]:
        """
        State of some of the keys: about max_bytes, an export of its own, and where to go on; 0 when there is no more.
        """

    def reserve_more(self, keys: int, pause: OperatorPause | None = None) -> int:
        """Makes room for so many keys more."""

    def import_(self, data: bytes, pause: OperatorPause | None = None) -> int:
        """
        All or nothing; StateError for keys that are here already, and for bytes of another format or layout. Returns the number of keys.
        """

    def import_older(self, older: KeyedState) -> int:
        """
        Imports the keys of a state whose records have some of the fields, as wide or less; the others are those of a new key. Returns the number of keys.
        """

    def to_arrow(self, schema: Schema) -> list[Any]:
        """
        The state as rows of such fields: a list of pyarrow.RecordBatch; while the operator isn't running. StateError: it has no rows.
        """

    def remove(self, low: int = 0, high: int = 18446744073709551615) -> int:
        """Forgets the keys whose hash is in [low, high]; returns how many."""

    def remove_chunk(self, keys: KeySelection, at: int = 0, max_keys: int = 4096, pause: OperatorPause | None = None) -> tuple[int, int]:
        """
        Forgets some of the keys; how many, and where to go on, 0 when there is no more.
        """

class ArrowFeeder:
    """
    A bounded queue of Arrow batches, read by Operator.arrow_source. Any number of threads may push.
    """

    def __init__(self, schema: Schema, capacity_bytes: int = 33554432, unread: Sequence[str] = []) -> None:
        """
        Batches need no columns for the fields in `unread`, which are zero, empty or null in all records.
        """

    def push(self, batch: object) -> bool:
        """
        Queues a pyarrow.RecordBatch, or anything with __arrow_c_array__, and waits while the queue is full (back-pressure).
        False: the feeder was stopped, and the batch is dropped. ValueError, naming the field: the batch doesn't fit the schema.
        """

    def mark_split(self, split: int, change: str) -> None:
        """
        Says of a split that it is 'open', 'waits' for its turn, has what is pushed from 'now' on, or is at its 'end'.
        """

    def finish(self) -> None:
        """No more batches; those queued are still read."""

    def fail(self, message: str) -> None:
        """The source fails with this message."""

    @property
    def queued_bytes(self) -> int: ...

class Tls:
    """
    TLS 1.3 over a connected socket, with a key that both sides have; nothing blocks.
    """

    def __init__(self, fd: int, key: bytes, server: bool) -> None:
        """Doesn't own the descriptor. key: 32 bytes."""

    @staticmethod
    def certified(fd: int, own: str, own_key: str, authorities: str, server: bool) -> Tls:
        """
        With certificates of both sides, files as PEM; RuntimeError: they can't be used.
        """

    @staticmethod
    def missing() -> str:
        """Why there is no TLS on this machine; empty if there is."""

    def handshake(self) -> str:
        """
        Goes on with the handshake: done, reads or writes (what it waits for), or failed.
        """

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """
        Bytes that went out, -1: none now; the next call begins with the same bytes.
        """

    def receive_into(self, buffer: bytes | bytearray | memoryview) -> int:
        """Bytes that came, 0: the end, -1: none now."""

    @property
    def unsent(self) -> bool:
        """Whether a later send, of nothing too, has to go on."""

    @property
    def error(self) -> str:
        """Why it failed; empty if it didn't."""

    @property
    def in_force(self) -> str:
        """The protocol and its suite; empty before the handshake has ended."""

    @property
    def exported(self) -> bytes:
        """
        32 bytes that the two ends of this connection have in common; empty before the handshake has ended.
        """

def crc32c(data: bytes) -> int:
    """CRC-32C of some bytes (RFC 3720), as links have it."""

class Link:
    """
    One stream between two PEs over a connected, authenticated socket; see Operator.link_out and link_in.
    """

    def __init__(self, fd: int, name: str, peer: str, frame_bytes: int = 65536, window_bytes: int = 4194304, most_text: int = 536870912, silence: float = 30.0, tls: Tls | None = None) -> None:
        """
        Takes ownership of the descriptor: pass socket.detach(). silence in seconds, sizes in bytes; tls: its handshake over the socket has ended.
        """

    def interrupt(self) -> None:
        """Unblocks who waits in the link and closes it."""

    def counters(self) -> dict[str, Any]:
        """Totals since the link was made; refused: frames by fault."""

    @property
    def flow(self) -> tuple[int, int]:
        """
        (records and marks that were put in here, those that were given on from here): equal at its two ends, it is empty.
        """

    @property
    def encryption(self) -> str:
        """The protocol and its suite; empty if it has none."""

    @property
    def ended(self) -> bool:
        """Whether both sides have said goodbye: nothing comes any more."""

    @property
    def failure(self) -> str:
        """What went wrong first; empty if nothing did."""

class RouterAnswer(enum.Enum):
    """How a command to a router went."""

    DONE = 0

    LATE = 1
    """Not yet; it may still be done."""

    REFUSED = 2
    """It is of an older epoch, or names a target that there isn't."""

    ENDED = 3
    """The input is at its end."""

class RouterCounters:
    """Of a router since it was made."""

    @property
    def epoch(self) -> int:
        """Of the last command."""

    @property
    def held_records(self) -> int:
        """That wait now."""

    @property
    def held_bytes(self) -> int: ...

    @property
    def ever_held(self) -> int:
        """Records."""

    @property
    def waits(self) -> int:
        """Times that hold_bytes was reached."""

    @property
    def ended(self) -> bool:
        """Whether the input is at its end."""

    @property
    def closed(self) -> bool:
        """Whether it carries no command out any more."""

    @property
    def broken(self) -> list[int]:
        """Targets whose link failed: their keys are held."""

    @property
    def owners(self) -> list[int]:
        """The target of each partition; 65535 if it is held."""

class Router:
    """
    In front of a region: sends each record to the replica that owns its key, and holds keys that move. Commands return a ticket;
    after Scheduler.poke, wait(ticket) tells how it went.
    """

    def __init__(self, name: str, schema: Schema, keys: Sequence[str], owners: Sequence[int], locals: Sequence[int], in_turn: bool = False, everywhere: bool = False, end_mark: int = 0) -> None:
        """
        owners: the target of each partition; locals: targets behind output ports 0, 1, ...; in_turn: deal records out in turns, whatever
        their keys; everywhere: each record to all targets; end_mark: behind the last record to a local one (0: none).
        """

    def hold(self, partitions: Sequence[int], owner: int, mark: int, epoch: int) -> int:
        """
        From now on their records wait; a Flush mark follows the last one that went to their owner.
        """

    def route(self, partitions: Sequence[int], target: int, epoch: int) -> int:
        """From now on their records go there, those that waited first."""

    def attach(self, target: int, link: Link, epoch: int) -> int:
        """A target behind a link. Nothing goes there before route()."""

    def detach(self, target: int, epoch: int) -> int:
        """Its link says goodbye; nothing may be routed there."""

    def wait(self, ticket: int, patience: float) -> RouterAnswer:
        """How a command went, at most `patience` seconds later."""

    def counters(self) -> RouterCounters: ...

    def hottest(self) -> tuple[bytes, bool, float, int] | None:
        """
        Of the keys that it has looked at lately the one with the most records: its bytes (key_extractor.hpp), whether it is null, its share at
        least, 0 to 1, and how many records were looked at. None before there are some, and where records don't go by keys.
        """

class Gather:
    """
    Where a stream comes in by any number of links, more and fewer while it runs.
    """

    def __init__(self, name: str, schema: Schema, local_ends: int = 0, tolerant: bool = False, in_turn: bool = False, end_mark: int = 0, any_order: bool = False) -> None:
        """
        local_ends: taps that end into it; tolerant: a link that is lost doesn't fail the PE; in_turn: in the order of a router's turns;
        end_mark: is sent behind the last record (0: none); any_order: in_turn, but as it comes.
        """

    def add(self, link: Link) -> bool:
        """False: too late, the stream has ended."""

    def wait_mark(self, mark: int, count: int, patience: float) -> bool:
        """True once the mark came `count` times, or nothing more comes."""

    def abandon_epochs(self, epoch: int) -> None:
        """Marks of epochs up to that one mean nothing any more."""

    def seal(self) -> None:
        """No link comes that isn't there. Safe to repeat."""

    @property
    def lost(self) -> list[str]:
        """Links that failed."""

    @property
    def flow(self) -> tuple[int, int]:
        """
        In turn: what the replica in the same PE has handed over, and what of it has been passed on.
        """

class Tap:
    """Behind a replica: passes everything on and notes Flush marks."""

    def __init__(self, gathers: Sequence[Gather] = (), in_turn: Gather | None = None) -> None:
        """
        gathers: hear of its end; in_turn: takes what comes from the first turn on.
        """

    def wait_mark(self, mark: int, count: int, patience: float) -> bool:
        """True once the mark came `count` times, or nothing more comes."""

class OwnAggregate:
    """
    A user's aggregate, compiled, of one operator: what it takes in, merges and gives is machine code.
    """

    def __init__(self, name: str, input: Schema, state: Schema, result: Schema, methods: tuple[int, int, int], initial: bytes, explained: tuple[Any, Any], owner: object) -> None:
        """
        methods: addresses of add (0: states are only read), merge (0 for none) and result (0: fields of the state, by name); initial: the state
        record of nothing; explained: why add failed on a tuple and a state, and result on a state.
        """

class Operator:
    """
    One operator, ready to be added to a scheduler. ValueError names the operator when something doesn't fit.
    """

    @staticmethod
    def compiled(name: str, address: int, flags: int, input: Schema, output: Schema, keyed: KeyedState | None = None, owner: object = None) -> Operator:
        """A rel_process at an address (abi.h). owner: kept alive with it."""

    @staticmethod
    def python_ports(name: str, function: Callable[..., Any], inputs: Sequence[tuple[Schema, type | None, Sequence[str], tuple[str, int] | None, tuple[str, int] | None]], outputs: Sequence[Schema], view: str = 'tuples', flags: int = 0, state: KeyedState | tuple[Callable[[], bytes], Callable[[bytes], object]] | None = None, letters: bool = False) -> Operator:
        """
        A Python function of runs of several ports, under the Python token; it returns None, or a result (as of `python`) or None for each output port.

        An input port: its schema, tuple type, key fields, demand ('exact' or 'at least', and a count), and the event time and shift by which
        the keys of a further port live. Without demands: function(port, run[, list of states]). With demands: function(firings, [run of each
        port]), with firings = 0 for what is left when a port has ended. With ON_FINISH: function(-1, None) at the end; with ON_WATERMARK:
        function(-2, watermark) when that has advanced; with ON_COMMAND: function(-3, None) by Scheduler.poke. state: that of keys, or what
        saves the state of its object and what restores it before the start. letters: the last output port has the fields of the input and two
        texts; its result is a list of (number of the tuple in its run, error).
        """

    @staticmethod
    def python(name: str, function: Callable[..., Any], input: Schema | None, output: Schema | None, tuple_type: type | None = None, view: str = 'tuples', flags: int = 0, keyed: KeyedState | None = None) -> Operator:
        """
        A Python function of a run, called once per run under the Python token.

        tuples: function(list of tuple_type[, list of states]) -> list: one output per tuple with ONE_TO_ONE, truth values with FILTER,
        any number otherwise, nothing with SINK; called with [] at the end with ON_FINISH. Outputs are tuples, or plain values where the
        schema has one field. An int attribute rel_index on an exception tells which input raised.
        numpy: function(structured array) -> array, column, {field: column}, or bool mask. arrow: function(pyarrow.RecordBatch) -> the same, or mask.
        With SOURCE: function() -> iterator of tuples, read on a thread of its own. It may wait for things, and doesn't keep others from the
        token while it does; with NEEDS_TOKEN too it must never wait. A stop raises GeneratorExit where it waits in Python code.
        """

    @staticmethod
    def tolerant(operator: Operator, letters: Schema | None, explain: Callable[[tuple[Any, ...]], str]) -> Operator:
        """
        A compiled operator that goes on behind tuples on which it fails. letters: of a second output port to which they go, with two more texts:
        explain(tuple) and the operator's name; None: they are left out.
        """

    @staticmethod
    def answered(operator: Operator, answer: Callable[[tuple[Any, ...]], Sequence[Any] | bool | None]) -> Operator:
        """
        A compiled operator without keys that takes answer(tuple), a list of outputs or of a FILTER a truth value, where its function fails.
        None, or what doesn't fit the output: it has failed.
        """

    @staticmethod
    def split(name: str, schema: Schema, ports: int, keys: Sequence[str] = []) -> Operator:
        """
        Each record to one of the output ports: by the hash of its keys, or in turn if there are none.
        """

    @staticmethod
    def choice(choice: Operator, ports: int) -> Operator:
        """
        Each record to the output port whose number the compiled operator `choice` gives for it.
        """

    @staticmethod
    def aggregate(name: str, input: Schema, output: Schema, keys: Sequence[str], aggregates: Sequence[tuple[str, str, str, float, float]], emit: str = 'final', ttl: tuple[int, str, int, str] = (0, '', 0, ''), own: OwnAggregate | None = None) -> Operator:
        """
        The built-in aggregate: (function, field, field of weights, two parameters); field '' for a count of tuples. ttl as of KeyedState.
        emit: 'final', 'update', or 'run': what each run of tuples gives by itself. Or a user's own, alone.
        """

    @staticmethod
    def text_source(name: str, output: Schema, paths: Sequence[str], open: Callable[[str], Any], all_opened: bool = False) -> Operator:
        """
        Lines of text files, one string field. open(path): gives the bytes of a URI or a compressed file by readinto(buffer); of
        every file with all_opened.
        """

    @staticmethod
    def sequence_source(name: str, output: Schema, count: int, payload_bytes: int = 0) -> Operator:
        """0, 1, ..., count - 1 with a shared payload."""

    @staticmethod
    def arrow_source(name: str, output: Schema, feeder: ArrowFeeder) -> Operator:
        """Rows of the batches pushed into an ArrowFeeder."""

    @staticmethod
    def arrow_sink(name: str, input: Schema, function: Callable[[Any], Any], batch_rows: int = 65536) -> Operator:
        """
        function(pyarrow.RecordBatch), once per batch_rows rows and for the rest at the end.
        """

    @staticmethod
    def count_sink(name: str, input: Schema) -> Operator:
        """Counts only; see count."""

    @staticmethod
    def link_out(name: str, input: Schema, link: Link) -> Operator:
        """The sending end of a link, a sink."""

    @staticmethod
    def link_in(name: str, output: Schema, link: Link) -> Operator:
        """The receiving end of a link, a source."""

    @staticmethod
    def router(router: Router) -> Operator:
        """
        Runs a router: an output port for each local target, a sink if there is none.
        """

    @staticmethod
    def gather(gather: Gather) -> Operator:
        """Runs a gather, a source."""

    @staticmethod
    def tap(name: str, schema: Schema, tap: Tap) -> Operator:
        """Runs a tap."""

    @property
    def name(self) -> str:
        """What counters and messages call it."""

    @property
    def flags(self) -> int:
        """rel_flags as the scheduler sees them."""

    @property
    def state(self) -> KeyedState | None:
        """What it keeps by key, whatever its lane; None if that is nothing."""

    @property
    def has_part(self) -> bool:
        """
        Whether its producer may run it beside whoever does, where it finds the queue full.
        """

    @property
    def reentrant(self) -> bool:
        """Whether several threads may run it at once, each by itself."""

    def settle(self) -> None:
        """
        Before its state is read with everything held: takes in what other threads have done for it. StateError if it can't.
        """

    @property
    def is_inside(self) -> bool:
        """Whether a thread is in its Python function now."""

    def interrupt(self) -> bool:
        """
        Raises GeneratorExit in its Python function, where that is in Python code; a call that waits in C and never comes back can't be interrupted
        by anybody. False: no thread is inside.
        """

    @property
    def count(self) -> int | None:
        """Tuples that a count_sink has seen; None for other operators."""

    @staticmethod
    def event_time(name: str, schema: Schema, field: str, lateness: int, idle: tuple[float, float], ahead: tuple[float, float], splits: bool) -> Operator:
        """
        Emits watermarks for the event time in a field; lateness in ticks. idle and ahead: seconds, and the ticks of a second. After the seconds
        of idle without a record (0: never) it is idle or, with ticks, continues by the clock; poke it now and then. With the ticks of ahead,
        records that are further ahead of the clock go to output port 1. splits: each split of the stream has a watermark of its own.
        """

    @staticmethod
    def union(name: str, schema: Schema, tells: Sequence[bool]) -> Operator:
        """
        Unites the streams of its input ports, each a split or, where it tells of its own in order, several.
        """

    @staticmethod
    def join(name: str, left: Schema, right: Schema, output: Schema, options: Mapping[str, Any]) -> Operator:
        """
        Joins input port 0 with port 1. options by name, as JoinOptions (join.hpp) has them: kind 'latest', 'first', 'all', 'cross' (times ''
        for by arrival), 'interval', 'window', 'pairs' (times ''); before and after in ticks; times, ttl: as of window. With a ttl by the clock it is
        to be poked now and then.
        """

    @staticmethod
    def pattern(marks: Operator, output: Schema, keys: Sequence[str], time: str, shift: int, fields: Sequence[str], steps: Sequence[tuple[str, int, bool]], outer: bool) -> Operator:
        """
        Sequences of records of a key. marks gives an int64 for each record: bit 2i says that step i holds, bit 2i + 1 that it breaks what waits
        for it. steps: name, ticks behind the step before, whether it can be broken; outer: give
        also those that a step hasn't come to in time.
        """

    @staticmethod
    def merge(name: str, schema: Schema, ports: int, time: str, shift: int) -> Operator:
        """Records of all input ports in the order of their times."""

    @staticmethod
    def throttle(name: str, schema: Schema, per_second: float) -> Operator:
        """Passes records on no faster than so many a second."""

    @staticmethod
    def delay(name: str, schema: Schema, seconds: float, most: int) -> Operator:
        """
        Passes everything on so long after it came, keeping at most so many records; to be poked now and then.
        """

    @staticmethod
    def window(name: str, input: Schema, output: Schema, keys: Sequence[str], options: Mapping[str, Any], aggregates: Sequence[tuple[str, str, str, float, float]] = ..., own: OwnAggregate | None = None, function: WindowFunction | None = None) -> Operator:
        """
        Windows, of which one is emitted: aggregates, a user's own aggregate, or what a function makes. options by name, as WindowOptions (window.hpp)
        has them: kind 'count', 'time', 'session', 'assigned' or 'batch'; times: an offset, from which days on days are of 24 hours and when they
        begin, if windows are of days, and the ticks of a second; ttl: as of KeyedState; assigner: an operator that emits start and end of each
        window of a record. A function without a time follows the clock, and is to be poked now and then.
        """

    def with_time_marks(self, period: float) -> Operator:
        """
        The same source, which puts the time into its stream at most once in so many seconds.
        """

    def with_latency(self) -> Operator:
        """
        The same sink, which counts how long the marks that arrive were under way.
        """

    @property
    def latency(self) -> list[int] | None:
        """
        Marks by how long they were under way: less than 2^i microseconds; the last ones: longer. None unless with_latency made it.
        """

    @property
    def text_place(self) -> tuple[int, int, int] | None:
        """
        Of a text_source that is held: a place at most 1 MiB in front of where it is. Number of the file, byte, lines before it.
        """

    def seek_text(self, file: int, byte: int, lines: int) -> None:
        """
        Has a text_source begin at such a place, before it starts: it gives the lines behind it.
        """

    def seek_sequence(self, next: int) -> None:
        """Has a sequence_source begin at a value, before it starts."""

    def flush(self) -> None:
        """
        Has an arrow_sink give the rows that it has gathered, while it is held; nothing for other operators. RuntimeError: its function raised.
        """

    @staticmethod
    def process(name: str, schemas: tuple[Schema, Schema, Schema], keys: Sequence[str], methods: tuple[int, int, int], state: tuple[bytes, Sequence[int], Sequence[int]], times: tuple[str, int, float, int, bool], explained: tuple[Any, Any], owner: object) -> Operator:
        """
        A class with timers of keys. schemas: of the input, the output, and a moment, which on_time and on_end get: the keys, then the time.
        methods: addresses of on_tuple, on_time and on_end, 0 for none; state: the record of a new key, where string views are in it, and
        which of these have bytes; times: the field of the event time ('' by the clock) and ticks to be added, the ticks of a second, ticks
        after which a key is forgotten (0: never), and whether since its first record; explained: of a tuple, and of a moment, why a method
        failed on it.
        """

    @staticmethod
    def concurrent(name: str, calls: Any, input: Schema, outputs: Sequence[Schema], tuple_type: type | None = None, ordered: bool = True) -> Operator:
        """
        Has `calls` deal with tuples elsewhere: room() -> int, begin(tuples), bar(), wait(), and collect() -> None or (list for each output, how
        many tuples and bars, how many left out, ends with a bar). Poke it when something is done.
        """

    @staticmethod
    def channels(name: str, schema: Schema, width: ChannelWidth, ordered: bool) -> Operator:
        """
        Deals records out to the active channels, an output port each; ordered: so that in_turn can restore their order.
        """

    @staticmethod
    def keyed_channels(name: str, schema: Schema, keys: Sequence[str], channels: int) -> Operator:
        """
        Deals records out by the hash of their keys, so that in_turn can restore their order.
        """

    @staticmethod
    def in_turn(name: str, schema: Schema, channels: int) -> Operator:
        """Gives what comes from channels in the order in which it was dealt out."""

    @staticmethod
    def kafka_source(name: str, output: Schema, consumer: KafkaConsumer) -> Operator:
        """The messages of a topic that a KafkaConsumer reads."""

    @staticmethod
    def succession(name: str, first: Operator, second: Operator, tells_first: bool, tells_second: bool, succession: Succession) -> Operator:
        """
        All records of one native source, then those of another. tells_*: whether it announces its splits.
        """

class WindowFunction:
    """What a user's Python functions accumulate of a window, and emit."""

    def __init__(self, name: str, input: Schema, record: object, output: Schema, moment: Schema, methods: object) -> None:
        """
        record: the class of input tuples. moment: the keys, start and end of a window. methods has new() -> state, add(state, tuple) -> state,
        results(moment, state, final, corrected) -> tuples, loads(bytes) -> state; each of these or None: over(state, tuple) -> whether the window
        is complete, assign(tuple, ticks) -> pairs of start and end, in ticks.
        """

class ChannelWidth:
    """
    How many channels of an elastic stage get records; any thread may change it.
    """

    def __init__(self, channels: int, active: int) -> None: ...

    @property
    def channels(self) -> int:
        """How many there are."""

    @property
    def active(self) -> int:
        """The first so many get records; 1 to `channels`."""

    @active.setter
    def active(self, arg: int, /) -> None: ...

class KafkaConsumer:
    """
    A consumer of a Kafka topic, read by Operator.kafka_source. RuntimeError: the library can't be loaded, or a setting is invalid.
    """

    def __init__(self, library: str, settings: Sequence[tuple[str, str]], topic: str, format: str, fields: Sequence[tuple[str, int]], skips: bool, expected: Schema | None = None, reader: str = '') -> None:
        """
        library: the file of librdkafka. fields: key, timestamp, partition, offset or header:NAME, and the number of its field. expected: the source emits dead letters of the messages that aren't of this schema, and of the source with the name `reader`.
        """

    def assign(self, ranges: Sequence[tuple[int, int, int]]) -> None:
        """
        Reads these partitions, too: (partition, first offset, offset after the last one, or -1).
        """

    def fail(self, message: str) -> None:
        """The source fails with this message."""

    def interrupt(self) -> None:
        """The source ends."""

    def next_event(self, seconds: float) -> tuple[str, int, int, str] | None:
        """
        The next event, waiting for it: name, partition, offset and text. None: there was none, or the source is over.
        """

    @property
    def is_over(self) -> bool:
        """Whether it was interrupted, has failed, or was read to the end."""

    def position(self, emitted: int) -> list[tuple[int, int]]:
        """The next offset of each partition after so many records."""

    def set_ends(self, ends: Sequence[tuple[int, int]]) -> None:
        """Where partitions end now: (partition, offset after its last message)."""

    def lag(self) -> tuple[int, int | None]:
        """
        Unread messages, and the timestamp of the last one read, ms since 1970; of several partitions, the oldest.
        """

    @property
    def dropped(self) -> int:
        """Messages that didn't decode."""

    @property
    def first_dropped(self) -> list[tuple[str, int, int, str]]:
        """The first of them: 'bad-record', partition, offset and why."""

class Succession:
    """
    Two sources, one after the other, which Operator.succession runs as one.
    """

    def __init__(self) -> None: ...

    def begin(self, with_second: bool, skipped: int) -> None:
        """
        Before the start: it begins with the second source, or the first emits so many records again.
        """

    @property
    def seam(self) -> int | None:
        """
        How many records of this run are the first source's, those that it emits again included. None: it hasn't ended.
        """

    def wait(self) -> bool:
        """Waits for the second source's turn. False: it was interrupted."""

    def interrupt(self) -> None:
        """Nobody waits any more."""

class OperatorSample:
    """Counters of one operator since the start; times in seconds."""

    @property
    def name(self) -> str: ...

    @property
    def tuples_in(self) -> int: ...

    @property
    def tuples_out(self) -> int: ...

    @property
    def cpu_seconds(self) -> float:
        """CPU time inside its function, without that of operators downstream."""

    @property
    def inside_seconds(self) -> float:
        """Time inside its function, whether it ran or waited."""

    @property
    def waited_seconds(self) -> float:
        """Of that, time asleep, waiting for something other than a CPU."""

    @property
    def blocked_seconds(self) -> float:
        """Time that threads were blocked on its output."""

    @property
    def queued(self) -> int:
        """Records in its port."""

    @property
    def queue_capacity(self) -> int: ...

    @property
    def model(self) -> str:
        """In force: 'manual', ..."""

    @property
    def final(self) -> bool:
        """Whether it has seen all its final marks."""

    @property
    def untaken(self) -> list[int]:
        """Records of output ports 1, 2, ... that have no consumer, by port."""

class Sample:
    """Counters of a scheduler since the start; times in seconds."""

    @property
    def operators(self) -> tuple[OperatorSample, ...]:
        """By number."""

    @property
    def columns(self) -> dict[str, bytes]:
        """
        Every counter of operators by its name, float64, an operator after the other; see kOperatorCounters.
        """

    @property
    def thread_count(self) -> int:
        """Scheduler threads that aren't suspended."""

    @property
    def gil_wait_seconds(self) -> float:
        """Time that threads waited for the GIL."""

    @property
    def engine_cpu_seconds(self) -> float:
        """CPU time outside of operators."""

    @property
    def scheduler_seconds(self) -> float:
        """Time of scheduler threads that aren't suspended."""

    @property
    def idle_seconds(self) -> float:
        """Of that, without work."""

    @property
    def thread_seconds(self) -> float:
        """Time of all engine threads."""

    @property
    def blocked_seconds(self) -> float:
        """Of that, waiting for room in a queue."""

    @property
    def stuck(self) -> int:
        """Scheduler threads that stay in user code."""

class InForce:
    """What a scheduler does of what it was asked for."""

    @property
    def thread_count(self) -> int:
        """Threads that are neither suspended nor stuck."""

    @property
    def stuck(self) -> int:
        """Threads that stay in user code."""

    @property
    def unsuspended(self) -> int:
        """Threads asked to go but still at work."""

    @property
    def models(self) -> dict[int, str]:
        """{operator: its threading model}."""

class OperatorFailure:
    """What one operator failed of."""

    @property
    def operator(self) -> str:
        """Its name."""

    @property
    def operator_id(self) -> int:
        """Its number."""

    @property
    def message(self) -> str:
        """Empty if it didn't say why."""

    @property
    def port(self) -> int:
        """The input port of the run that it failed on."""

    @property
    def index(self) -> int | None:
        """Of the input in its run; None: of none."""

    @property
    def record(self) -> tuple[Any, ...] | None:
        """That input; None: there is none, or it can't be shown."""

    @property
    def exception(self) -> BaseException | None:
        """What a Python function raised, with its traceback; None: none did."""

class Scheduler:
    """
    The native scheduler of one PE. All methods may be called from any thread; those that wait release the GIL.
    """

    def __init__(self, queue_records: int = 1024, queue_bytes: int = 67108864, run_records: int = 256, run_bytes: int = 16384, run_work: float = 0.0, cpus: Sequence[int] = [], deep_copy: bool = False) -> None:
        """
        Sizes of the queues in front of operators, and of the runs that move; run_work: seconds of work that a run may be where
        there are no queues (0: any); cpus: thread i runs on cpus[i % len(cpus)] alone; deep_copy is for benchmarks alone.
        """

    def add(self, operator: Operator, model: str | None = None, skip: int = 0) -> int:
        """
        Adds an operator before the start, with threading model 'manual', 'dynamic' or 'dedicated'; returns its number. skip: how many
        records a source has submitted before, which it reads again and doesn't submit again.
        """

    def connect(self, from_: int, to: int, output_port: int = 0, input_port: int = 0, feedback: bool = False) -> None:
        """
        Makes a port of `to` a consumer of what `from_` emits by one of its ports; before the start. feedback: this edge closes a loop.
        """

    def minimum_threads(self) -> int:
        """
        The threads that are to be had at least, so that none is missing where operators wait for another port; fewer work too.
        """

    def start(self, thread_count: int = 1, models: Mapping[int, str] = {}) -> None:
        """
        Starts all threads. ValueError: a cycle, an operator that nothing feeds, an unknown operator in models.
        """

    def apply(self, thread_count: int, models: Mapping[int, str] = {}) -> InForce:
        """
        Brings about what is desired, idempotently; answers with what is in force.
        """

    def in_force(self) -> InForce:
        """What is in force now."""

    def sample(self) -> Sample:
        """Counters: per operator in order of number, and of the threads."""

    def wait(self, timeout: float | None = None) -> bool:
        """
        True when all is over: every operator final, failed, or stopped. False after timeout seconds. Ctrl-C gets through.
        """

    def failure(self) -> OperatorFailure | None:
        """The first failure, if any."""

    def end_source(self, operator: int) -> None:
        """Ends one source as if it had no more tuples; the others go on."""

    def poke(self, operator: int) -> None:
        """Has an operator that takes commands (a router) look at them soon."""

    def hold(self, operators: Sequence[int], drain: bool = False, timeout: float = 10.0) -> None:
        """
        Keeps operators at their safe points until release(): none of them runs, what comes for them waits, their state may be moved.
        A source is held where it submits nothing: its tuples_out is its position. drain: what waits at those that only held operators feed
        is processed first. May be called again for operators downstream. TimeoutError: not within timeout seconds; then none of them is held.
        """

    def pause(self, operator: int, timeout: float = 10.0) -> OperatorPause:
        """
        How to have an operator at its safe point while its state is worked on; waits for nothing yet. One such work at a time.
        """

    def release(self, finish: bool = True) -> None:
        """
        All held operators go on. Idempotent; stop does it too. finish=False, after end_source of every source: as for stop.
        """

    def let_go(self, operators: Sequence[int]) -> None:
        """Some go on, the other held ones stay."""

    def begin_after(self, source: int, operator: int, port: int, patience: float) -> None:
        """
        Before the start: a source that begins once an input port of another operator has ended, or nothing upstream of it has moved for patience seconds.
        """

    def stop_at_epochs(self, operators: Sequence[int]) -> None:
        """
        Before the start: which operators are to be saved where the mark of an epoch is: their state is copied there, or they are held, until let_go.
        """

    def send_epoch(self, sources: Sequence[int], epoch: int) -> bool:
        """
        Has sources that are held send the mark of an epoch, 1 and up, and go on. False: the marks of the last one are still being sent.
        """

    def wait_sent(self, timeout: float) -> bool:
        """
        True once the marks of the last epoch have been sent: ask before its sources are held for the next one.
        """

    def wait_epoch(self, operators: Sequence[int], epoch: int, timeout: float) -> list[int]:
        """
        Those that are held, or whose state was copied, at the mark, or that have ended before it; waits until there is one, or timeout seconds.
        """

    def take_copy(self, operator: int, epoch: int) -> StateCopy | None:
        """
        The state of an operator at the mark, once; the operator goes on. None: it is held there, or has ended.
        """

    def abandon_epochs(self, epoch: int) -> None:
        """
        Marks up to that one mean nothing any more, and who is held at one goes on.
        """

    def stop(self, drain: bool = False, finish: bool = True) -> None:
        """
        Ends all threads; with drain, sources end first and what is under way is processed. Idempotent. finish=False, with drain: the
        stream isn't at its end, it goes on elsewhere: only sinks get their call at the end of the input.
        """

    def stop_within(self, timeout: float) -> bool:
        """
        As stop(), for functions that may not return. False: after so many seconds one hasn't; it may be asked again. What it may touch
        stays until then, whoever drops the scheduler.
        """

def symbols() -> dict[str, int]:
    """Engine services by name, with their addresses in this process."""

ABI_VERSION: int = 1

def tell_crashes() -> None:
    """
    Has a crash (SIGSEGV and its kind) write the name of the operator whose Python function it happened in to standard error.
    """
