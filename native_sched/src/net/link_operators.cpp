// The two ends of a link as operators: what the scheduler calls.
#include <algorithm>
#include <cstring>
#include <exception>

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

template <typename Body>
std::int64_t guarded(rel_context* context, Body body) noexcept {
  try {
    return body();
  } catch (const std::exception& error) {  // no memory, most likely
    context->fail(std::string("link: ") + error.what());
    return REL_FAILED(0);
  }
}

std::int64_t process_out(const void* in, std::int64_t n, void*, std::int64_t, void* state, rel_context* context) {
  auto& link = *static_cast<Link*>(state);
  return guarded(context, [&] {
    return ended(link, n == 0 ? link.finish() : link.send(static_cast<const std::byte*>(in), static_cast<std::size_t>(n)), context);
  });
}

bool mark_out(void* state, Mark mark, rel_context* context) {
  if (mark.kind != MarkKind::Command)
    (void)guarded(context, [&] { return ended(*static_cast<Link*>(state), static_cast<Link*>(state)->send(mark), context); });
  return true;
}

std::int64_t process_in(const void*, std::int64_t, void* out, std::int64_t capacity, void* state, rel_context* context) {
  auto& link = *static_cast<Link*>(state);
  return guarded(context, [&]() -> std::int64_t {
    Link::Received received;
    const Link::Outcome outcome = link.receive(received);
    if (outcome == Link::Outcome::End) {
      context->finish();
      return 0;
    }
    if (outcome != Link::Outcome::Ok) return ended(link, outcome, context);
    if (received.header.kind == FrameKind::Records)
      return link.submit(received, static_cast<std::byte*>(out), static_cast<std::size_t>(capacity), context);
    const Mark mark = received.mark();
    if (mark.kind != MarkKind::Final) context->mark(mark);  // Final is the engine's to send, when this source has finished
    link.mark_passed();
    return 0;
  });
}

void interrupt(void* state) { static_cast<Link*>(state)->interrupt(); }

}  // namespace

std::int64_t Link::submit(const Received& received, std::byte* out, std::size_t capacity, rel_context* context) {
  const std::size_t stride = received.header.record_bytes;
  for (std::size_t done = 0; done < received.header.records;) {
    const std::size_t part = std::min<std::size_t>(capacity, received.header.records - done);
    std::memcpy(out, received.records + done * stride, part * stride);
    if (received.heap) context->attach(received.heap.get());
    if (!context->flush(static_cast<std::int64_t>(part))) return REL_STOPPED;
    done += part;
  }
  totals_.passed.fetch_add(received.header.records, std::memory_order_relaxed);
  consumed(received.bytes);
  return 0;
}

OperatorSpec link_out(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<Link> link) {
  link->open_out(schema);
  OperatorSpec spec;
  spec.name = std::move(name);
  spec.process = process_out;
  spec.flags = REL_SINK | REL_ON_FINISH;
  spec.state = std::move(link);
  spec.input = std::move(schema);
  spec.interrupt = interrupt;
  spec.marked = mark_out;
  return spec;
}

OperatorSpec link_in(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<Link> link) {
  link->open_in(schema);
  OperatorSpec spec;
  spec.name = std::move(name);
  spec.process = process_in;
  spec.flags = REL_SOURCE;
  spec.state = std::move(link);
  spec.output = std::move(schema);
  spec.interrupt = interrupt;
  spec.model = ThreadingModel::Dedicated;  // P08: a thread of its own
  return spec;
}

}  // namespace rayelastic
