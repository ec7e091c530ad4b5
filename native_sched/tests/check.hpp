// The test harness: TEST(name) { ... CHECK(...); } and REL_TEST_MAIN in one file per executable. A failed check ends its test, on
// whatever thread it is, by an exception of the test's thread or by abort elsewhere. Run with a part of a name to run less.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "rayelastic/assert.hpp"

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitized = true;
constexpr bool kSanitized = true;
#elif defined(__SANITIZE_ADDRESS__)
constexpr bool kThreadSanitized = false;
constexpr bool kSanitized = true;
#else
constexpr bool kThreadSanitized = false;
constexpr bool kSanitized = false;
#endif

namespace rayelastic::check {

struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Test {
  std::string_view name;
  std::function<void()> body;
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

inline int add(std::string_view name, std::function<void()> body) {
  tests().push_back({name, std::move(body)});
  return 0;
}

[[noreturn]] inline void fail(const char* file, int line, const std::string& what) {
  throw Failed(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

template <class Value>
std::string shown(const Value& value) {
  std::ostringstream out;
  if constexpr (requires { out << value; })
    out << value;
  else
    out << "?";
  return out.str();
}

template <class Left, class Right>
void equal(const Left& left, const Right& right, const char* text, const char* file, int line) {
  if (!(left == right)) fail(file, line, std::string(text) + ": " + shown(left) + " != " + shown(right));
}

// Waits for something that will happen, as long as it takes on a slow machine under a sanitizer; never sleeps blindly.
template <class Condition>
bool eventually(Condition&& condition, std::chrono::seconds limit = std::chrono::seconds(120)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

inline int run_all(int argc, char** argv) {
  int failed = 0;
  int ran = 0;
  for (const Test& test : tests()) {
    if (argc > 1 && test.name.find(argv[1]) == std::string_view::npos) continue;
    ++ran;
    const auto start = std::chrono::steady_clock::now();
    std::string problem;
    try {
      test.body();
    } catch (const std::exception& error) {
      problem = error.what();
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%-6s %7.3f s  %.*s%s%s\n", problem.empty() ? "ok" : "FAILED", seconds, static_cast<int>(test.name.size()),
                test.name.data(), problem.empty() ? "" : "\n       ", problem.c_str());
    std::fflush(stdout);
    failed += problem.empty() ? 0 : 1;
  }
  std::printf("%d of %d tests passed\n", ran - failed, ran);
  return failed == 0 && ran > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace rayelastic::check

#define TEST(name)                                                            \
  static void test_##name();                                                  \
  static const int added_##name = rayelastic::check::add(#name, test_##name); \
  static void test_##name()
#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) rayelastic::check::fail(__FILE__, __LINE__, #condition); \
  } while (false)
#define CHECK_EQ(left, right) rayelastic::check::equal((left), (right), #left " == " #right, __FILE__, __LINE__)
#define CHECK_THROWS(expression, Exception)                                                             \
  do {                                                                                                  \
    bool thrown = false;                                                                                \
    try {                                                                                               \
      (void)(expression);                                                                               \
    } catch (const Exception&) {                                                                        \
      thrown = true;                                                                                    \
    }                                                                                                   \
    if (!thrown) rayelastic::check::fail(__FILE__, __LINE__, #expression " doesn't throw " #Exception); \
  } while (false)
#define REL_TEST_MAIN                              \
  int main(int argc, char** argv) {                \
    rayelastic::assertions::enabled = true;        \
    return rayelastic::check::run_all(argc, argv); \
  }
