#include "shim/interpose/namespaces.hpp"

#include <atomic>
#include <cstddef>
#include <string>

#include "runtime_hooks/core/files/each_line.hpp"
#include "shim/support/loaded_objects.hpp"

namespace cuwarden::shim {
namespace {

constinit std::atomic<bool> dlmopen_called{false};

// Files named libcuda that are mapped in any namespace, with the number of times that each is
// loaded.
std::size_t mapped_drivers() {
  std::size_t count = 0;
  try {
    each_line_of("/proc/self/maps", [&](const std::string& line) {
      // A library counts once, by the mapping that starts at offset 0 of its file.
      if (line.find("/libcuda.so") != std::string::npos &&
          line.find(" 00000000 ") != std::string::npos)
        ++count;
    });
  } catch (...) {
    count = 0;  // without memory, no library is counted
  }
  return count;
}

}  // namespace

void note_dlmopen() noexcept { dlmopen_called.store(true, std::memory_order_relaxed); }
bool dlmopen_was_called() noexcept { return dlmopen_called.load(std::memory_order_relaxed); }

bool is_driver_out_of_sight() noexcept {
  std::size_t visible = 0;
  any_loaded_object([&](const LoadedObject& object) {
    if (is_library(object.soname(), "libcuda.so")) ++visible;
    return false;
  });
  return mapped_drivers() > visible;
}

}  // namespace cuwarden::shim
