#include "shim/driver_table.hpp"

#include <atomic>

#include "shim/loaded_objects.hpp"

namespace cuwarden::shim {
namespace {

constinit driver::RealDriver functions{};
// The same functions by row; null for runtime rows.
constinit std::atomic<void*> by_row[driver::row_count]{};
constinit std::atomic<std::uintptr_t> driver_start{0}, driver_end{0};
constinit std::atomic<bool> filled{false};

template <class Function>
void fill(Function& slot, const LoadedObject& driver, std::string_view name) {
  // Several threads may fill at once; all store the same.
  __atomic_store_n(reinterpret_cast<void**>(&slot), driver.find(name), __ATOMIC_RELAXED);
}

void fill_from(const LoadedObject& driver) {
#define HOOK(result, name, parameters, arguments)            \
  fill(functions.name, driver, #name);                       \
  by_row[static_cast<std::size_t>(driver::Row::name)].store( \
      reinterpret_cast<void*>(functions.name), std::memory_order_relaxed);
#define COUNT HOOK
#define SHIM HOOK
#define USE(result, name, parameters, arguments) fill(functions.name, driver, #name);
#include "runtime_hooks/driver/hooks.def"
  driver_start.store(driver.start(), std::memory_order_relaxed);
  driver_end.store(driver.end(), std::memory_order_relaxed);
  filled.store(true, std::memory_order_release);
}

bool find_driver() {
  if (filled.load(std::memory_order_acquire)) return true;
  LoadedObject driver;
  any_loaded_object([&](const LoadedObject& object) {
    if (!is_library(object.soname(), "libcuda.so")) return false;
    driver = object;
    return true;
  });
  if (driver) fill_from(driver);
  return static_cast<bool>(driver);
}

// "cuMemAlloc" of "cuMemAlloc_v2_ptsz": what cuGetProcAddress is asked for.
std::string_view without_version(std::string_view name) {
  for (const std::string_view suffix : {"_ptsz", "_ptds"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  if (name.size() > 3 && name[name.size() - 3] == '_' && name[name.size() - 2] == 'v')
    name.remove_suffix(3);
  return name;
}

constexpr bool driver_row[driver::row_count] = {
#define HOOK(result, name, parameters, arguments) true,
#define COUNT HOOK
#define SHIM HOOK
#define RUNTIME(result, name, parameters, arguments) false,
#include "runtime_hooks/driver/hooks.def"
};

}  // namespace

const driver::RealDriver& real_driver() {
  find_driver();
  return functions;
}

bool driver_is_loaded() { return find_driver(); }

bool is_in_driver(std::uintptr_t address) {
  return address >= driver_start.load(std::memory_order_relaxed) &&
         address < driver_end.load(std::memory_order_relaxed);
}

bool is_driver_row(std::size_t row) { return driver_row[row]; }

void* hook_for(const void* real_function) {
  if (real_function == nullptr || !find_driver()) return nullptr;
  if (!is_in_driver(reinterpret_cast<std::uintptr_t>(real_function))) return nullptr;
  for (std::size_t row = 0; row < driver::row_count; ++row)
    if (by_row[row].load(std::memory_order_relaxed) == real_function) return hook_functions[row];
  return nullptr;
}

void* hook_named(std::string_view name) {
  for (std::size_t row = 0; row < driver::row_count; ++row)
    if (driver::row_names[row] == name) return hook_functions[row];
  return nullptr;
}

bool is_version_of_a_hook(std::string_view name) {
  name = without_version(name);
  for (std::size_t row = 0; row < driver::row_count; ++row)
    if (driver_row[row] && without_version(driver::row_names[row]) == name) return true;
  return false;
}

}  // namespace cuwarden::shim
