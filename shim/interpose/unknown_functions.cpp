#include "shim/interpose/unknown_functions.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/driver/unknown_calls.hpp"
#include "shim/interpose/driver_table.hpp"
#include "shim/support/loaded_objects.hpp"

namespace cuwarden::shim {
namespace {

// Number and size of the entries in unknown_entries.S.
constexpr std::uint32_t most_unknown = 256;
constexpr std::size_t entry_bytes = 16;
constexpr std::size_t longest_function_name = 64;

// A function that has the entry of equal index.
struct Unknown {
  std::atomic<bool> is_claimed{false};
  char name[longest_function_name] = "";  // cut to fit; written before `function` is
  std::atomic<void*> function{nullptr};   // null: the entry is not used yet
};
constinit Unknown unknown_calls[most_unknown];

// Name of a function that the program is linked with; room for one, since the first one counts.
constinit char linked_name[longest_function_name] = "";

bool is_name_of_a_function(std::string_view name) {
  return name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z';
}

// Calls visit(libcuda) if libcuda is loaded, and returns the result; false if it is not.
template <class Visit>
bool in_libcuda(const Visit& visit) {
  return any_loaded_object([&](const LoadedObject& object) {
    return is_library(object.soname(), "libcuda.so") && visit(object);
  });
}

}  // namespace

extern "C" const char cuwarden_unknown_entries[];  // in unknown_entries.S

// Called by the entry of this number before each call. Returns the function to jump to.
extern "C" [[gnu::visibility("hidden")]] void* cuwarden_before_unknown(std::uint32_t number) {
  const ErrnoGuard keep;
  driver::note_unknown_call(unknown_calls[number].name);
  return unknown_calls[number].function.load(std::memory_order_acquire);
}

void* entry_if_unknown(void* found, const char* name) {
  if (!is_name_of_a_function(name) || !is_unknown_function(found)) return found;
  for (std::uint32_t number = 0; number < most_unknown; ++number) {
    Unknown& entry = unknown_calls[number];
    if (!entry.is_claimed.exchange(true)) {
      std::strncpy(entry.name, name, longest_function_name - 1);
      entry.function.store(found, std::memory_order_release);
    }
    if (entry.function.load(std::memory_order_acquire) == found)
      return const_cast<char*>(cuwarden_unknown_entries + entry_bytes * number);
  }
  driver::note_unknown_call("a function beyond the number that can be watched");
  return found;
}

void note_if_unknown(const char* name) {
  if (!is_name_of_a_function(name)) return;
  const bool is_one = in_libcuda(
      [&](const LoadedObject& libcuda) { return is_unknown_function(libcuda.find(name)); });
  if (is_one) driver::note_unknown_call("a function that was looked up in the global scope");
}

bool is_linked_with_unknown() {
  static constinit std::atomic<std::uint64_t> loaded_when_seen{0};
  const std::uint64_t loaded = loads_so_far();
  if (loaded_when_seen.load(std::memory_order_relaxed) == loaded) return false;
  bool is_one = false;
  in_libcuda([&](const LoadedObject& libcuda) {
    return is_one = any_loaded_object([&](const LoadedObject& object) {
             return !object.is_shim() && object.start() != libcuda.start() &&
                    object.any_undefined([&](std::string_view name) {
                      if (!is_name_of_a_function(name) || !is_unknown_function(libcuda.find(name)))
                        return false;
                      name.copy(linked_name, longest_function_name - 1);
                      return true;
                    });
           });
  });
  if (is_one)
    driver::note_unknown_call(linked_name);
  else
    loaded_when_seen.store(loaded, std::memory_order_relaxed);
  return is_one;
}

}  // namespace cuwarden::shim
