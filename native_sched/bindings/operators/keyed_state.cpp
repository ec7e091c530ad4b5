// rayelastic._native.KeyedState: the table of a keyed operator, of records (compiled lane) or of Python values (python lane).
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

#include "arrow/arrow_capsules.hpp"
#include "rayelastic/arrow/arrow_writer.hpp"
#include "rayelastic/record/hash.hpp"
#include "rayelastic/record/key_extractor.hpp"
#include "rayelastic/state/state_bytes.hpp"
#include "rayelastic/state/state_rows.hpp"
#include "record/encoded_records.hpp"
#include "record/record_codec.hpp"
#include "state/class_state.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

std::span<const std::byte> bytes_in(const nb::bytes& bytes) { return {static_cast<const std::byte*>(bytes.data()), bytes.size()}; }

// Megabytes are copied without the GIL: an operator may wait for it.
nb::bytes python_bytes(const std::vector<std::byte>& bytes) {
  nb::bytes made = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(bytes.size())));
  if (!made.is_valid()) throw nb::python_error();
  if (!bytes.empty()) {
    char* const into = PyBytes_AS_STRING(made.ptr());
    const nb::gil_scoped_release released;
    std::memcpy(into, bytes.data(), bytes.size());
  }
  return made;
}

nb::bytes export_range(const KeyedStateObject& self, std::uint64_t low, std::uint64_t high) {
  std::vector<std::byte> exported;
  {
    const nb::gil_scoped_release released;
    exported = self.store->export_range(low, high);
  }
  return python_bytes(exported);
}

using GivenRanges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

HashRanges ranges_of(const GivenRanges& given) {
  std::vector<HashRange> ranges;
  for (const auto& [low, high] : given) ranges.push_back({low, high});
  return HashRanges(std::move(ranges));
}

KeySelection select_keys(const KeyedStateObject& self, const GivenRanges& given) {
  HashRanges ranges = ranges_of(given);
  const nb::gil_scoped_release released;
  return self.store->select(std::move(ranges));
}

// While the operator pauses, if it runs at all, and without the GIL.
template <typename Work>
auto at_rest(const OperatorPause* pause, Work&& work) {
  std::string refusal;
  try {
    const nb::gil_scoped_release released;
    return pause == nullptr ? work() : pause->during(work);
  } catch (const OperatorPause::Refused& refused) {
    refusal = refused.what();
  }
  PyErr_SetString(PyExc_TimeoutError, refusal.c_str());
  throw nb::python_error();
}

void take_in_parts(const OperatorPause& self) {
  at_rest(&self, [&self] { self.take_in_parts(); });
}

std::uint64_t select_chunk(const KeyedStateObject& self, KeySelection& keys, std::uint64_t at, std::size_t max_places,
                           const OperatorPause* pause) {
  return at_rest(pause, [&] {
    self.store->select_chunk(keys, at, max_places);
    return at;
  });
}

nb::tuple export_chunk(const KeyedStateObject& self, const KeySelection& keys, std::uint64_t at, std::size_t max_bytes,
                       const OperatorPause* pause) {
  const std::vector<std::byte> exported = at_rest(pause, [&] { return self.store->export_chunk(keys, at, max_bytes); });
  return nb::make_tuple(python_bytes(exported), at);
}

nb::tuple remove_chunk(const KeyedStateObject& self, const KeySelection& keys, std::uint64_t at, std::size_t max_keys,
                       const OperatorPause* pause) {
  const std::size_t removed = at_rest(pause, [&] { return self.store->remove_chunk(keys, at, max_keys); });
  return nb::make_tuple(removed, at);
}

std::size_t import_range(const KeyedStateObject& self, const nb::bytes& bytes, const OperatorPause* pause) {
  const std::span<const std::byte> given = bytes_in(bytes);
  return at_rest(pause, [&] { return self.store->import_range(given); });
}

