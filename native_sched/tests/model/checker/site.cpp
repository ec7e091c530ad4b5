#include "checker/site.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

namespace rayelastic::model {

namespace {

std::deque<Site>& sites() {
  static std::deque<Site> all;
  return all;
}

std::string base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// "void rayelastic::PortQueue<Atom>::advance(std::size_t) [with ...]" -> "PortQueue::advance"
std::string short_function(const char* pretty) {
  std::string text = pretty;
  if (const auto with = text.find(" [with"); with != std::string::npos) text.resize(with);
  std::string plain;
  int depth = 0;
  for (const char letter : text) {
    if (letter == '<') ++depth;
    if (depth == 0) {
      if (letter == '(') break;
      plain += letter;
    }
    if (letter == '>') --depth;
  }
  if (const auto space = plain.rfind(' '); space != std::string::npos) plain.erase(0, space + 1);
  const auto last = plain.rfind("::");
  const auto before = last == std::string::npos || last == 0 ? std::string::npos : plain.rfind("::", last - 1);
  return before == std::string::npos ? plain : plain.substr(before + 2);
}

}  // namespace

Site& Site::of(const std::source_location& where, Kind kind, std::memory_order order, std::memory_order failure) {
  struct Entry {
    const char* file = nullptr;
    unsigned line = 0;
    unsigned column = 0;
    Site* site = nullptr;
  };
  static std::array<Entry, 1024> cache;
  const auto hash = (reinterpret_cast<std::uintptr_t>(where.file_name()) >> 3) ^ (where.line() * 31U) ^ (where.column() * 1009U);
  Entry& entry = cache[hash % cache.size()];
  if (entry.site != nullptr && entry.file == where.file_name() && entry.line == where.line() && entry.column == where.column()) {
    return *entry.site;
  }
  const std::string file = base_name(where.file_name());
  const auto same = std::ranges::find_if(
      sites(), [&](const Site& site) { return site.line == where.line() && site.column == where.column() && site.file == file; });
  Site* found = same == sites().end() ? nullptr : &*same;
  if (found == nullptr) {
    found = &sites().emplace_back(Site{.file = file,
                                       .function = short_function(where.function_name()),
                                       .line = where.line(),
                                       .column = where.column(),
                                       .kind = kind,
                                       .order = order,
                                       .failure = failure,
                                       .in_force = order,
                                       .failure_in_force = failure});
  }
  entry = {where.file_name(), where.line(), where.column(), found};
  return *found;
}

std::vector<Site*> Site::all() {
  std::vector<Site*> result;
  for (Site& site : sites()) result.push_back(&site);
  std::ranges::sort(result, {}, [](const Site* site) { return std::tie(site->file, site->line, site->column); });
  return result;
}

void Site::restore_all() {
  for (Site& site : sites()) {
    site.in_force = site.order;
    site.failure_in_force = site.failure;
    site.dropped_for = kNowhere;
    site.put_off = false;
  }
}

std::string Site::text() const {
  return file + ":" + std::to_string(line) + " " + function + " " + name(kind) +
         (kind < Kind::Notify ? std::string(" ") + name(in_force) : "");
}

const char* name(Kind kind) {
  constexpr const char* kNames[] = {"load", "store", "exchange", "add", "compare-exchange", "wait", "notify", "relax", "start"};
  return kNames[static_cast<int>(kind)];
}

const char* name(std::memory_order order) {
  switch (order) {
    case std::memory_order_relaxed:
      return "relaxed";
    case std::memory_order_consume:
      return "consume";
    case std::memory_order_acquire:
      return "acquire";
    case std::memory_order_release:
      return "release";
    case std::memory_order_acq_rel:
      return "acq_rel";
    case std::memory_order_seq_cst:
      return "seq_cst";
  }
  return "?";
}

std::vector<std::memory_order> weaker(Kind kind, std::memory_order order) {
  const bool loads = kind == Kind::Load || kind == Kind::Wait;
  switch (order) {
    case std::memory_order_seq_cst:
      return {loads ? std::memory_order_acquire : kind == Kind::Store ? std::memory_order_release : std::memory_order_acq_rel};
    case std::memory_order_acq_rel:
      return {std::memory_order_acquire, std::memory_order_release};
    case std::memory_order_acquire:
    case std::memory_order_release:
      return {std::memory_order_relaxed};
    default:
      return {};
  }
}

}  // namespace rayelastic::model
