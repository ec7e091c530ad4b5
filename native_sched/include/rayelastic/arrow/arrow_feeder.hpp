// The way of Arrow batches from anywhere (Spark's ingest, a pandas table, a Parquet reader) into a running PE: a bounded
// queue that makes its producers wait, and the source operator that turns batches into runs. Nothing here knows Python.
//
// Owners: any number of threads push, finish, fail or interrupt; one operator reads. One mutex, taken per batch.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rayelastic/arrow/arrow_reader.hpp"
#include "rayelastic/mutex.hpp"
#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

// A batch, or a mark between two of them; neither at the end.
struct Fed {
  std::unique_ptr<ArrowBatch> batch;
  std::optional<Mark> mark;
};

class ArrowFeeder {
 public:
  // unread: by field, whether nobody reads it; see ArrowBatch.
  ArrowFeeder(std::shared_ptr<const Schema> schema, std::size_t capacity_bytes, std::vector<bool> unread = {});

  // Takes array and schema over and queues the batch; waits while the queue holds capacity_bytes (a larger batch goes into an empty
  // queue). False: the feeder was interrupted, finished or has failed, and the batch is dropped. Throws ArrowError for a batch that doesn't fit.
  [[nodiscard]] bool push(ArrowArray* array, ArrowSchema* arrow);

  // Behind what was pushed so far. Never waits.
  void mark(Mark mark);

  void finish();                   // no more batches; those queued are still read
  void fail(std::string message);  // the source fails with this message at once
  void interrupt();                // stop: nobody waits here any more

  // For the source operator: what is next, waiting for it; nothing at the end or when interrupted, or failed: see failure().
  [[nodiscard]] Fed next();
  [[nodiscard]] std::optional<std::string> failure() const;

  [[nodiscard]] std::size_t queued_bytes() const;
  [[nodiscard]] const std::shared_ptr<const Schema>& schema() const noexcept { return schema_; }

 private:
  std::shared_ptr<const Schema> schema_;
  std::size_t capacity_bytes_;
  const std::vector<bool> unread_;
  mutable Mutex mutex_;
  std::condition_variable room_;
  std::condition_variable work_;
  std::deque<Fed> fed_ REL_GUARDED_BY(mutex_);
  std::size_t bytes_ REL_GUARDED_BY(mutex_) = 0;
  bool finished_ REL_GUARDED_BY(mutex_) = false;
  bool interrupted_ REL_GUARDED_BY(mutex_) = false;
  std::optional<std::string> failure_ REL_GUARDED_BY(mutex_);
};

// A source whose schema is the feeder's.
[[nodiscard]] std::shared_ptr<Operator> make_arrow_source(std::string name, std::shared_ptr<ArrowFeeder> feeder);

}  // namespace rayelastic
