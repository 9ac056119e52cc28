// The only interposer of dlsym, dlvsym, dlopen, dlmopen and cuGetProcAddress: the real look-up
// answers first, and an answer that is a hooked entry point of libcuda is replaced by its hook.

#include <atomic>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/hooks/call/hooked_call.hpp"
#include "shim/interpose/caller_tables.hpp"
#include "shim/interpose/driver_table.hpp"
#include "shim/interpose/namespaces.hpp"
#include "shim/interpose/unknown_functions.hpp"
#include "shim/process/process.hpp"
#include "shim/support/loaded_objects.hpp"
#include "shim/support/real_libc.hpp"

namespace cuwarden::shim {
namespace {

// The next step of lookup_entry.S: it jumps to `target`, or returns `value` if target is null.
struct Next {
  void* target;
  void* value;
};
static_assert(sizeof(Next) == 16);  // returned in rax and rdx

constinit std::atomic<std::uint64_t> noticed_unloaded{0};

template <class Function>
void* code(Function* function) {
  return reinterpret_cast<void*>(function);
}

bool may_be_cuda(const char* name) { return name != nullptr && name[0] == 'c' && name[1] == 'u'; }

bool is_pseudo_handle(const void* handle) { return handle == RTLD_NEXT || handle == RTLD_DEFAULT; }

// Returns true if a look-up by the caller would find this function without the shim: in an object
// of the global scope, in one that the caller's module needs, or in one that was loaded together
// with a library that needs the module. Otherwise the shim's export would make CUDA appear in a
// program that has none.
bool is_visible(const char* name, std::uintptr_t caller) {
  bool visible = false;
  with_loaded_objects_held([&] {
    const auto defines = [&](const LoadedObject& object) {
      return !object.is_shim() && object.find(name) != nullptr;
    };
    // Objects that a dlopen made global lie behind these objects; libc's dlsym finds them.
    visible = any_startup_object_behind_shim(defines);
    const LoadedObject module = object_at(caller);
    if (!visible && module) visible = defines(module) || any_object_needed_by(module, defines);
    if (!visible && module && any_loaded_object(defines))
      visible = any_object_that_needs(module, [&](const LoadedObject& user) {
        return defines(user) || any_object_needed_by(user, defines);
      });
  });
  return visible || real_libc().libc_dlsym(RTLD_NEXT, name) != nullptr;
}

// Returns true if the object at this address is searched before the shim.
bool is_before_the_shim(std::uintptr_t address) {
  bool before = false;
  any_loaded_object([&](const LoadedObject& object) {
    before = !object.is_shim() && object.contains(address);
    return before || object.is_shim();
  });
  return before;
}

// Returns what a wrapper may call for the driver function that it has found behind itself: the hook
// that goes on to libcuda's own function, so that the call is recorded, or another wrapper.
void* behind_wrapper(void* found, const char* name) {
  return hook_for(found) != nullptr ? looked_up_hook_named(name) : found;
}

// Answers a module that asks for the next cuMemAlloc (RTLD_NEXT). For one before the shim, libc
// finds the shim's, so that the call is recorded, or a second wrapper's. A wrapper behind the shim,
// or one that dlopen has opened, was called by the shim, and gets a function that does not lead
// back to itself.
Next next_of_driver(void* real, const char* name, std::uintptr_t caller) {
  if (is_before_the_shim(caller)) return {real, nullptr};
  bool is_wrapper = false;
  void* found = nullptr;
  const auto take = [&](const LoadedObject& object) {
    found = object.find(name);
    return found != nullptr;
  };
  with_loaded_objects_held([&] {
    any_startup_object_behind_shim([&](const LoadedObject& object) {
      if (is_wrapper) return take(object);
      is_wrapper = object.contains(caller);
      return false;
    });
    const LoadedObject module = object_at(caller);
    if (is_wrapper || !module || module.find(name) == nullptr) return;
    is_wrapper = true;
    any_object_needed_by(module, take);
  });
  if (!is_wrapper) return {nullptr, hook_named(name)};
  return {nullptr, found != nullptr ? behind_wrapper(found, name) : looked_up_hook_named(name)};
}

// Returns true if the module at this address was opened by dlopen and defines the function itself.
bool is_opened_wrapper(const char* name, std::uintptr_t caller) {
  bool defines = false;
  std::size_t index = 0;
  any_loaded_object([&](const LoadedObject& object) {
    if (index++ < detail::startup_object_count() || !object.contains(caller)) return false;
    return defines = object.find(name) != nullptr;
  });
  return defines;
}

// RTLD_NEXT and RTLD_DEFAULT search from the calling object on, which libc finds by the return
// address. So lookup_entry.S jumps to libc's function instead of calling it. RTLD_DEFAULT then
// finds the shim's export if that comes first, as a linked call does.
Next pseudo_lookup(void* real, void* handle, const char* name, std::uintptr_t caller) {
  void* const ours = hook_named(name);
  if (ours == nullptr) {
    note_if_unknown(name);
    return {real, nullptr};
  }
  if (!is_visible(name, caller))
    // No object behind the shim has the name. The look-up fails as without the shim, but for the
    // object that dlerror() names: it is the shim, which has asked, and not the caller.
    return {nullptr, real_libc().libc_dlsym(RTLD_NEXT, name)};
  // A wrapper that asks for the next cudaMalloc means the cudart behind it, which calls the
  // driver's hooks. A wrapper that asks for the next cuMemAlloc would bypass the shim.
  const bool driver_function = !std::string_view(name).starts_with("cuda");
  if (driver_function && handle == RTLD_NEXT) return next_of_driver(real, name, caller);
  // A wrapper that finds CUDA in the global scope means CUDA's own function. The shim's would lead
  // back to the wrapper.
  if (handle == RTLD_DEFAULT && is_opened_wrapper(name, caller))
    if (void* const found = real_libc().libc_dlsym(RTLD_NEXT, name))
      return {nullptr, behind_wrapper(found, name)};
  return {real, nullptr};
}

// Another interposer of dlsym finds the next dlsym by version, as every interposer of dlsym must.
// The shim's own has no version, so the loader would pass it over.
void* own_lookup_behind(std::uintptr_t caller, const void* handle, std::string_view name) {
  if (handle != RTLD_NEXT || (name != "dlsym" && name != "dlvsym")) return nullptr;
  if (!is_before_the_shim(caller)) return nullptr;
  return name == "dlsym" ? code(dlsym) : code(dlvsym);
}

// Counts a look-up of a driver function that has no hook, if it makes the device read or write
// memory, or if another version of it has a hook.
void count_as_unhooked(const char* name) {
  if (is_version_of_a_hook(name)) Process::get().looked_up_unhooked(name);
}

// A handle of libcuda is a search for libcuda's own functions. In the global scope the shim's
// exports come before them.
Next lookup_by_driver(void* real, void* handle, const char* name, std::uintptr_t caller) {
  void* const ours = hook_named(name);
  if (ours == nullptr || handle == RTLD_NEXT) return {real, nullptr};
  const auto look_up = handle == RTLD_DEFAULT ? real_libc().libc_dlsym : real_libc().dlsym;
  if (look_up(handle, name) != ours) return {real, nullptr};
  void* found = nullptr;
  with_loaded_objects_held([&] {
    any_startup_object_behind_shim([&](const LoadedObject& object) {
      found = object.find(name);
      return found != nullptr;
    });
    if (found == nullptr) found = object_at(caller).find(name);
  });
  // If the driver has no such function, this look-up leaves its error text for dlerror().
  return {nullptr, found != nullptr ? found : real_libc().libc_dlsym(RTLD_NEXT, name)};
}

void* replaced(void* found, const char* name, std::uintptr_t caller) {
  if (found == nullptr) return nullptr;
  if (void* const hook = hook_for(found)) return hook;
  if (is_in_driver(reinterpret_cast<std::uintptr_t>(found))) count_as_unhooked(name);
  // A handle of the main program finds the shim's exports, too.
  if (found == hook_named(name) && !is_visible(name, caller))
    return real_libc().libc_dlsym(RTLD_NEXT, name);
  return entry_if_unknown(found, name);
}

// Looks up while nothing is recorded. The shim's exports are there all the same, and would make
// CUDA appear in a program that has none.
Next unrecorded_lookup(void* real, void* handle, const char* name, std::uintptr_t caller) {
  void* const ours = hook_named(name);
  const bool finds_ours =
      ours != nullptr && (is_pseudo_handle(handle) || real_libc().dlsym(handle, name) == ours);
  if (!finds_ours || is_visible(name, caller)) return {real, nullptr};
  return {nullptr, real_libc().libc_dlsym(RTLD_NEXT, name)};
}

}  // namespace

extern "C" {

[[gnu::visibility("hidden")]] Next cuwarden_before_dlsym(void* handle, const char* name,
                                                         std::uintptr_t caller) {
  const ErrnoGuard keep;
  void* const real = code(real_libc().dlsym);
  if (!may_be_cuda(name)) return {real, nullptr};
  if (!Process::get().enabled()) return unrecorded_lookup(real, handle, name, caller);
  if (is_in_driver(caller)) return lookup_by_driver(real, handle, name, caller);
  if (is_pseudo_handle(handle)) return pseudo_lookup(real, handle, name, caller);
  return {nullptr, replaced(real_libc().dlsym(handle, name), name, caller)};
}

[[gnu::visibility("hidden")]] Next cuwarden_before_dlvsym(void* handle, const char* name,
                                                          const char* version,
                                                          std::uintptr_t caller) {
  const ErrnoGuard keep;
  void* const real = code(real_libc().dlvsym);
  if (name != nullptr && name[0] == 'd' && Process::get().enabled())
    if (void* const ours = own_lookup_behind(caller, handle, name)) return {nullptr, ours};
  // The shim's exports have no version. With RTLD_NEXT or RTLD_DEFAULT, only the calling object
  // itself can search for a version.
  if (!may_be_cuda(name) || is_pseudo_handle(handle) || !Process::get().enabled() ||
      is_in_driver(caller))
    return {real, nullptr};
  return {nullptr, replaced(real_libc().dlvsym(handle, name, version), name, caller)};
}

// RTLD_DEEPBIND would put a library's own libc before our dlsym.
[[gnu::visibility("hidden")]] Next cuwarden_before_dlopen(const char*, int mode) {
  const ErrnoGuard keep;
  if ((mode & RTLD_DEEPBIND) != 0 && Process::get().drops_deepbind()) mode &= ~RTLD_DEEPBIND;
  return {code(real_libc().dlopen), reinterpret_cast<void*>(static_cast<std::intptr_t>(mode))};
}

[[gnu::visibility("hidden")]] Next cuwarden_before_dlmopen() {
  note_dlmopen();
  return {code(real_libc().dlmopen), nullptr};
}

[[gnu::visibility("default")]] int dlclose(void* handle) {
  {
    const ErrnoGuard keep;
    // The driver is looked up before any library is unloaded: later another thread may do so
    // while the driver is being unloaded.
    if (Process::get().enabled()) real_driver();
    keep_driver_loaded();
  }
  unloading_begins();
  const int result = real_libc().dlclose(handle);
  const ErrnoGuard keep;
  // Most calls of dlclose only count a reference down. The number of unloaded objects is stored
  // after the work is done, so until then every thread does that work.
  const std::uint64_t unloaded = unloaded_objects();
  const bool has_unloaded = unloaded != noticed_unloaded.load(std::memory_order_acquire);
  unloading_ends(has_unloaded);
  if (has_unloaded) {
    Process::get().modules_changed();
    noticed_unloaded.store(unloaded, std::memory_order_release);
  }
  return result;
}

}  // extern "C"

namespace {

// Replaces the pointer after the driver's own look-up, for every version and all flags: only the
// pointer tells which function it is.
CUresult hook_looked_up(CUresult result, const char* name, void** function) {
  if (result != CUDA_SUCCESS || function == nullptr || *function == nullptr || name == nullptr)
    return result;
  if (!Process::get().enabled()) return result;
  if (void* const hook = hook_for(*function)) {
    *function = hook;
  } else {
    count_as_unhooked(name);
    *function = entry_if_unknown(*function, name);
  }
  return result;
}

}  // namespace

CUresult cuGetProcAddress(hooks::HookedCall& call, const char* symbol, void** pfn, int cudaVersion,
                          cuuint64_t flags) {
  call.keeps_bases();
  return hook_looked_up(call.real().cuGetProcAddress(symbol, pfn, cudaVersion, flags), symbol, pfn);
}

CUresult cuGetProcAddress_v2(hooks::HookedCall& call, const char* symbol, void** pfn,
                             int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbolStatus) {
  call.keeps_bases();
  return hook_looked_up(
      call.real().cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, symbolStatus), symbol, pfn);
}

}  // namespace cuwarden::shim