std::size_t reserve_more(const KeyedStateObject& self, std::size_t keys, const OperatorPause* pause) {
  return at_rest(pause, [&] {
    self.store->reserve_more(keys);
    return keys;
  });
}

nb::list to_arrow(const KeyedStateObject& self, const SchemaObject& schema) {
  StateRows rows(schema.schema);
  std::vector<ArrowArray> arrays;
  {
    const nb::gil_scoped_release released;
    self.store->write_rows(rows);
    arrays = rows.finish();
  }
  nb::list batches;
  for (ArrowArray& array : arrays) {
    ArrowOwned<ArrowSchema> arrow;
    export_schema(*schema.schema, &arrow);
    batches.append(export_batch(&array, &arrow));
  }
  return batches;
}

// The fields of a schema are those of the key.
KeyExtractor extractor_of(const SchemaObject& schema) {
  std::vector<std::string> names;
  for (const Field& field : schema.schema->fields()) names.push_back(field.name);
  return {schema.schema, names};
}

std::uint64_t key_hash(const SchemaObject& schema, nb::handle key) {
  const RecordCodec codec("key", schema.schema, nullptr);
  EncodedRecords encoded;
  if (!codec.encode_one(key.ptr(), encoded)) throw nb::python_error();
  for (const Field& field : schema.schema->fields()) {
    if (field.type != Type::String && field.type != Type::Binary) continue;
    auto& text = *reinterpret_cast<StringView*>(encoded.records.data() + field.offset);
    if (!text.is_inline()) text.pointer = encoded.text.data() + reinterpret_cast<std::uintptr_t>(text.pointer);
  }
  KeyExtractor extractor = extractor_of(schema);  // which the bytes of several fields lie in
  StringView bytes;
  extractor.extract(encoded.records.data(), 1, &bytes);
  return hash_of(bytes);
}

nb::tuple key_of(const SchemaObject& schema, const nb::bytes& key, bool null) {
  const KeyExtractor extractor = extractor_of(schema);
  const StringView bytes = null ? null_key() : StringView(static_cast<const char*>(key.data()), static_cast<std::uint32_t>(key.size()));
  check_key(extractor, bytes);
  std::vector<const Field*> fields;
  for (const Field& field : schema.schema->fields()) fields.push_back(&field);
  std::vector<std::byte> record(schema.schema->record_size());
  extractor.restore(bytes, *schema.schema, fields, record.data());
  const auto values = nb::steal<nb::tuple>(RecordCodec("key", schema.schema, nullptr).decode_one(record.data()));
  if (!values.is_valid()) throw nb::python_error();
  return values;
}

nb::object next_chunk(const StateCopyObject& self, std::size_t max_bytes) {
  std::optional<StateChunk> chunk;
  {
    const nb::gil_scoped_release released;
    chunk = self.copy->next_chunk(max_bytes);
  }
  return chunk.has_value() ? nb::object(nb::make_tuple(chunk->segment, python_bytes(chunk->bytes))) : nb::none();
}

}  // namespace

