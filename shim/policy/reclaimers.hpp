// The reclaimers that the program has registered, and the threads that they run in.
#pragma once

#include <string_view>

#include "runtime_hooks/rescue/reclaimers.hpp"

namespace cuwarden::shim {

// The reclaimers of the process. The program may register them at any time, also before anything is
// recorded.
extern constinit rescue::Reclaimers reclaimers;

// True if the calling thread holds the lock of this name. "python:gil", the lock of the Python
// interpreter, is the only known name; false for all others. A function for rescue::Settings.
bool holds_lock(std::string_view name) noexcept;
// Writes a line to the log: which reclaimer failed, and how.
void say_reclaimer_failure(std::string_view reclaimer, rescue::Reclaimers::Failure) noexcept;

}  // namespace cuwarden::shim
