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

// The driver's functions, found when libcuda is first seen. All slots are null until then.
inline const driver::RealDriver& real_driver() {
  if (!detail::filled.load(std::memory_order_acquire)) [[unlikely]]
    detail::find_driver();
  return detail::functions;
}
// Returns the functions that the program's calls would have reached without the shim: those of a
// library that was preloaded behind the shim and wraps some (a quota, say), and otherwise
// libcuda's.
inline const driver::RealDriver& next_driver() {
  if (!detail::filled.load(std::memory_order_acquire)) [[unlikely]]
    detail::find_driver();
  return detail::wrapped_functions;
}

// Returns true if the address lies inside libcuda.
bool is_in_driver(std::uintptr_t address);

// The addresses that we hold must stay good: libcuda, once it was found, is not unloaded any more.
// In practice it never is, but a program may try. To be called before any dlclose and nowhere else:
// it takes the loader's lock, as that does. A thread that finds libcuda may be one that is waited
// for by another, which runs a constructor and holds that lock.
void keep_driver_loaded();

// The hook for a real entry point of libcuda, by address: one name may stand for several ABIs.
// Null for an address that has no hook.
void* hook_for(const void* real_function);

// The exported hook of this exact name; null where the name is not ours.
void* hook_named(std::string_view name);
// The one of these two that leads to libcuda itself. Null for the runtime's names, too.
void* looked_up_hook_named(std::string_view name);

// Returns true if the name is that of a hooked function in some version. A pointer to such a
// function without a hook is a gap in what is recorded.
bool is_version_of_a_hook(std::string_view name);

// One entry a row of hooks.def, in order; filled by exports.cpp. A function of libcuda has two
// entries: the exported function, and the function that a lookup in libcuda is answered with.
extern void* const exported_functions[driver::row_count];
extern void* const looked_up_functions[driver::row_count];
// Index of the first runtime row; those before it are the driver's.
bool is_driver_row(std::size_t row);

}  // namespace cuwarden::shim
