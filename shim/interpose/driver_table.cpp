#include "shim/interpose/driver_table.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>

#include "shim/support/loaded_objects.hpp"
#include "shim/support/real_libc.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {

constinit driver::RealDriver detail::functions{};
constinit driver::RealDriver detail::wrapped_functions{};
constinit std::atomic<bool> detail::filled{false};

namespace {

using detail::filled;
using detail::find_driver;
using detail::functions;
using detail::wrapped_functions;

// The real functions, by row; null for runtime rows.
constinit std::atomic<void*> by_row[driver::row_count]{};
// The addresses of libcuda's functions for which nothing is to be done: those of
// known_functions.def, and those that only cuwarden calls. Null for functions that this libcuda
// lacks.
constexpr std::string_view known_names[] = {
#define KNOWN(name) #name,
#include "runtime_hooks/driver/known_functions.def"
#define USE(result, name, parameters, arguments) #name,
#include "runtime_hooks/driver/hooks.def"
};
constinit std::atomic<const void*> known_functions[std::size(known_names)]{};
constinit std::atomic<std::uintptr_t> driver_start{0}, driver_end{0};
constinit std::atomic<bool> kept_loaded{false};

void* wrapped(std::string_view name, void* real) {
  void* found = nullptr;
  any_startup_object_behind_shim([&](const LoadedObject& object) {
    if (is_library(object.soname(), "libcuda.so")) return true;
    found = object.find(name);
    return found != nullptr;
  });
  return found != nullptr ? found : real;
}

void fill_from(const LoadedObject& driver) {
#define HOOKED(result, name, parameters, arguments)          \
  store_function(functions.name, driver.find(#name));        \
  by_row[static_cast<std::size_t>(driver::Row::name)].store( \
      reinterpret_cast<void*>(functions.name), std::memory_order_relaxed);
#define USE(result, name, parameters, arguments) store_function(functions.name, driver.find(#name));
#include "runtime_hooks/driver/hooks.def"
#define HOOKED(result, name, parameters, arguments) \
  store_function(wrapped_functions.name, wrapped(#name, reinterpret_cast<void*>(functions.name)));
#define USE(result, name, parameters, arguments) \
  store_function(wrapped_functions.name, reinterpret_cast<void*>(functions.name));
#include "runtime_hooks/driver/hooks.def"
  for (std::size_t i = 0; i < std::size(known_names); ++i)
    known_functions[i].store(driver.find(known_names[i]), std::memory_order_relaxed);
  driver_start.store(driver.start(), std::memory_order_relaxed);
  driver_end.store(driver.end(), std::memory_order_relaxed);
}

bool is_inside(std::uintptr_t address) {
  return address >= driver_start.load(std::memory_order_relaxed) &&
         address < driver_end.load(std::memory_order_relaxed);
}

// Returns the name by which programs ask cuGetProcAddress: "cuMemAlloc" for "cuMemAlloc_v2_ptsz".
std::string_view without_version(std::string_view name) {
  for (const std::string_view suffix : {"_ptsz", "_ptds"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  if (name.size() > 3 && name[name.size() - 3] == '_' && name[name.size() - 2] == 'v')
    name.remove_suffix(3);
  return name;
}

}  // namespace

bool detail::find_driver() {
  if (filled.load(std::memory_order_acquire)) return true;
  bool found = false;
  with_loaded_objects_held([&] {
    found = any_loaded_object([&](const LoadedObject& object) {
      if (!is_library(object.soname(), "libcuda.so")) return false;
      fill_from(object);
      return true;
    });
  });
  if (found) filled.store(true, std::memory_order_release);
  return found;
}

bool is_in_driver(std::uintptr_t address) { return find_driver() && is_inside(address); }

void keep_driver_loaded() {
  if (kept_loaded.load(std::memory_order_acquire) || !filled.load(std::memory_order_acquire))
    return;
  char path[path_limit] = "";
  any_loaded_object([&](const LoadedObject& object) {
    if (!is_inside(object.start()) || object.path().size() >= sizeof path) return false;
    std::memcpy(path, object.path().data(), object.path().size());
    return true;
  });
  if (path[0] == '\0') return;
  real_libc().dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  kept_loaded.store(true, std::memory_order_release);
}

void* hook_for(const void* real_function) {
  if (!is_in_driver(reinterpret_cast<std::uintptr_t>(real_function))) return nullptr;
  for (std::size_t row = 0; row < driver::row_count; ++row)
    if (by_row[row].load(std::memory_order_relaxed) == real_function)
      return looked_up_functions[row];
  return nullptr;
}

bool is_unknown_function(const void* real_function) {
  if (real_function == nullptr || !is_in_driver(reinterpret_cast<std::uintptr_t>(real_function)))
    return false;
  const auto is_it = [&](const auto& function) {
    return function.load(std::memory_order_relaxed) == real_function;
  };
  return std::ranges::none_of(by_row, is_it) && std::ranges::none_of(known_functions, is_it);
}

void* hook_named(std::string_view name) {
  for (std::size_t row = 0; row < driver::row_count; ++row)
    if (driver::row_names[row] == name) return exported_functions[row];
  return nullptr;
}

void* looked_up_hook_named(std::string_view name) {
  for (std::size_t row = 0; row < driver::row_count; ++row)
    if (driver::row_names[row] == name) return looked_up_functions[row];
  return nullptr;
}

// True for a later version of a hooked function, and for other functions that make the device read
// or write memory. A newer driver may have more such functions than hooks.def has rows.
bool is_version_of_a_hook(std::string_view name) {
  name = without_version(name);
  if (name != "cuLaunchHostFunc")
    for (const std::string_view begins :
         {"cuLaunch", "cuMemcpy", "cuMemset", "cuMemBatch", "cuStreamWriteValue",
          "cuStreamWaitValue", "cuStreamBatchMemOp", "cuGraphLaunch"})
      if (name.starts_with(begins)) return true;
  for (std::size_t row = 0; row < driver::row_count; ++row)
    if (looked_up_functions[row] != nullptr && without_version(driver::row_names[row]) == name)
      return true;
  return false;
}

}  // namespace cuwarden::shim
