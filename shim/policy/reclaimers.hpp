// The reclaimers that the program has registered, and the threads that they run in.
#pragma once

#include <string_view>

#include "runtime_hooks/rescue/reclaimers.hpp"

namespace cuwarden::shim {

// Registered from the program's first moment on, whether there is a recording or not.
extern constinit rescue::Reclaimers reclaimers;

// For rescue::Settings.
bool holds_lock(std::string_view name) noexcept;
// Says it in a line.
void say_reclaimer_failure(std::string_view reclaimer, rescue::Reclaimers::Failure) noexcept;

}  // namespace cuwarden::shim
