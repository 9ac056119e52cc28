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

constinit RealLibc libc_functions{};
constinit std::atomic<bool> has_libc{false};

void* behind_the_shim(const char* name) {
  void* found = nullptr;
  any_startup_object_behind_shim([&](const LoadedObject& object) {
    found = object.find(name);
    return found != nullptr;
  });
  return found != nullptr ? found : function_in_libc(name);
}

}  // namespace

const RealLibc& real_libc() {
  if (has_libc.load(std::memory_order_acquire)) return libc_functions;
  store_function(libc_functions.dlsym, behind_the_shim("dlsym"));
  store_function(libc_functions.libc_dlsym, function_in_libc("dlsym"));
  store_function(libc_functions.dlvsym, behind_the_shim("dlvsym"));
  store_function(libc_functions.dlopen, behind_the_shim("dlopen"));
  store_function(libc_functions.dlmopen, behind_the_shim("dlmopen"));
  store_function(libc_functions.dlclose, behind_the_shim("dlclose"));
  store_function(libc_functions.dlerror, function_in_libc("dlerror"));
  store_function(libc_functions.syscall, behind_the_shim("syscall"));
  store_function(libc_functions.prctl, behind_the_shim("prctl"));
  store_function(libc_functions.exit, behind_the_shim("exit"));
  store_function(libc_functions._exit, behind_the_shim("_exit"));
  store_function(libc_functions._Exit, behind_the_shim("_Exit"));
  store_function(libc_functions.quick_exit, behind_the_shim("quick_exit"));
  store_function(libc_functions.abort, behind_the_shim("abort"));
  store_function(libc_functions.assert_fail, behind_the_shim("__assert_fail"));
  store_function(libc_functions.start_main, behind_the_shim("__libc_start_main"));
  store_function(libc_functions.pthread_getattr_np, function_in_libc("pthread_getattr_np"));
  store_function(libc_functions.pthread_attr_getstack, function_in_libc("pthread_attr_getstack"));
  store_function(libc_functions.pthread_attr_destroy, function_in_libc("pthread_attr_destroy"));
  has_libc.store(true, std::memory_order_release);
  return libc_functions;
}

}  // namespace cuwarden::shim
