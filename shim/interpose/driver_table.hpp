// The real libcuda of this process, and the way from its entry points to our hooks.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime_hooks/driver/hook_list.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::shim {

namespace detail {
extern constinit driver::RealDriver functions, wrapped_functions;
extern constinit std::atomic<bool> filled;
bool find_driver();
}  // namespace detail

// Returns libcuda's own functions. The first call after libcuda was loaded finds them; all slots
// are null until then.
inline const driver::RealDriver& real_driver() {
  if (!detail::filled.load(std::memory_order_acquire)) [[unlikely]]
    detail::find_driver();
  return detail::functions;
}
// Returns the functions that the program's calls would reach without the shim. They are libcuda's
// own, except those that a library preloaded behind the shim wraps, for example to enforce a quota.
inline const driver::RealDriver& next_driver() {
  if (!detail::filled.load(std::memory_order_acquire)) [[unlikely]]
    detail::find_driver();
  return detail::wrapped_functions;
}

// Returns true if the address lies inside libcuda.
bool is_in_driver(std::uintptr_t address);

// Keeps libcuda loaded from now on, because the tables hold addresses inside it; does nothing
// before libcuda was found. Takes the loader's lock, so it is called before dlclose only, which
// takes that lock, too. A thread that finds libcuda must not take it: another thread may hold it
// while it runs a constructor that waits for the first one.
void keep_driver_loaded();

// Returns the hook for a real function of libcuda; null if the function has no hook. The address
// decides, because one name may stand for several ABIs.
void* hook_for(const void* real_function);

// Returns the shim's exported function of exactly this name; null if it exports none.
void* hook_named(std::string_view name);
// Returns the hook of exactly this name that calls libcuda itself, and no wrapper behind the shim;
// null if there is none, or if it is a function of the runtime.
void* looked_up_hook_named(std::string_view name);

// True if the name is some version of a hooked function, or of a function that has the device do
// something with memory. A pointer to such a function without a hook is a gap in the records.
bool is_version_of_a_hook(std::string_view name);

// The hooks, one for each row of hooks.def, in its order; filled by exports.cpp.
// exported_functions: the shim's exported symbols, which call next_driver(). looked_up_functions:
// the answers to lookups in libcuda, which call real_driver(); null for the runtime's rows.
extern void* const exported_functions[driver::row_count];
extern void* const looked_up_functions[driver::row_count];
// True if the row of hooks.def, counted from 0, is a function of the driver; false for the
// runtime's.
bool is_driver_row(std::size_t row);

}  // namespace cuwarden::shim
