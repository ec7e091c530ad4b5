#include "operator/stages.hpp"

#include <utility>

#include "rayelastic/operator/stages.hpp"
#include "rayelastic/record/hash.hpp"

namespace rayelastic {

Stages::Stages(const Schemas& ports, std::shared_ptr<KeylessState> own) : own_(std::move(own)) {
  for (const auto& schema : ports) {
    buffers_.emplace_back(schema->record_size());
    forms_.emplace_back(schema);
  }
}

std::uint64_t Stages::form() const noexcept {
  std::uint64_t digest = own_ == nullptr ? 0 : own_->form();
  for (const BufferedRecords& form : forms_) digest = hash_of(digest ^ form.layout());
  return digest;
}

void Stages::write(StateWriter& writer) const {
  for (std::size_t port = 0; port < buffers_.size(); ++port) forms_[port].write(buffers_[port], writer);
  if (own_ != nullptr) own_->write(writer);
}

void Stages::read(StateReader& reader, bool restored) {
  for (std::size_t port = 0; port < buffers_.size(); ++port) (void)forms_[port].read(reader, restored ? &buffers_[port] : nullptr);
  if (own_ != nullptr) own_->read(reader, restored);
}

std::pair<std::shared_ptr<Stages>, std::shared_ptr<StateTable>> make_stages(const Schemas& ports, std::shared_ptr<KeylessState> own) {
  auto stages = std::make_shared<Stages>(ports, std::move(own));
  return {stages, stages};
}

}  // namespace rayelastic
