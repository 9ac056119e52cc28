#include "shim/support/real_libc.hpp"

#include <atomic>

#include "shim/support/loaded_objects.hpp"

namespace cuwarden::shim {

void* function_in_libc(const char* name) {
  void* found = nullptr;
  any_loaded_object([&](const LoadedObject& object) {
    if (is_library(object.soname(), "libc.so") || is_library(object.soname(), "libdl.so") ||
        is_library(object.soname(), "libpthread.so"))
      found = object.find(name);
    return found != nullptr;
  });
  return found;
}

namespace {

constinit RealLibc functions{};
constinit std::atomic<bool> filled{false};

void* behind_the_shim(const char* name) {
  void* found = nullptr;
  any_startup_object_behind_shim([&](const LoadedObject& object) {
    found = object.find(name);
    return found != nullptr;
  });
  return found != nullptr ? found : function_in_libc(name);
}

template <class Function>
void fill(Function& slot, void* found) {
  // Several threads may fill the table at once; all store the same values.
  __atomic_store_n(reinterpret_cast<void**>(&slot), found, __ATOMIC_RELAXED);
}

}  // namespace

const RealLibc& real_libc() {
  if (filled.load(std::memory_order_acquire)) return functions;
  fill(functions.dlsym, behind_the_shim("dlsym"));
  fill(functions.libc_dlsym, function_in_libc("dlsym"));
  fill(functions.dlvsym, behind_the_shim("dlvsym"));
  fill(functions.dlopen, behind_the_shim("dlopen"));
  fill(functions.dlmopen, behind_the_shim("dlmopen"));
  fill(functions.dlclose, behind_the_shim("dlclose"));
  fill(functions.dlerror, function_in_libc("dlerror"));
  fill(functions.syscall, behind_the_shim("syscall"));
  fill(functions.prctl, behind_the_shim("prctl"));
  fill(functions.exit, behind_the_shim("exit"));
  fill(functions._exit, behind_the_shim("_exit"));
  fill(functions._Exit, behind_the_shim("_Exit"));
  fill(functions.quick_exit, behind_the_shim("quick_exit"));
  fill(functions.abort, behind_the_shim("abort"));
  fill(functions.assert_fail, behind_the_shim("__assert_fail"));
  fill(functions.start_main, behind_the_shim("__libc_start_main"));
  fill(functions.pthread_getattr_np, function_in_libc("pthread_getattr_np"));
  fill(functions.pthread_attr_getstack, function_in_libc("pthread_attr_getstack"));
  fill(functions.pthread_attr_destroy, function_in_libc("pthread_attr_destroy"));
  filled.store(true, std::memory_order_release);
  return functions;
}

}  // namespace cuwarden::shim
