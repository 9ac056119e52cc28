// Names of signals. A function that gives them without a lock and a translation is in glibc only
// since 2.32.
#pragma once

#include <csignal>
#include <string>

namespace cuwarden {

// Returns a text about a signal's number, such as "9 (SIGKILL)"; the number alone if it is none of
// the usual signals.
inline std::string numbered_signal(int signal) {
  struct Name {
    int signal;
    const char* text;
  };
  constexpr Name names[] = {{SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},
                            {SIGILL, "SIGILL"},   {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},
                            {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"},
                            {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
                            {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"},
                            {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"}};
  for (const Name& name : names) {
    if (name.signal == signal) return std::to_string(signal) + " (" + name.text + ")";
  }
  return std::to_string(signal);
}

}  // namespace cuwarden