void bind_keyed_state(nb::module_& module) {
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  nb::exception<StateError>(module, "StateError", PyExc_ValueError);
  nb::class_<OperatorPause>(
      module, "OperatorPause",
      "Has an operator at its safe point for the time of one work on its state; TimeoutError if it doesn't come there.")
      .def("take_in_parts", &take_in_parts,
           "Has the state have all that was processed when this is called, also what a producer took beside the operator; StateError if a "
           "sum "
           "overflows.");
  module.def(
      "key_hash", key_hash, nb::arg("schema"), nb::arg("key"), nb::sig("def key_hash(schema: Schema, key: tuple[typing.Any, ...]) -> int"),
      "The hash by which routers and state tables know a key, whose fields are those of the schema. TypeError or ValueError for what "
      "is no such key.");
  module.def("key_of", key_of, nb::arg("schema"), nb::arg("key"), nb::arg("null"),
             nb::sig("def key_of(schema: Schema, key: bytes, null: bool) -> tuple[typing.Any, ...]"),
             "The values of a key that a router counts (key_extractor.hpp). StateError: it is none of these fields.");
  module.def("keys_in", [](const nb::bytes& data) { return keys_in(bytes_in(data)); }, nb::arg("data"), "The number of keys of an export.");
  nb::class_<KeySelection>(module, "KeySelection", "Some keys of a KeyedState, by their hashes.")
      .def(
          "__init__", [](KeySelection* self, const GivenRanges& given) { new (self) KeySelection{.of = ranges_of(given)}; },
          nb::arg("ranges"), nb::sig("def __init__(self, ranges: collections.abc.Sequence[tuple[int, int]]) -> None"),
          "None yet, of those whose hash is in one of the ranges, which don't overlap.");
  nb::class_<StateCopyObject>(module, "StateCopy", "A KeyedState as it was at a moment, while its operator goes on (Scheduler.take_copy).")
      .def_prop_ro(
          "number", [](const StateCopyObject& self) { return self.copy->number(); }, "1 for the first copy of its table, and so on.")
      .def_prop_ro(
          "changed_after", [](const StateCopyObject& self) { return self.copy->changed_after(); },
          nb::sig("def changed_after(self) -> list[int]"),
          "By segment the number of the last copy before its last change: what a copy with a higher number gave of it is right still.")
      .def(
          "skip",
          [](const StateCopyObject& self, std::size_t segment) {
            if (segment >= self.copy->changed_after().size()) throw std::out_of_range("there is no such segment");
            self.copy->skip(segment);
          },
          nb::arg("segment"), "Has a segment not be given.")
      .def(
          "abandon", [](const StateCopyObject& self) { self.copy->abandon(); }, nb::call_guard<nb::gil_scoped_release>(),
          "Nobody wants the rest: the operator keeps nothing any more for it.")
      .def("next_chunk", next_chunk, nb::arg("max_bytes") = std::size_t{1} << 20,
           nb::sig("def next_chunk(self, max_bytes: int = 1048576) -> tuple[int, bytes] | None"),
           "State of some of the keys of a segment, and which: about max_bytes, an export of its own; None when all have been given. One "
           "thread at a time.");
  nb::class_<KeyedStateObject>(
      module, "KeyedState",
      "The state of a keyed operator. Exported, imported and removed from only while the operator isn't running (Scheduler.hold); size "
      "at any time.")
      .def(
          "__init__",
          [](KeyedStateObject* self, const SchemaObject& schema, const std::vector<std::string>& keys, const SchemaObject& record,
             const nb::bytes& initial, const GivenTtl& ttl) {
            std::vector<std::size_t> texts;
            std::vector<TextCheck> checks;
            for (const Field& field : record.schema->fields()) {
              if (field.type != Type::String && field.type != Type::Binary) continue;
              texts.push_back(field.offset);
              checks.push_back(check_of_texts(field.type));
            }
            auto records =
                std::make_shared<KeyedState>(schema.schema, keys, record.schema->record_size(), bytes_in(initial), texts, ttl_of(ttl));
            records->check_texts(checks);
            records->describe(record.schema);
            new (self) KeyedStateObject{.store = records, .records = records};
          },
          nb::arg("schema"), nb::arg("keys"), nb::arg("record"), nb::arg("initial"), nb::arg("ttl") = GivenTtl(),
          nb::sig("def __init__(self, schema: Schema, keys: collections.abc.Sequence[str], record: Schema, initial: bytes, ttl: "
                  "tuple[int, str, int, str] = (0, '', 0, 'last')) -> None"),
          "State records of a schema, a copy of initial for a new key. ttl: a key that isn't touched for so many ticks of a time field, "
          "with a shift, is\n"
          "forgotten; nanoseconds of the clock where the field is ''; 0: none is.")
      .def_static(
          "objects",
          [](const SchemaObject& schema, const std::vector<std::string>& keys, nb::object factory, const GivenTtl& ttl, bool told,
             bool unpickles) {
            if (PyCallable_Check(factory.ptr()) == 0)
              throw std::invalid_argument("the factory of keyed state must be callable without arguments");
            auto objects = std::make_shared<ObjectStates>(schema.schema, keys, factory.ptr(), ttl_of(ttl), told, unpickles);
            return KeyedStateObject{.store = objects, .objects = objects};
          },
          nb::arg("schema"), nb::arg("keys"), nb::arg("factory"), nb::arg("ttl") = GivenTtl(), nb::arg("told") = false,
          nb::arg("unpickles") = true,
          nb::sig("def objects(schema: Schema, keys: collections.abc.Sequence[str], factory: collections.abc.Callable[[], typing.Any], "
                  "ttl: tuple[int, str, int, str] = (0, '', 0, 'last'), told: bool = False, unpickles: bool = True) -> KeyedState"),
          "Any Python value per key, made by factory() when the key comes first. told: they are changed also when no record of their key "
          "comes, and\nwill_change is called before. unpickles: False leaves imported values as pickled bytes.")
      .def_static(
          "object",
          [](nb::object save, nb::object load) { return KeyedStateObject{.store = std::make_shared<ClassState>(save.ptr(), load.ptr())}; },
          nb::arg("save"), nb::arg("load"),
          nb::sig("def object(save: collections.abc.Callable[[], bytes], load: collections.abc.Callable[[bytes], typing.Any]) -> "
                  "KeyedState"),
          "The state of an object without keys: bytes that save() returns and load(bytes) restores.")
      .def_prop_ro(
          "size", [](const KeyedStateObject& self) { return self.store->size(); }, "Keys.")
      .def_prop_ro(
          "used_bytes", [](const KeyedStateObject& self) { return self.store->bytes(); }, "Memory in use, without what Python values hold.")
      .def_prop_ro(
          "layout", [](const KeyedStateObject& self) { return self.store->layout(); },
          "Of keys and state record: states of the same layout can import from one another.")
      .def_prop_ro(
          "pickled", [](const KeyedStateObject& self) { return self.store->holds_objects(); },
          "Whether exports hold pickled values: only ever import what you trust.")
      .def(
          "values",
          [](const KeyedStateObject& self) {
            if (self.objects == nullptr) throw std::invalid_argument("only Python values can be looked at");
            return nb::steal<nb::list>(self.objects->all_values());
          },
          nb::sig("def values(self) -> list[typing.Any]"), "The Python values that there are; by the operator, or while it is held.")
      .def_prop_ro(
          "changes", [](const KeyedStateObject& self) { return self.objects == nullptr ? 0 : self.objects->changes(); },
          "How often Python values have come or gone otherwise than by the operator's own runs.")
      .def(
          "will_change",
          [](const KeyedStateObject& self, nb::handle value) {
            if (self.objects != nullptr) self.objects->will_change(value.ptr());
          },
          nb::arg("value"), nb::sig("def will_change(self, value: typing.Any) -> None"),
          "By the operator: a Python value is about to be changed of which no record has come in this run; a copy has it as it was.")
      .def(
          "forget",
          [](const KeyedStateObject& self, const std::vector<nb::handle>& values) {
            if (self.objects == nullptr) throw std::invalid_argument("only keys of Python values can be forgotten so");
            std::vector<PyObject*> pointers;
            for (const nb::handle value : values) pointers.push_back(value.ptr());
            self.objects->forget(pointers);
          },
          nb::arg("values"), nb::sig("def forget(self, values: collections.abc.Sequence[typing.Any]) -> None"),
          "By the operator, if told: it needs these Python values no more, and their keys are freed.")
      .def_prop_ro(
          "exports_aside", [](const KeyedStateObject& self) { return self.store->exports_aside(); },
          "Whether keys of which no record comes may be exported while the operator runs.")
      .def("export", export_range, nb::arg("low") = std::uint64_t{0}, nb::arg("high") = kAll,
           "State of the keys whose hash is in [low, high]. Python values are pickled: only ever import what you trust.")
      .def("select", select_keys, nb::arg("ranges"),
           nb::sig("def select(self, ranges: collections.abc.Sequence[tuple[int, int]]) -> KeySelection"),
           "The keys whose hash is in one of the ranges, which don't overlap; it holds as long as nobody adds such keys.")
      .def("select_chunk", select_chunk, nb::arg("keys"), nb::arg("at") = std::uint64_t{0}, nb::arg("max_places") = std::size_t{1} << 16,
           nb::arg("pause").none() = nullptr,
           nb::sig("def select_chunk(self, keys: KeySelection, at: int = 0, max_places: int = 65536, pause: OperatorPause | None = None) "
                   "-> int"),
           "Looks at some places and adds the keys there that are meant; where to go on, 0 when there is no more. The operator may run in "
           "between.")
      .def("export_chunk", export_chunk, nb::arg("keys"), nb::arg("at") = std::uint64_t{0}, nb::arg("max_bytes") = std::size_t{1} << 20,
           nb::arg("pause").none() = nullptr,
           nb::sig(
               "def export_chunk(self, keys: KeySelection, at: int = 0, max_bytes: int = 1048576, pause: OperatorPause | None = None) -> "
               "tuple[bytes, int]"),
           "State of some of the keys: about max_bytes, an export of its own, and where to go on; 0 when there is no more.")
      .def("reserve_more", reserve_more, nb::arg("keys"), nb::arg("pause").none() = nullptr,
           nb::sig("def reserve_more(self, keys: int, pause: OperatorPause | None = None) -> int"), "Makes room for so many keys more.")
      .def("import_", import_range, nb::arg("data"), nb::arg("pause").none() = nullptr,
           nb::sig("def import_(self, data: bytes, pause: OperatorPause | None = None) -> int"),
           "All or nothing; StateError for keys that are here already, and for bytes of another format or layout. Returns the number of "
           "keys.")
      .def(
          "import_older",
          [](const KeyedStateObject& self, const KeyedStateObject& older) {
            auto* const into = dynamic_cast<KeyedState*>(self.store.get());
            if (into == nullptr || older.records == nullptr) throw std::invalid_argument("only records can be widened");
            const nb::gil_scoped_release released;
            return into->import_older(*older.records);
          },
          nb::arg("older"),
          "Imports the keys of a state whose records have some of the fields, as wide or less; the others are those of a new key. Returns "
          "the number of keys.")
      .def("to_arrow", to_arrow, nb::arg("schema"), nb::sig("def to_arrow(self, schema: Schema) -> list[typing.Any]"),
           "The state as rows of such fields: a list of pyarrow.RecordBatch; while the operator isn't running. StateError: it has no rows.")
      .def(
          "remove",
          [](const KeyedStateObject& self, std::uint64_t low, std::uint64_t high) {
            const nb::gil_scoped_release released;
            return self.store->remove_range(low, high);
          },
          nb::arg("low") = std::uint64_t{0}, nb::arg("high") = kAll, "Forgets the keys whose hash is in [low, high]; returns how many.")
      .def("remove_chunk", remove_chunk, nb::arg("keys"), nb::arg("at") = std::uint64_t{0}, nb::arg("max_keys") = std::size_t{1} << 12,
           nb::arg("pause").none() = nullptr,
           nb::sig("def remove_chunk(self, keys: KeySelection, at: int = 0, max_keys: int = 4096, pause: OperatorPause | None = None) -> "
                   "tuple[int, int]"),
           "Forgets some of the keys; how many, and where to go on, 0 when there is no more.");
}

}  // namespace rayelastic::python
