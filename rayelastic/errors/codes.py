"""Codes of errors: one code is one cause with one kind of cure. Codes are stable, sentences may change."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum, auto

__all__ = ["ErrorCode"]


class ErrorCode(StrEnum):
    """What went wrong: a word that a program compares and a person searches for. It is a text, its slug.

    >>> ErrorCode.UNKNOWN_FIELD == "unknown-field", str(ErrorCode.UNKNOWN_FIELD)
    (True, 'unknown-field')
    """

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: Sequence[object]) -> str:  # noqa: ARG004
        return name.lower().replace("_", "-")

    # Arguments and names
    INVALID_ARGUMENT = auto()
    WRONG_TYPE = auto()
    OUT_OF_RANGE = auto()
    UNKNOWN_CHOICE = auto()
    CONFLICTING_ARGUMENTS = auto()
    MISSING_ARGUMENT = auto()
    POSITIONAL_NAME = auto()
    BAD_NAME = auto()
    DUPLICATE_NAME = auto()
    UNKNOWN_OPERATOR = auto()
    UNKNOWN_REGION = auto()
    UNKNOWN_NODE = auto()
    UNKNOWN_PORT = auto()
    UNKNOWN_METHOD = auto()
    UNKNOWN_KEY = auto()
    UNKNOWN_TIME_ZONE = auto()
    UNKNOWN_ENCODING = auto()

    # Functions and classes
    NOT_A_FUNCTION = auto()
    WRONG_PARAMETERS = auto()
    ASYNC_FUNCTION = auto()
    MUST_RETURN = auto()
    USELESS_RESULT = auto()
    BAD_RETURN = auto()
    FUNCTION_RAISED = auto()
    MISSING_METHOD = auto()
    FIELD_AS_KEY = auto()
    PATCHED_FUNCTION = auto()
    NOT_COPYABLE = auto()
    NOT_SHIPPABLE = auto()

    # Execution modes
    UNSUPPORTED_LANE = auto()
    NOT_COMPILED = auto()
    NOT_VECTORISED = auto()
    ASYNC_LANE = auto()

    # Schemas
    INVALID_SCHEMA = auto()
    NO_SCHEMA = auto()
    SCHEMA_MISMATCH = auto()
    UNKNOWN_FIELD = auto()
    UNKNOWN_COLUMN = auto()
    UNSUPPORTED_TYPE = auto()
    WRONG_FIELD_TYPE = auto()
    BAD_FIELD_NAME = auto()
    DUPLICATE_FIELD = auto()
    NO_FIELDS = auto()
    BAD_ANNOTATION = auto()
    RECURSIVE_RECORD = auto()
    NULL_VALUES = auto()
    BAD_DEFAULT = auto()
    BAD_STATE_CLASS = auto()
    UNWRITABLE_VALUE = auto()

    # Topology
    INVALID_TOPOLOGY = auto()
    NOT_A_TOPOLOGY = auto()
    NOT_A_STREAM = auto()
    NOT_A_SOURCE = auto()
    NOT_A_SINK = auto()
    NOT_AN_OPERATOR = auto()
    NOT_AN_AGGREGATE = auto()
    OTHER_TOPOLOGY = auto()
    NO_SOURCE = auto()
    NO_SINK = auto()
    NO_OUTPUT = auto()
    DUPLICATE_STREAM = auto()
    UNCONNECTED_PORT = auto()
    CYCLE = auto()
    BAD_LOOP = auto()
    OPEN_FEEDBACK = auto()
    UNUSED_FEEDBACK = auto()
    CLOSED_FEEDBACK = auto()
    BRANCHING_STAGE = auto()

    # Keys, time and state
    NO_KEY = auto()
    KEY_MISMATCH = auto()
    NO_EVENT_TIME = auto()
    BAD_EVENT_TIME = auto()
    EVENT_TIME_MISMATCH = auto()
    UNSUPPORTED_WINDOW = auto()
    UNSUPPORTED_TTL = auto()
    STATE_EXPIRES_EARLY = auto()
    UNBOUNDED_STATE = auto()
    NOT_MERGEABLE = auto()

    # Sources and sinks
    SOURCE_FAILED = auto()
    SOURCE_UNREACHABLE = auto()
    SINK_FAILED = auto()
    SINK_UNREACHABLE = auto()
    MISSING_FILE = auto()
    NO_PERMISSION = auto()
    NOT_WRITABLE = auto()
    IS_A_FOLDER = auto()
    NOT_A_FOLDER = auto()
    MALFORMED_FILE = auto()
    UNSUPPORTED_FORMAT = auto()
    CHANGED_FILE = auto()
    CHANGED_INPUT = auto()
    FOREIGN_OUTPUT = auto()
    OUTPUT_TAKEN = auto()
    MISSING_OUTPUT = auto()
    REJECTED_PUSH = auto()
    PUSH_CANCELLED = auto()
    FEED_FAILED = auto()
    RESULTS_LOST = auto()

    # Settings
    INVALID_SETTING = auto()
    FIXED_REGION = auto()
    BAD_CHANGE = auto()
    BAD_SIGNING_KEY = auto()
    BAD_CERTIFICATE = auto()
    OPEN_ADDRESS = auto()
    PORT_IN_USE = auto()
    MISSING_PACKAGE = auto()
    MISSING_MODULE = auto()
    NOT_A_JOURNAL = auto()
    WRONG_REQUEST = auto()

    # Savepoints and checkpoints
    INVALID_STATE = auto()
    DAMAGED_STATE = auto()
    UNREADABLE_STATE = auto()
    DAMAGED_POSITION = auto()
    CHANGED_STATE = auto()
    UNKNOWN_STATE = auto()
    AUTOMATIC_NAME = auto()
    NO_STATE = auto()
    STATE_NOT_READABLE = auto()
    NOT_SAVEABLE = auto()
    UNSIGNED_VALUES = auto()
    FOREIGN_OBJECTS = auto()
    BAD_LOCATION = auto()
    LOCATION_TAKEN = auto()
    CHECKPOINTS_GONE = auto()
    OLDER_VERSION = auto()
    NO_CHECKPOINT = auto()
    CHECKPOINT_ABANDONED = auto()
    INTERRUPTED_SAVEPOINT = auto()

    # Running jobs
    ERROR = auto()
    JOB_FAILED = auto()
    JOB_CANCELLED = auto()
    JOB_EXISTS = auto()
    UNKNOWN_JOB = auto()
    JOB_NOT_RUNNING = auto()
    JOB_BUSY = auto()
    PE_LOST = auto()
    PE_MISSING = auto()
    PE_NOT_STARTED = auto()
    LINK_FAILED = auto()
    LINK_TIMEOUT = auto()
    STREAM_ENDED = auto()
    CHANGE_FAILED = auto()
    CHANGE_HALF_DONE = auto()
    COORDINATOR_REPLACED = auto()
    SECOND_COORDINATOR = auto()
    JOURNAL_NOT_WRITTEN = auto()
    UNAVAILABLE = auto()

    # Machine and cluster
    SETUP_FAILED = auto()
    NO_ROOM = auto()
    NO_JAVA = auto()
    RAY_UNREACHABLE = auto()
    SPARK_FAILED = auto()
    SPARK_STOPPED = auto()
    WRONG_FRAME = auto()
