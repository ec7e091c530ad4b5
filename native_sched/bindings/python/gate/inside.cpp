#include "python/gate/inside.hpp"

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <string_view>

namespace rayelastic::python {

namespace {

constexpr std::array<int, 5> kCrashes = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// Read by a signal handler: no code of the loader may run for it.
[[gnu::tls_model("initial-exec")]] thread_local const char* here = nullptr;

std::array<struct sigaction, kCrashes.size()> before;
bool told = false;  // guarded by the GIL

void say(std::string_view text) noexcept { (void)!::write(STDERR_FILENO, text.data(), text.size()); }

// Async-signal-safe.
void tell(int signal) {
  if (here != nullptr) {
    say("rayelastic: crashed in the function of operator '");
    say({here, std::strlen(here)});
    say("'\n");
  }
  for (std::size_t i = 0; i < kCrashes.size(); ++i) {
    if (kCrashes[i] == signal) (void)::sigaction(signal, &before[i], nullptr);
  }
  (void)::raise(signal);
}

}  // namespace

Inside::Inside(PythonFailure& of) noexcept : of_(of) {
  of_.thread.store(PyThread_get_thread_ident());
  here = of_.name.c_str();
}

Inside::~Inside() {
  here = nullptr;
  of_.thread.store(0);
}

void tell_crashes() {
  if (told) return;
  told = true;
  struct sigaction action{};
  action.sa_handler = tell;
  action.sa_flags = SA_NODEFER | SA_ONSTACK;
  for (std::size_t i = 0; i < kCrashes.size(); ++i) (void)::sigaction(kCrashes[i], &action, &before[i]);
}

}  // namespace rayelastic::python
