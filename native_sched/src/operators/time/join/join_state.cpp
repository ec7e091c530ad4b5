#include "operators/time/join/join_state.hpp"

namespace rayelastic {

std::uint64_t JoinState::form() const noexcept {
  std::uint64_t digest = hash_of(rights.layout() ^ static_cast<std::uint64_t>(options.kind));
  if (is_timed()) digest = hash_of(hash_of(digest ^ left_time->form()) ^ right_time->form());
  digest = hash_of(hash_of(digest ^ static_cast<std::uint64_t>(options.before)) ^ static_cast<std::uint64_t>(options.after));
  digest ^= options.times.form();
  if (options.right_outer) digest = hash_of(digest ^ 1);
  if (lives.any()) digest = lives.form(digest);
  return keeps_lefts() ? hash_of(digest ^ lefts.layout()) : digest;
}

void JoinState::write(const void* slot, StateWriter& writer) const {
  const JoinKey& key = Slot::get(slot);
  write(key.rights, rights, writer);
  if (keeps_lefts()) write(key.lefts, lefts, writer);
  if (lives.any()) lives.write(key.life, writer);
}

void JoinState::write(const std::vector<KeptRecord>& records, const RecordPool& pool, StateWriter& writer) const {
  writer.number(static_cast<std::uint32_t>(records.size()));
  for (const KeptRecord& each : records) {
    writer.record(each.record, pool.shape());
    if (saves_matched()) writer.number(static_cast<std::uint8_t>(each.matched ? 1 : 0));
  }
}

void JoinState::read(StateReader& reader, void* slot, std::int64_t) {
  JoinKey key;
  std::size_t count = read(reader, key.rights, rights, right_time, slot != nullptr);
  if (keeps_lefts()) count += read(reader, key.lefts, lefts, {}, slot != nullptr);
  if (count == 0) throw StateError("exported state has a key without records");
  if (lives.any()) key.life = lives.read(reader);
  if (slot == nullptr) return;
  if (is_bounded() || lives.any()) {
    const bool begun = !is_bounded() && key.life.has_begun();
    key.due = is_bounded() ? end_of(key.rights.front().time) : lives.end_of(begun ? key.life.touched : key.rights.front().time);
    due.note(key.due, slot);
  }
  Slot::put(slot, std::move(key));
}

std::size_t JoinState::read(StateReader& reader, std::vector<KeptRecord>& records, RecordPool& pool, const std::optional<TimeField>& time,
                            bool restored) const {
  const auto count = reader.number<std::uint32_t>();
  std::int64_t last = kNoWatermark;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::byte* const exported = reader.record(pool.shape());
    const std::int64_t at = time.has_value() ? time->of(exported) : 0;
    if (at < last) throw StateError("exported state has records that aren't in the order of their times");
    const auto matched = saves_matched() ? reader.number<std::uint8_t>() : std::uint8_t{0};
    if (matched > 1) throw StateError("exported state has a record that is neither matched nor not");
    if (restored) records.push_back({at, pool.restore(exported), matched == 1});
    last = at;
  }
  return count;
}

void JoinState::write_rows(StateRows& rows) {
  table.for_each([&](const StringView&, std::byte* slot) {
    const JoinKey* const key = Slot::find(slot);
    if (key == nullptr) return;
    for (const KeptRecord& each : key->rights) add_right(rows, *left, *right, each.record);
    for (const KeptRecord& each : key->lefts) add_left(rows, *left, each.record);
  });
  waiting.for_each([&](const Waiting& each) { add_left(rows, *left, each.record); });
}

void JoinState::forget(void* slot) noexcept {
  const std::unique_ptr<JoinKey> key = Slot::take(slot);
  for (const KeptRecord& each : key->rights) rights.drop(each.record);
  for (const KeptRecord& each : key->lefts) lefts.drop(each.record);
}

}  // namespace rayelastic
