// What every native benchmark needs: clocks, settings, alternated rounds, and rows as JSON lines, which bench/micro/__main__.py
// makes a table of. Knows nothing of what is measured.
#pragma once

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rayelastic::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

inline std::int64_t nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

// Processor time of the process, or of CLOCK_THREAD_CPUTIME_ID: neighbours on the machine count less than by the clock.
inline double cpu_seconds(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct ContextSwitches {
  long voluntary = 0;
  long involuntary = 0;
};

inline ContextSwitches context_switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {usage.ru_nvcsw, usage.ru_nivcsw};
}

// `share` of the values are at most this; 0.5 is the median.
inline double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

// Both sides of a row, one value a round.
struct Rounds {
  std::vector<double> ours;
  std::vector<double> limit;
};

// Measures both sides in turns, so that what the machine does meanwhile meets both.
template <class Ours, class Limit>
Rounds alternate(std::int64_t rounds, Ours&& ours, Limit&& limit) {
  Rounds both;
  for (std::int64_t round = 0; round < rounds; ++round) {
    both.limit.push_back(limit());
    both.ours.push_back(ours());
  }
  return both;
}

struct Row {
  std::string key = {};         // stable: histories and targets go by it
  std::string what = {};        // for the reader
  std::string unit = {};        // of both sides
  std::string limit_what = {};  // what the other side is
  Rounds rounds = {};           // `ours` empty: the row is a limit by itself
  std::string note = {};
};

inline std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + '"';
}

inline std::string listed(const std::vector<double>& values) {
  std::string out = "[";
  for (const double value : values) {
    char text[32];
    std::snprintf(text, sizeof text, "%s%.6g", out.size() > 1 ? ", " : "", value);
    out += text;
  }
  return out + ']';
}

inline void print(const Row& row) {
  std::printf(R"({"key": %s, "what": %s, "unit": %s, "ours": %s, "limit": %s, "limit_what": %s, "note": %s})"
              "\n",
              quoted(row.key).c_str(), quoted(row.what).c_str(), quoted(row.unit).c_str(), listed(row.rounds.ours).c_str(),
              listed(row.rounds.limit).c_str(), quoted(row.limit_what).c_str(), quoted(row.note).c_str());
  std::fflush(stdout);
}

inline std::string bytes_text(std::size_t bytes) {
  return bytes < 1024 ? std::to_string(bytes) + " B" : std::to_string(bytes / 1024) + " KiB";
}

[[noreturn]] inline void give_up(const std::string& what) {
  std::fprintf(stderr, "bench: %s\n", what.c_str());
  std::exit(EXIT_FAILURE);
}

// Arguments `name=number`; names that have no default are refused. Says which compiler built the program.
class Settings {
 public:
  Settings(int argc, char** argv, std::map<std::string, double> defaults) : values_(std::move(defaults)) {
    std::printf(R"({"compiler": %s})"
                "\n",
                quoted("g++ " __VERSION__).c_str());
    for (int index = 1; index < argc; ++index) {
      const std::string argument = argv[index];
      const std::size_t sign = std::min(argument.find('='), argument.size());
      const auto found = values_.find(argument.substr(0, sign));
      if (found == values_.end() || sign == argument.size()) {
        std::string known;
        for (const auto& [name, value] : values_) known += " " + name + "=";
        give_up("expected one of" + known + ", not '" + argument + "'");
      }
      found->second = std::strtod(argument.c_str() + sign + 1, nullptr);
    }
  }
  [[nodiscard]] double number(const std::string& name) const { return values_.at(name); }
  [[nodiscard]] std::int64_t whole(const std::string& name) const { return static_cast<std::int64_t>(values_.at(name)); }
  [[nodiscard]] std::size_t size(const std::string& name) const { return static_cast<std::size_t>(values_.at(name)); }

 private:
  std::map<std::string, double> values_;
};

}  // namespace rayelastic::bench
