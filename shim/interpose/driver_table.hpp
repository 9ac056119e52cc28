// The functions of the real libcuda of this process, and the hooks (the shim's functions that stand
// in for them).
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/driver/hook_list.hpp"
#include "runtime_hooks/driver/real_functions.hpp"

namespace cuwarden::shim {

namespace detail {
// Tables with the addresses of the driver's functions. `functions`: libcuda's own, returned by
// real_driver(). `wrapped_functions`: those that the program would call without the shim, returned
// by next_driver(); some may be another library's wrappers.
extern constinit driver::RealDriver functions, wrapped_functions;
// True once `functions` and `wrapped_functions`, the tables of the driver's functions, are filled.
extern constinit std::atomic<bool> filled;
// Fills the tables `functions` and `wrapped_functions` with the addresses of the driver's
// functions, if a libcuda is loaded. Returns true if they are filled, now or by an earlier call.
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
// shim. Most are libcuda's own functions. A function is another library's if that library wraps it,
// was loaded at the start, and is searched after the shim; it may, for example, enforce a quota.
// All slots are null until libcuda is loaded.
inline const driver::RealDriver& next_driver() {
  if (!detail::filled.load(std::memory_order_acquire)) [[unlikely]]
    detail::find_driver();
  return detail::wrapped_functions;
}

// Returns true if the address lies between the lowest and the highest address of libcuda; false if
// no libcuda is loaded.
bool is_in_driver(std::uintptr_t address);

// Keeps libcuda loaded until the process ends, since cuwarden has stored addresses of its
// functions. Does nothing as long as real_driver() has found no libcuda. Takes the loader's lock,
// so it is called only before the program's dlclose, which takes that lock, too. Elsewhere a
// deadlock is possible: another thread may have the lock in dlopen, and the library's constructor
// may wait for this thread.
void keep_driver_loaded();

// Returns the hook for the function of libcuda at this address, as a pointer to give to the program
// after a lookup; null if the function has no hook or is not libcuda's. The key is the address,
// because cuGetProcAddress finds several versions of a function by one name.
void* hook_for(const void* real_function);

// True if this is a function of libcuda that has no row in hooks.def or known_functions.def. False
// for null, and for addresses outside libcuda.
bool is_unknown_function(const void* real_function);

// Returns the hook that the shim exports under exactly this name, such as cuMemAlloc_v2 or
// cudaMalloc: for a function of the driver or of the runtime. Null if there is none.
void* hook_named(std::string_view name);
// Returns the hook for the driver function of exactly this name, such as cuMemAlloc_v2. The hook
// goes on to libcuda's own function, never to another library's wrapper of it. Null if there is no
// such hook; always null for a function of the runtime.
void* looked_up_hook_named(std::string_view name);

// True if the name, such as cuMemAlloc_v3, is any version of a driver function that cuwarden needs
// to see called: one with a hook, or one that makes the device read or write memory. If a lookup
// gives the program a function of such a name that has no hook itself, cuwarden cannot record its
// calls.
bool is_version_of_a_hook(std::string_view name);

// The shim's exported hooks, with one slot for each row of hooks.def, in its order. Their calls go
// on to any wrapper that another library has for the function.
extern void* const exported_functions[driver::row_count];
// Hooks that lookups in libcuda (dlsym, cuGetProcAddress) give to the program, with one slot for
// each row of hooks.def, in its order. Their calls go on to libcuda's own function. Null for
// functions of the runtime.
extern void* const looked_up_functions[driver::row_count];

}  // namespace cuwarden::shim
