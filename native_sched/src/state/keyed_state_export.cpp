// Keyed state as flat bytes, for migration and checkpoints. Little-endian, without padding:
//   header   magic "RELKEYS1" (the format), layout of key and state record, number of keys, bytes after the header (8 bytes each)
//   per key  key length (4), 1 if null (1), key bytes, with a time to live the last touch (8), state record (a long text's pointer as
//            zero), bytes of its long texts
// Import trusts nothing: everything is parsed and compared before anything is changed.
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "rayelastic/assert.hpp"
#include "rayelastic/record/hash.hpp"
#include "rayelastic/state/keyed_state.hpp"
#include "rayelastic/state/state_bytes.hpp"
#include "rayelastic/state/state_rows.hpp"
#include "record/numbers.hpp"
#include "record/validity.hpp"
#include "state/keyed_state_lives.hpp"

namespace rayelastic {

namespace {

constexpr char kMagic[8] = {'R', 'E', 'L', 'K', 'E', 'Y', 'S', '1'};

// A field of an older record, and its place in a newer one.
struct Widened {
  const Field* from;
  const Field* to;
};

std::vector<Widened> fields_of(const Schema& from, const Schema& to) {
  std::vector<Widened> fields;
  for (const Field& field : from.fields()) {
    const Field* const now = to.find(field.name);
    const bool is_wider = now != nullptr && field.type <= Type::Float64 && now->type <= Type::Float64 &&
                          is_float(field.type) == is_float(now->type) && size_of(now->type) > size_of(field.type);
    const bool fits = now != nullptr && (now->type == field.type || is_wider);
    if (!fits) throw std::invalid_argument("field '" + field.name + "' of older state doesn't fit");
    fields.push_back({&field, now});
  }
  return fields;
}

// Copies a value, into a wider number perhaps. Integers get bytes of their sign, or zeros.
void copy_value(const Widened& field, const std::byte* from, std::byte* to) {
  from += field.from->offset;
  to += field.to->offset;
  const Type type = field.from->type;
  const std::size_t size = size_of(type);
  if (type == field.to->type || !is_float(field.to->type)) {
    const bool negative = type <= Type::Int64 && (from[size - 1] & std::byte{0x80}) != std::byte{};
    std::memset(to, negative ? 0xff : 0, size_of(field.to->type));
    std::memcpy(to, from, size);
  } else if (field.to->type == Type::Float32) {
    store(to, static_cast<float>(number_at(type, from)));
  } else {
    store(to, number_at(type, from));
  }
}

}  // namespace

std::uint64_t KeyedState::layout() const noexcept {
  std::uint64_t digest = hash_of(state_size_);
  for (const std::size_t offset : text_offsets_) digest = hash_of(digest ^ offset);
  for (const Field* field : extractor_.fields()) {
    digest = hash_of(digest ^ (static_cast<std::uint64_t>(field->type) * 2 + (field->nullable ? 1 : 0)));
  }
  return lives_ == nullptr ? digest : lives_->layout(digest);
}

void KeyedState::select_chunk(KeySelection& keys, std::uint64_t& at, std::size_t max_places) const {
  constexpr std::size_t kAhead = 16;  // places whose memory is on its way
  RE_CHECK(at <= slot_count_);
  const std::size_t end = slot_count_ - at > max_places ? at + max_places : slot_count_;
  for (std::size_t place = at; place < end; ++place) {
    if (place + kAhead < end) __builtin_prefetch(slot_at(place + kAhead));
    Slot* const slot = slot_at(place);
    if (keys.of.contains(slot->hash) && is_kept(slot)) keys.slots.push_back(slot);
  }
  RE_CHECK(keys.slots.size() <= slot_count_);
  at = end < slot_count_ ? end : 0;
}

std::vector<std::byte> KeyedState::export_chunk(const KeySelection& keys, std::uint64_t& at, std::size_t max_bytes) {
  StateWriter writer(kMagic, layout(), max_bytes);
  const std::int64_t now = now_for_touches();
  at = for_each_of(keys, at, [&](const StringView& key, std::byte* state) {
    if (writer.keys() > 0 && writer.size() >= max_bytes) return false;
    if (!is_live(state, now)) return true;
    writer.key(key);
    write_touch(state, writer, now);
    writer.record(state, {state_size_, text_offsets_, {}, record_.get()});
    return true;
  });
  RE_CHECK(writer.keys() <= keys.slots.size());
  std::vector<std::byte> bytes = writer.finish();
  RE_ASSERT(read_keys(bytes).size() == keys_in(bytes));
  return bytes;
}

std::shared_ptr<StateCopy> KeyedState::begin_copy() {
  const auto write = [this, now = now_for_touches()](const StringView& key, const std::byte* state, StateWriter& writer) {
    if (!is_live(state, now)) return;
    writer.key(key);
    write_touch(state, writer, now);
    writer.record(state, {state_size_, text_offsets_, {}, record_.get()});
  };
  return begin_copy({.magic = &kMagic, .layout = layout(), .write = write, .tells_all_changes = !ages()});
}

void KeyedState::write_rows(StateRows& rows) {
  const std::size_t keys = extractor_.fields().size();
  for_each([&](const StringView& key, const std::byte* state) {
    rows.add();
    rows.set_key(extractor_, key);
    if (record_ != nullptr) rows.set(keys, *record_, state);
  });
}

std::size_t KeyedState::import_older(KeyedState& older) {
  if (record_ == nullptr || older.record_ == nullptr) throw std::invalid_argument("records that nobody described can't be widened");
  const std::vector<Widened> fields = fields_of(*older.record_, *record_);
  StateWriter writer(kMagic, layout(), older.size() * state_size_);
  std::vector<std::byte> record(state_size_);
  const std::int64_t now = older.now_for_touches();
  older.for_each([&](const StringView& key, const std::byte* state) {
    record = initial_;
    for (const Widened& field : fields) {
      const bool valid = older.record_->is_valid(state, *field.from);
      set_valid(*field.to, *record_, record.data(), valid);
      if (valid) {
        copy_value(field, state, record.data());
      } else {
        std::memset(record.data() + field.to->offset, 0, size_of(field.to->type));
      }
    }
    writer.key(key);
    older.write_touch(state, writer, now);
    writer.record(record.data(), {state_size_, text_offsets_, {}, record_.get()});
  });
  RE_CHECK(writer.keys() == older.size());
  return import_range(writer.finish());
}

// What import_range finds in exported bytes. Throws StateError.
std::vector<KeyedState::Exported> KeyedState::read_keys(std::span<const std::byte> bytes) const {
  const RecordShape shape{state_size_, text_offsets_, text_checks_};
  StateReader reader(bytes, kMagic, layout());
  std::vector<Exported> keys;
  keys.reserve(static_cast<std::size_t>(reader.keys()));
  for (std::uint64_t i = 0; i < reader.keys(); ++i) {
    const StringView key = reader.key(extractor_);
    const std::int64_t touched = read_touch(reader);
    keys.push_back({key, hash_of(key), touched, reader.record(shape)});
  }
  if (!reader.empty()) throw StateError("exported state has bytes after its last key");
  return keys;
}

std::size_t KeyedState::import_range(std::span<const std::byte> bytes) {
  const std::vector<Exported> keys = read_keys(bytes);
  std::vector<StringView> names;
  names.reserve(keys.size());
  for (const Exported& each : keys) names.push_back(each.key);
  check_distinct(names);
  reserve(size() + keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i + kBatch < keys.size()) index_.prefetch(keys[i + kBatch].hash);
    if (find_number(keys[i].key, keys[i].hash) != kNoSlot) throw StateError("exported state has a key that is here already");
  }

  const RecordShape shape{state_size_, text_offsets_, text_checks_};
  const std::size_t before = size();
  for (const auto& [key, hash, touched, state] : keys) {
    Slot* const slot = insert(key, hash);
    if (lives_ != nullptr) touch_of(slot) = touched;
    shape.restore(state, static_cast<std::byte*>(state_of(slot)), texts_);
  }
  RE_CHECK(size() == before + keys.size());
  publish();
  return keys.size();
}

}  // namespace rayelastic
