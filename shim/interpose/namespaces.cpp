#include "shim/interpose/namespaces.hpp"

#include <atomic>
#include <cstddef>
#include <string>

#include "runtime_hooks/core/files/open_file.hpp"
#include "shim/support/loaded_objects.hpp"

namespace cuwarden::shim {
namespace {

constinit std::atomic<bool> dlmopen_called{false};

// Files named libcuda that are mapped in any namespace, with the number of times that each is
// loaded.
std::size_t mapped_drivers() {
  const Descriptor file = open_to_read("/proc/self/maps");
  if (!file) return 0;
  std::size_t count = 0;
  try {
    std::string line;
    char text[4096];
    for (ssize_t length; (length = file.read_some(text)) > 0;)
      for (ssize_t i = 0; i < length; ++i) {
        if (text[i] != '\n') {
          line.push_back(text[i]);
          continue;
        }
        // A library counts once, by the mapping that starts at offset 0 of its file.
        if (line.find("/libcuda.so") != std::string::npos &&
            line.find(" 00000000 ") != std::string::npos)
          ++count;
        line.clear();
      }
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
