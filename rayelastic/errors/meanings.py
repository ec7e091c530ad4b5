"""What each code of an error means and what to do about it: the table of the guide's page on errors."""

from __future__ import annotations

from typing import NamedTuple

from rayelastic.errors.codes import ErrorCode

__all__ = ["MEANINGS", "Meaning"]

_TABLE = """
# Arguments and names
invalid-argument: An argument has a value that isn't allowed.; Pass what the message describes.
wrong-type: An argument has the wrong type.; Pass an object of the type in the message.
out-of-range: A number or duration is outside of its range.; Pass a value within the range in the message.
unknown-choice: An argument isn't one of the allowed values.; Use one of the values in the message.
conflicting-arguments: Two arguments or parts of a declaration exclude each other.; Leave one of them out.
missing-argument: An argument is missing that another one needs.; Add it, or leave the other one out.
positional-name: The name of an operator is passed by position.; Pass it as `name=`.
bad-name: A name is empty, too long or has reserved characters.; Choose another name.
duplicate-name: Two things have the same name.; Rename one of them.
unknown-operator: The topology or job has no operator of this name.; Use a name of `topology.explain()`.
unknown-region: The plan has no region of this name.; Use a name of `topology.explain()`.
unknown-node: The cluster has no such node, or the job mustn't use it.; Use a node in the message.
unknown-port: An operator has no port of this name.; Use a port in the message.
unknown-method: A class has a method that the runtime doesn't call.; Rename or remove it.
unknown-key: An operator has no state for this key.; Check the key's fields and their types.
unknown-time-zone: A time zone is unknown on this machine.; Use a name such as `Europe/Berlin`; install `tzdata`.
unknown-encoding: Python has no such text encoding.; Use a name that Python knows, such as `latin-1`.
# Functions and classes
not-a-function: An argument has to be a function or method.; Pass the function itself, not its result.
wrong-parameters: A function doesn't accept the arguments it is called with.; Change its parameters.
async-function: A function is async or a generator where it must be plain.; Make it a plain function.
must-return: The function of `map` or `filter` yields.; Return the value, or use `flat_map`.
useless-result: A function returns nothing, or what is always true.; Return a value or a condition.
bad-return: A function returned something of the wrong type or shape.; Return what the message describes.
function-raised: Your code raised an exception while rayelastic called it.; Read the traceback and correct your code.
missing-method: A class lacks a method that the runtime needs.; Write the method in the message.
field-as-key: A function reads `t["field"]` of a tuple of your own class.; Read `t.field`.
patched-function: A function of Python was replaced before the declaration.; Patch it after the declaration.
not-copyable: Copying an object of yours fails.; Open files, locks and connections in `initialize()`.
not-shippable: Pickling a function or object for another process fails.; Create what it needs inside the function.
# Execution modes
unsupported-lane: An operator doesn't support the requested execution mode.; Leave `lane=` out, or change the operator.
not-compiled: The compiler rejects a function that asks for compilation.; Change the line in the message, or `lane=`.
not-vectorised: The compiler rejects a function that asks for vectorisation.; Annotate its parameter, or take one tuple.
async-lane: Concurrent calls exclude another execution mode or keyed state.; Leave `lane=` or `concurrent=` out.
# Schemas
invalid-schema: A schema doesn't fit the data or the operator.; Follow the hint in the message.
no-schema: The schema of a stream is unknown.; Pass `schema=` or annotate the function.
schema-mismatch: Data or streams have different schemas.; Map or declare one like the other.
unknown-field: An operator names a field that its input lacks.; Use a field in the message.
unknown-column: A file, table or DataFrame lacks a column.; Use a column in the message, or rename it.
unsupported-type: A field has a type that a record, format or sink doesn't support.; Convert it or leave it out.
wrong-field-type: An operation doesn't support a field of this type.; Map the field to another type first.
bad-field-name: A field's name isn't a valid attribute in Python.; Rename the field.
duplicate-field: Two fields have the same name.; Rename one of them.
no-fields: A schema has no field.; Declare or keep at least one.
bad-annotation: An annotation is unknown or contradicts another one.; Define its types at the top of the module.
recursive-record: A record contains itself.; Declare its levels, or use `rel.Json`.
null-values: A column has nulls and its field doesn't allow them.; Declare it `| None`, or drop these rows.
bad-default: State has no usable initial value.; Give every field of the state a default of its type.
bad-state-class: A class isn't valid as `@rel.state`.; Write fields with defaults only, without a base class.
unwritable-value: A value has no representation in the output.; Convert it before the sink.
# Topology
invalid-topology: Streams and operators don't form a valid topology.; Follow the hint in the message.
not-a-topology: An object or file doesn't define a topology.; Pass a `rel.Topology`; a file needs `build()`.
not-a-stream: An argument has to be a stream.; Pass what `source`, `map` or `union` returns.
not-a-source: An object isn't a source.; Use `rel.text`, `rel.csv`, `rel.parquet` or another source.
not-a-sink: An object isn't a sink.; Use `rel.parquet`, `rel.csv`, `rel.call` or another sink.
not-an-operator: An object isn't an instance of an operator class.; Decorate its class with `@rel.operator`.
not-an-aggregate: A value isn't an aggregate.; Use `rel.count()`, `rel.sum("field")` and the like.
other-topology: Streams belong to different topologies.; Declare both in one topology.
no-source: A topology has no source.; Start with `topology.source(...)`.
no-sink: A stream ends without a sink.; End it with `.sink(...)`.
no-output: An operator follows a sink.; Attach it to the stream before the sink.
duplicate-stream: A stream is passed twice, or two to one port.; Pass each once; unite them first.
unconnected-port: An input port has no stream.; Pass a stream for it.
cycle: A stream returns to its own operator without feedback.; Use `topology.feedback(...)`.
bad-loop: A feedback loop has an operator that isn't allowed in it, or no exit.; Follow the hint in the message.
open-feedback: A feedback is never closed.; Call its `close(stream)`.
unused-feedback: A feedback is closed before any operator reads it.; Unite it with the stream that enters the loop.
closed-feedback: A feedback is closed twice.; Unite the returning streams first.
branching-stage: An ordered stage has branches.; Leave `order=` out, or branch downstream.
# Keys, time and state
no-key: A keyed operator has an input without a key.; Write `.key_by(...)` before it.
no-order: `ordered=True` where the input has no order as a whole.; Write it upstream, or leave `ordered=` out.
key-mismatch: Keys have different types or numbers of fields.; Give both sides keys of the same types.
no-event-time: An operation needs event time and its input has none.; Write `.event_time(field)` before it.
bad-event-time: A field isn't usable as event time.; Use a datetime, an integer or a float without nulls.
event-time-mismatch: Two event times have different units or types.; Map one of them to the other's type.
unsupported-window: A window doesn't support this operation.; Use an operation in the message, or another window.
unsupported-ttl: An operator doesn't support this `ttl=` or its `since=`.; Use the `since=` in the message, or none.
state-expires-early: State would expire before its result is emitted.; Emit updates, or use a window.
unbounded-state: An operator would keep its state forever.; Bound it by `within=`, `window=` or `ttl=`.
not-mergeable: Partial results of an operation aren't mergeable.; Use an aggregate that can be merged.
# Sources and sinks
source-failed: Reading a source fails.; Follow the hint in the message.
source-unreachable: The server or store of a source doesn't answer.; Check the server; a job with checkpoints waits.
sink-failed: Writing to a sink fails.; Follow the hint in the message.
sink-unreachable: The server or store of a sink doesn't answer.; Check the server; a job with checkpoints waits.
missing-file: A file or folder doesn't exist.; Check the path and where the job runs.
no-permission: This user has no permission for a file.; Change its permissions, or use another path.
not-writable: Creating a file or folder fails.; Use another path.
is-a-folder: A path is a folder where a file is needed.; Name files, such as `folder/*`.
not-a-folder: A path has to be a folder.; Pass the path of a folder.
malformed-file: A file has content that its format or schema doesn't allow.; Correct the row, or set `on_bad_row=`.
malformed-record: A message isn't of the schema.; Declare other types, or set `on_bad_row=`.
unsupported-format: A file has a format that its reader doesn't know.; Unpack or convert it.
changed-file: A file changed while the job read it.; Rename files into place when they are complete.
changed-input: A source's input isn't the one of the checkpoint.; Restore the input, or drop its position.
unknown-topic: A topic doesn't exist.; Check its name and the brokers, or create it.
bad-credentials: A server rejects user, password or certificate.; Correct them, or the access rights.
unreadable-secret: A process lacks a secret that its operator names.; Put it where the message says.
offsets-gone: An offset isn't in its topic.; Begin at another one, see `start=` of `rel.kafka`.
foreign-output: An output folder has files of another run.; Name another folder, or restore that run.
output-taken: Another run owns the output of a sink.; End that run, or use another output.
missing-output: Output that a checkpoint counts on is missing or changed.; Put it back, or restore another checkpoint.
output-ahead: An output has rows after the checkpoint, and no way to remove them.; Restore the newest checkpoint.
rejected-push: Rows pushed into a source were rejected.; Push rows of its schema, in order.
push-cancelled: A push into a source was cancelled.; Start it again.
feed-failed: The Dataset or query that feeds a source failed.; Read its own error.
results-lost: Results in memory died with their process.; Write them to files.
# Settings
invalid-setting: A setting has a value that isn't allowed, or conflicts with another one.; Set it as the message says.
fixed-region: A region doesn't allow replicas, a split or sharing.; Choose another region; see `topology.explain()`.
bad-change: A plan doesn't fit this job.; Make it from `job.plan()` by its methods.
bad-signing-key: A key for signing is unreadable, too short or exposed.; Use 16 private bytes or more.
bad-certificate: A certificate or its private key is invalid.; Use PEM files that belong together.
open-address: A process would listen on all interfaces.; Use the address of one interface.
port-in-use: Opening a port fails.; Use another port, or 0 for a free one.
missing-package: A package or program isn't installed.; Install what the message names.
missing-module: Importing a module or class fails.; Install it on every node, or send it with the job.
not-a-journal: A file isn't an adaptation history.; Pass a file that `rel.Elasticity(journal=...)` wrote.
wrong-request: The web UI received an invalid request.; Use the web UI's own page.
# Savepoints and checkpoints
invalid-state: Saving or restoring state fails.; Follow the hint in the message.
damaged-state: A savepoint or checkpoint is damaged or incomplete.; Restore an earlier one.
unreadable-state: A savepoint or checkpoint isn't accessible now.; Check the storage and its free space.
damaged-position: A source's position in the savepoint is damaged.; Restore an earlier one.
changed-state: The layout of an operator's state has changed.; Declare it as it was, or drop the state.
unknown-state: A savepoint has state of an unknown operator.; Rename or drop it in `rel.Snapshot(...)`.
automatic-name: An automatic name matches another operator's state.; Set the `name=` in the message.
no-state: An operator keeps no state.; Name an operator that keeps state by key.
state-not-readable: An operator's state isn't readable at the moment, or at all.; Retry, or read what it emits.
not-saveable: Pickling a value of a state fails.; Keep values that pickle accepts.
unsigned-values: Pickled Python values need a signed savepoint.; Pass a key when writing and when restoring.
foreign-objects: Another process saved fields of type typing.Any.; Declare another type, or drop the operator's state.
bad-location: The location of a savepoint or checkpoint is missing or unusable.; Pass a folder that every node sees.
location-taken: Another job uses this location for its checkpoints.; Give each job its own location.
checkpoints-gone: The checkpoints of a job are gone.; Put them back, or start without `restore=`.
older-version: A savepoint was written by an incompatible version.; Restore it with that version.
no-checkpoint: A change needs a checkpoint and the job takes none.; Set `JobConfig(checkpoint=...)`.
checkpoint-abandoned: A checkpoint was abandoned before it was complete.; The next checkpoint replaces it.
interrupted-savepoint: The coordinator died while it wrote a savepoint.; Restore it if complete; else write it again.
# Running jobs
error: Something failed without a code of its own.; Follow the hint in the message.
job-failed: A job stopped because of an error.; Read the reason, the tuple and the traceback.
job-cancelled: A job was cancelled.; Submit it again.
job-exists: A job of this name is running.; Attach to it, end it, or use another name.
unknown-job: No job of this name is running.; Use a name in the message.
foreign-job: The job belongs to another user.; Use another name; if you may, name its owner (`owner=`, `--owner`).
changed-job: What Ray's store has of a job isn't what was submitted.; Find out who wrote it; submit the job again.
job-not-running: A job has ended, is closed or is restoring.; Ask while it runs.
job-busy: A job was too busy to stop or save in time.; Retry when it has less to do; add replicas.
pe-lost: The process of a PE or coordinator is gone.; Read the log of that process. The job recovers.
pe-missing: A job has no such PE at the moment.; Retry after its recovery.
pe-not-started: A PE isn't running its operators at the moment.; Retry when the job runs.
link-failed: A link between two PEs was rejected or broke.; Check both processes. The job recovers.
link-timeout: A PE doesn't answer on its data port.; Check the processes and firewalls between the nodes.
stream-ended: A stream had ended before a change of its routing.; Nothing: the change is undone.
change-failed: A change of the plan was undone.; Retry; the message has the cause.
change-half-done: A change of plan is half done, so no state is saved.; Nothing: the job rolls back by itself.
coordinator-replaced: A new coordinator took over during an operation.; Retry.
second-coordinator: Another coordinator manages this job.; Attach to the job.
journal-not-written: Writing the coordinator's journal fails.; Check Ray's GCS.
unavailable: A coordinator doesn't answer at the moment.; Retry.
# Machine and cluster
setup-failed: The machine or cluster lacks what the job needs.; Run `rayelastic doctor`.
no-room: The cluster has too few free CPUs or nodes.; Add nodes, end other jobs, or ask for less.
no-java: Spark needs Java and finds none.; Install Java 17, or set `JAVA_HOME`.
ray-unreachable: No Ray cluster answers at the address.; Check the address with `ray status`.
spark-failed: Spark failed or rejected a request.; Read Spark's own error.
spark-stopped: The Spark session has been stopped.; Start a new session.
wrong-frame: A DataFrame is batch where a streaming one is needed, or the reverse.; Use the function in the message.
"""


class Meaning(NamedTuple):
    """What a code stands for.

    Args:
        group: heading of the guide's table.
        text: what went wrong, a sentence.
        cure: what to do, a sentence or two.
    """

    group: str
    text: str
    cure: str


def _read() -> dict[ErrorCode, Meaning]:
    found, group = {}, ""
    for line in _TABLE.strip().splitlines():
        code, _, meaning = line.partition(": ")
        if not meaning:
            group = line.removeprefix("# ")
        else:
            text, _, cure = meaning.partition(".; ")
            found[ErrorCode(code)] = Meaning(group, f"{text}.", cure)
    return found


MEANINGS = _read()
