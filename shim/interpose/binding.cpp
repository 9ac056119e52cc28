// Finds the functions that a module's calls go on to, in the loaded objects' symbol tables.
#include "shim/interpose/binding.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <string_view>

#include "shim/support/real_libc.hpp"

namespace cuwarden::shim {
namespace {

// True for a cudart as NVIDIA ships it, whose symbols have its version. A caller is bound to the
// version that it was linked with.
bool is_shared_runtime(const LoadedObject& object) {
  return object.soname().starts_with("libcudart");
}

// True for a cudart that is a shared library, or is linked into a library that exports its symbols.
// A wrapper exports only a few of them.
bool is_whole_runtime(const LoadedObject& object) {
  return object.find("__cudaRegisterFatBinary") != nullptr;
}

// Returns the cudart that belongs to a module: the module itself if it contains one, or the shared
// one that it needs. Converts to false if there is none.
LoadedObject runtime_of(const LoadedObject& caller) {
  LoadedObject found;
  if (!caller || is_whole_runtime(caller)) return caller;
  any_object_needed_by(caller, [&](const LoadedObject& object) {
    if (is_shared_runtime(object)) found = object;
    return static_cast<bool>(found);
  });
  return found;
}

template <class Function>
void fill_if_null(Function& slot, const LoadedObject& object, std::string_view name) {
  if (slot == nullptr) slot = reinterpret_cast<Function>(object.find(name));
}

void fill_missing(driver::RealRuntime& functions, const LoadedObject& object) {
#define RUNTIME(result, name, parameters, arguments) fill_if_null(functions.name, object, #name);
#include "runtime_hooks/driver/hooks.def"
}

bool is_inside(const LoadedObject& object, const void* function) {
  return object.contains(reinterpret_cast<std::uintptr_t>(function));
}

// Calls visit(object), until a call returns true, for each library that dlopen loaded and that is
// no CUDA library itself. If a caller finds no definition of the function that it called, one of
// these libraries has made the call for it: as its last instruction, a jump, which leaves no return
// address of its own.
template <class Visit>
bool any_opened_library(Visit visit) {
  std::size_t index = 0;
  return any_loaded_object([&](const LoadedObject& object) {
    return index++ >= detail::startup_object_count() && !object.is_shim() &&
           !is_whole_runtime(object) && !is_shared_runtime(object) &&
           !is_library(object.soname(), "libcuda.so") && visit(object);
  });
}

}  // namespace

// The question for the global scope takes the loader's lock, which another thread's dlopen may
// hold. So it is asked only if an opened library defines a CUDA function.
OpenedDefinitions opened_definitions(std::uintptr_t address) {
  OpenedDefinitions opened;
  bool runtime = false, driver = false;
  LoadedObject caller;
  with_loaded_objects_held([&] {
    any_opened_library([&](const LoadedObject& library) {
      const bool defines_runtime = library.find("cudaFree") != nullptr;
      const bool defines_driver = library.find("cuMemFree_v2") != nullptr;
      runtime = runtime || defines_runtime;
      driver = driver || defines_driver;
      if (library.contains(address)) {
        caller = library;
        opened.callers_runtime = defines_runtime;
        opened.callers_driver = defines_driver;
      }
      return false;
    });
  });
  // The module calls the shim's function, so it stays loaded.
  const auto look_up = [&](const char* name, bool is_defined, bool& is_callers,
                           const void*& global) {
    if (is_defined) global = real_libc().libc_dlsym(RTLD_NEXT, name);
    is_callers = is_callers && (global == nullptr || is_inside(caller, global));
  };
  look_up("cudaFree", runtime, opened.callers_runtime, opened.global_runtime);
  look_up("cuMemFree_v2", driver, opened.callers_driver, opened.global_driver);
  return opened;
}

RuntimeBinding runtime_binding(const LoadedObject& caller, const OpenedDefinitions& opened) {
  const bool defines = opened.callers_runtime;
  const LoadedObject runtime = runtime_of(caller);
  RuntimeBinding found;
  driver::RealRuntime &next = found.next, &bottom = found.bottom;
  if (runtime)
    fill_missing(bottom, runtime);
  else
    any_loaded_object([&](const LoadedObject& object) {
      if (!object.is_shim() && is_whole_runtime(object)) fill_missing(bottom, object);
      return false;
    });
  // A module that needs a shared cudart is bound to the symbols of that cudart's version.
  const bool versioned = runtime && is_shared_runtime(runtime);
  if (versioned && runtime.start() == caller.start()) fill_missing(next, runtime);
  any_startup_object_behind_shim([&](const LoadedObject& object) {
    const bool other_version =
        versioned && is_shared_runtime(object) && object.start() != runtime.start();
    if (!other_version) fill_missing(next, object);
    return false;
  });
  if (defines || (caller && is_whole_runtime(caller))) fill_missing(next, caller);
  if (caller && !is_whole_runtime(caller))
    any_object_needed_by(caller, [&](const LoadedObject& object) {
      fill_missing(next, object);
      return false;
    });
  if (next.cudaFree == nullptr)
    any_opened_library([&](const LoadedObject& library) {
      const bool is_meant =
          library.find("cudaFree") != nullptr &&
          (opened.global_runtime == nullptr || is_inside(library, opened.global_runtime));
      if (is_meant) fill_missing(next, library);
      return is_meant;
    });
#define RUNTIME(result, name, parameters, arguments) \
  if (next.name == nullptr) next.name = bottom.name; \
  if (defines && is_inside(caller, reinterpret_cast<void*>(next.name))) bottom.name = next.name;
#include "runtime_hooks/driver/hooks.def"
  return found;
}

LoadedObject driver_wrapper_for(const LoadedObject& caller, const OpenedDefinitions& opened) {
  const auto is_driver = [](const LoadedObject& object) {
    return is_library(object.soname(), "libcuda.so");
  };
  if (any_startup_object_behind_shim(is_driver)) return {};
  if (opened.callers_driver) return caller;
  LoadedObject found;
  if (caller && any_object_needed_by(caller, is_driver)) return found;
  any_opened_library([&](const LoadedObject& library) {
    const bool is_meant =
        library.find("cuMemFree_v2") != nullptr &&
        (opened.global_driver == nullptr || is_inside(library, opened.global_driver));
    if (is_meant) found = library;
    return is_meant;
  });
  return found;
}

void* runtime_version_function_for(const LoadedObject& caller) {
  constexpr std::string_view name = "cudaRuntimeGetVersion";
  const LoadedObject runtime = runtime_of(caller);
  void* found = runtime ? runtime.find(name) : nullptr;
  if (!runtime)
    any_loaded_object([&](const LoadedObject& object) {
      if (!object.is_shim() && is_whole_runtime(object)) found = object.find(name);
      return found != nullptr;
    });
  return found;
}

}  // namespace cuwarden::shim
