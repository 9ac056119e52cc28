#include "shim/real_libc.hpp"

#include <atomic>

#include "shim/loaded_objects.hpp"

namespace cuwarden::shim {
namespace {

constinit RealLibc functions{};
constinit std::atomic<bool> filled{false};

template <class Function>
void fill(Function& slot, const char* name, const LoadedObject& libc, const LoadedObject& libdl) {
  void* found = libc.find(name);
  if (found == nullptr) found = libdl.find(name);
  // Several threads may fill at once; all store the same.
  __atomic_store_n(reinterpret_cast<void**>(&slot), found, __ATOMIC_RELAXED);
}

}  // namespace

const RealLibc& real_libc() {
  if (filled.load(std::memory_order_acquire)) return functions;
  LoadedObject libc, libdl;
  any_loaded_object([&](const LoadedObject& object) {
    if (is_library(object.soname(), "libc.so")) libc = object;
    if (is_library(object.soname(), "libdl.so")) libdl = object;
    return false;
  });
  fill(functions.dlsym, "dlsym", libc, libdl);
  fill(functions.dlvsym, "dlvsym", libc, libdl);
  fill(functions.dlopen, "dlopen", libc, libdl);
  fill(functions.dlmopen, "dlmopen", libc, libdl);
  fill(functions.dlclose, "dlclose", libc, libdl);
  fill(functions._exit, "_exit", libc, libdl);
  fill(functions._Exit, "_Exit", libc, libdl);
  fill(functions.quick_exit, "quick_exit", libc, libdl);
  fill(functions.abort, "abort", libc, libdl);
  fill(functions.assert_fail, "__assert_fail", libc, libdl);
  filled.store(true, std::memory_order_release);
  return functions;
}

}  // namespace cuwarden::shim
