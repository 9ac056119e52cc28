// The functions of the real libcuda of this process, and the hooks (the shim's functions that stand
// in for them).
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime_hooks/driver/hook_list.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::shim {

namespace detail {
// The tables that real_driver() and next_driver() return.
extern constinit driver::RealDriver functions, wrapped_functions;
// True once both tables hold the addresses of libcuda's functions.
extern constinit std::atomic<bool> filled;
// Fills both tables if a libcuda is loaded. Returns true if they are filled.
bool find_driver();
}  // namespace detail

// Returns the table of libcuda's own functions, with a null slot for each function that this
// libcuda does not export. The first call after libcuda was loaded fills the table; before, all
// slots are null.
inline const driver::RealDriver& real_driver() {
  if (!detail::filled.load(std::memory_order_acquire)) [[unlikely]]
    detail::find_driver();
  return detail::functions;
}
// Returns the table of the functions that the program's calls of the driver would reach without the
// shim. They are libcuda's own functions. An exception are functions that another library, loaded
// at the start and searched after the shim, wraps, for example to enforce a quota. All slots are
// null until libcuda is loaded.
inline const driver::RealDriver& next_driver() {
  if (!detail::filled.load(std::memory_order_acquire)) [[unlikely]]
    detail::find_driver();
  return detail::wrapped_functions;
}

// Returns true if the address lies inside libcuda's mapping; false if no libcuda is loaded.
bool is_in_driver(std::uintptr_t address);

// Keeps libcuda loaded until the process ends, because real_driver() and next_driver() hold
// addresses inside it. Does nothing before one of them has found libcuda. Takes the loader's lock,
// so it is called only before the program's dlclose, which takes that lock, too. Elsewhere a
// deadlock is possible: another thread may have the lock in dlopen, and the library's constructor
// may wait for this thread.
void keep_driver_loaded();

// Returns the hook for the function of libcuda at this address, as a pointer to give to the program
// after a lookup; null if the function has no hook or is not libcuda's. The address is looked up,
// not a name, because one name of cuGetProcAddress stands for several versions of a function.
void* hook_for(const void* real_function);

// Returns the hook that the shim exports under exactly this name, of the driver or of the runtime;
// null if there is none.
void* hook_named(std::string_view name);
// Returns the hook of exactly this name that goes on to libcuda's own function, and never to
// another library's wrapper of it. Null if there is none, or if the name is a function of the
// runtime.
void* looked_up_hook_named(std::string_view name);

// True if the name, such as cuMemAlloc_v3, is any version of a hooked function of the driver. True
// also for versions of functions that make the device read or write memory. If a lookup gives the
// program such a function and it has no hook, cuwarden cannot record its calls.
bool is_version_of_a_hook(std::string_view name);

// Two tables of the hooks, each with one slot for each row of hooks.def, in its order; filled by
// exports.cpp. exported_functions: the shim's exported symbols, which go on to the functions of
// next_driver(). looked_up_functions: the pointers that lookups in libcuda (dlsym,
// cuGetProcAddress) give to the program, which go on to those of real_driver(); null for functions
// of the runtime.
extern void* const exported_functions[driver::row_count];
extern void* const looked_up_functions[driver::row_count];
// True if the row of hooks.def is a function of the driver (libcuda); false if it is one of the
// runtime (libcudart). `row`: index from 0 to below driver::row_count.
bool is_driver_row(std::size_t row);

}  // namespace cuwarden::shim
