// Where a stream comes in by any number of links, more and fewer while it runs: a source that passes on what arrives at each, and notes
// the Flush marks (router.hpp). And the tap, behind each replica of a region: an operator that passes everything on and notes them too.
//
// A thread per link receives (P08) and hands each frame to the one that runs the source; credit is given back when that has passed it on.
// A gather ends when all links that it knows and all local ends (replicas in the same PE) have ended, and there is at least one. A link that
// comes after that is refused: its sender learns it by the loss of the link.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rayelastic/net/link.hpp"
#include "rayelastic/net/mark_log.hpp"
#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

struct GatherOptions {
  std::string name;
  std::size_t local_ends = 0;  // taps that will say end_local()
  bool tolerant = false;       // a link that is lost ends like one that said goodbye; else the source fails
};

class Gather {
 public:
  Gather(std::shared_ptr<const Schema> schema, GatherOptions options);
  ~Gather();
  Gather(const Gather&) = delete;
  Gather& operator=(const Gather&) = delete;

  // --- any thread. False: too late.
  [[nodiscard]] bool add(std::shared_ptr<Link> link);
  void end_local();
  [[nodiscard]] std::vector<std::string> lost() const;  // failures of links, tolerated or not
  void interrupt() noexcept;
  [[nodiscard]] MarkLog& marks() noexcept { return marks_; }

  [[nodiscard]] std::int64_t process(std::byte* out, std::size_t capacity, rel_context* context);

  [[nodiscard]] const std::string& name() const noexcept { return options_.name; }
  [[nodiscard]] const std::shared_ptr<const Schema>& schema() const noexcept { return schema_; }

 private:
  enum class Stage : std::uint8_t { Receiving, Arrived, Ended };
  struct Arm {
    std::shared_ptr<Link> link;
    std::thread thread;
    Link::Received received = {};
    Stage stage = Stage::Receiving;
    std::optional<std::int64_t> watermark = {};
  };

  void receive(Arm& arm);
  [[nodiscard]] std::int64_t pass(Arm& arm, std::byte* out, std::size_t capacity, rel_context* context);
  void pass(Arm& arm, Mark mark, rel_context* context);

  const std::shared_ptr<const Schema> schema_;
  const GatherOptions options_;
  MarkLog marks_;
  std::optional<std::int64_t> watermark_;  // passed on
  bool idle_ = false;                      // has said so since

  mutable std::mutex mutex_;  // of everything below; an arm that has arrived belongs to the source's thread
  std::condition_variable arrived_;
  std::condition_variable taken_;
  std::deque<Arm> arms_;  // never moves
  std::size_t next_ = 0;  // turn and turn about
  std::size_t local_ended_ = 0;
  std::vector<std::string> lost_;
  bool ended_ = false;
  bool stopping_ = false;
};

// What notes the marks behind a replica. `gathers` hear of its end.
struct Tap {
  MarkLog marks;
  std::vector<std::shared_ptr<Gather>> gathers;
};

[[nodiscard]] OperatorSpec make_gather(std::shared_ptr<Gather> gather);
[[nodiscard]] OperatorSpec make_tap(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<Tap> tap);

}  // namespace rayelastic
