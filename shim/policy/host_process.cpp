#include "shim/policy/host_process.hpp"

#include <pthread.h>

#include <algorithm>
#include <span>

#include "runtime_hooks/core/errno_guard.hpp"
#include "shim/interpose/unknown_functions.hpp"
#include "shim/probes/host_limits.hpp"
#include "shim/probes/python_interpreter.hpp"
#include "shim/support/held_signals.hpp"
#include "shim/support/loaded_objects.hpp"
#include "shim/support/log.hpp"
#include "shim/support/real_libc.hpp"

namespace cuwarden::shim {
namespace {

// Libraries that share device memory: MPI, UCX, NVSHMEM.
constexpr std::string_view that_share[] = {"libmpi.so", "libmpich.so", "libucp.so", "libuct.so",
                                           "libnvshmem_host.so"};
constexpr std::string_view that_reach[] = {
    "libibverbs.so",       "libcufile.so", "libgdrapi.so",  "libnvcuvid.so",
    "libnvidia-encode.so", "libfabric.so", "libnvoptix.so", "libnvidia-opticalflow.so"};

bool is_one_of(const LoadedObject& object, std::span<const std::string_view> stems) {
  return std::ranges::any_of(
      stems, [&](std::string_view stem) { return is_library(object.soname(), stem); });
}

// pthread_create() and pthread_detach(). Before glibc 2.34 they are in libpthread, which the
// program may load late; null until then.
struct ThreadFunctions {
  int (*create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  int (*detach)(pthread_t);
};
ThreadFunctions thread_functions() noexcept {
  return {reinterpret_cast<decltype(ThreadFunctions::create)>(function_in_libc("pthread_create")),
          reinterpret_cast<decltype(ThreadFunctions::detach)>(function_in_libc("pthread_detach"))};
}

}  // namespace

constinit ThisProcess this_process;
constinit rescue::Reclaimers reclaimers(this_process);

bool ThisProcess::start_thread(void* (*work)(void*), void* argument) noexcept {
  const ErrnoGuard keep;
  const ThreadFunctions functions = thread_functions();
  if (functions.create == nullptr || functions.detach == nullptr) return false;
  const HeldSignals held;  // the new thread inherits the mask for good
  pthread_t thread{};
  if (functions.create(&thread, nullptr, work, argument) != 0) return false;
  functions.detach(thread);
  return true;
}

bool ThisProcess::shares_memory() noexcept {
  return any_loaded_object(
      [](const LoadedObject& object) { return is_one_of(object, that_share); });
}

bool ThisProcess::reaches_memory() noexcept {
  return any_loaded_object([](const LoadedObject& object) {
    return is_one_of(object, that_share) || is_one_of(object, that_reach);
  });
}

bool ThisProcess::may_call_unknown() noexcept { return is_linked_with_unknown(); }

std::string libraries_that_reach_memory() {
  // No memory is allocated here: the loader's lock is held.
  char names[512];
  std::size_t length = 0;
  any_loaded_object([&](const LoadedObject& object) {
    if (!is_one_of(object, that_share) && !is_one_of(object, that_reach)) return false;
    for (const std::string_view part :
         {length == 0 ? std::string_view() : std::string_view(", "), object.soname()})
      length += part.copy(names + length, sizeof names - length);
    return false;
  });
  return {names, length};
}

bool ThisProcess::find_python(PythonSymbols& symbols) noexcept {
  return find_python_interpreter(symbols);
}

void ThisProcess::python_not_read(std::uint32_t version) noexcept try {
  log_warn(without_python_frames(version));
} catch (...) {
  // There was not enough memory for the message.
}

std::uint64_t ThisProcess::host_memory_left() noexcept { return shim::host_memory_left(); }

// Looked up each time, because Python may be loaded late and unloaded.
bool ThisProcess::holds_lock(std::string_view name) noexcept {
  using Check = int (*)();
  void* found = nullptr;
  if (name == "python:gil")
    any_loaded_object([&](const LoadedObject& object) {
      found = object.find("PyGILState_Check");
      return found != nullptr;
    });
  return found != nullptr && reinterpret_cast<Check>(found)() == 1;
}

}  // namespace cuwarden::shim
