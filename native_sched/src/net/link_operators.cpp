// The two ends of a link as operators: what the scheduler calls.
#include <algorithm>
#include <cstring>

#include "rayelastic/assert.hpp"
#include "rayelastic/net/link.hpp"

namespace rayelastic {

namespace {

std::int64_t ended(Link& link, Link::Outcome outcome, rel_context* context) {
  if (outcome == Link::Outcome::Failed) {
    context->fail(link.failure());
    return REL_FAILED(0);
  }
  return outcome == Link::Outcome::Stopped ? REL_STOPPED : 0;
}

class LinkOut final : public Operator {
 public:
  LinkOut(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<Link> link)
      : Operator(std::move(name), {std::move(schema)}, {}, REL_SINK | REL_ON_FINISH), link_(std::move(link)) {}

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte*, std::int64_t, rel_context* context) override {
    return ended(*link_, link_->send(in, static_cast<std::size_t>(n)), context);
  }
  std::int64_t finish(std::byte*, std::int64_t, rel_context* context) override { return ended(*link_, link_->finish(), context); }
  bool on_mark(Mark mark, rel_context* context) override {
    (void)ended(*link_, link_->send(mark), context);
    return true;
  }
  void interrupt() override { link_->interrupt(); }

 private:
  const std::shared_ptr<Link> link_;
};

class LinkIn final : public Operator {
 public:
  LinkIn(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<Link> link)
      : Operator(std::move(name), {}, {std::move(schema)}, REL_SOURCE), link_(std::move(link)) {}

  std::int64_t process(const std::byte*, std::int64_t, std::byte* out, std::int64_t capacity, rel_context* context) override {
    Link::Received received;
    const Link::Outcome outcome = link_->receive(received);
    if (outcome == Link::Outcome::End) {
      context->finish();
      return 0;
    }
    if (outcome != Link::Outcome::Ok) return ended(*link_, outcome, context);
    if (received.header.kind == FrameKind::Records) return link_->submit(received, out, static_cast<std::size_t>(capacity), context);
    const Mark mark = received.mark();
    if (mark.kind != MarkKind::Final) context->mark(mark);  // Final is the engine's to send, when this source has finished
    link_->mark_passed();
    return 0;
  }
  void interrupt() override { link_->interrupt(); }

 private:
  const std::shared_ptr<Link> link_;
};

}  // namespace

std::int64_t Link::submit(const Received& received, std::byte* out, std::size_t capacity, rel_context* context) {
  const std::size_t stride = received.header.record_bytes;
  RE_CHECK(stride == schema_->record_size() && capacity > 0);
  for (std::size_t done = 0; done < received.header.records;) {
    const std::size_t part = std::min<std::size_t>(capacity, received.header.records - done);
    std::memcpy(out, received.records + done * stride, part * stride);
    if (received.heap) context->attach(received.heap.get());
    if (!context->flush(static_cast<std::int64_t>(part))) return REL_STOPPED;
    done += part;
  }
  totals_.passed.add(received.header.records);
  consumed(received.bytes);
  return 0;
}

std::shared_ptr<Operator> link_out(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<Link> link) {
  link->open_out(schema);
  return std::make_shared<LinkOut>(std::move(name), std::move(schema), std::move(link));
}

std::shared_ptr<Operator> link_in(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<Link> link) {
  link->open_in(schema);
  return std::make_shared<LinkIn>(std::move(name), std::move(schema), std::move(link));
}

}  // namespace rayelastic
