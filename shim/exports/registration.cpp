// The functions of cuwarden.h about reclaimers, whose inline functions find these by name.
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime_hooks/core/clock.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "shim/policy/host_process.hpp"
#include "shim/process/process.hpp"
#include "shim/support/loaded_objects.hpp"
#include "shim/support/log.hpp"

namespace cuwarden::shim {
namespace {

// Every call stack contains the main program.
std::string file_name_of_library_at(const void* function) {
  const LoadedObject object = object_at(reinterpret_cast<std::uintptr_t>(function));
  const std::string_view path = object ? object.path() : std::string_view();
  return std::string(path.substr(path.rfind('/') + 1));
}

constexpr std::size_t longest_reclaimer_name = sizeof(rescue::Reclaimers::Entry::name) - 1;

int refuse(std::string_view name, std::string_view why) {
  std::string shown(name.substr(0, longest_reclaimer_name));
  for (char& letter : shown)
    if (static_cast<unsigned char>(letter) < ' ') letter = '?';
  log_warn(formatted("reclaimer {}: {}; it is not registered", shown, why));
  return 0;
}

// A forked child is recognised by the process that owns its memory, before its first CUDA call,
// too.
void note_process() noexcept {
  static constinit std::atomic<pid_t> known{0};
  const pid_t now = Process::get().owner(), before = known.exchange(now);
  if (before != 0 && before != now) reclaimers.forked();
}

}  // namespace
}  // namespace cuwarden::shim

extern "C" {

[[gnu::visibility("default")]] int cuwarden_1_register_reclaimer(
    const char* name, const char* modules, cuwarden::rescue::ReclaimFunction function,
    void* argument) noexcept try {
  using namespace cuwarden::shim;
  const cuwarden::ErrnoGuard keep;
  if (!Process::get().enabled()) return 0;
  note_process();
  if (name == nullptr || *name == '\0') return refuse("without a name", "a name is missing");
  if (function == nullptr) return refuse(name, "the function is null");
  std::string all = modules == nullptr ? "" : modules;
  if (const std::string own = file_name_of_library_at(reinterpret_cast<void*>(function));
      !own.empty())
    all += (all.empty() ? "" : ",") + own;
  if (std::string_view(name).size() > 63)
    return refuse(name, "its name is longer than 63 characters");
  if (all.size() > 255) return refuse(name, "its modules are longer than 255 characters");
  const int number = reclaimers.add(name, all, function, argument);
  return number != 0 ? number : refuse(name, formatted("there are {} already", reclaimers.limit));
} catch (...) {
  return 0;
}

[[gnu::visibility("default")]] int cuwarden_1_unregister_reclaimer(int number) noexcept {
  const cuwarden::ErrnoGuard keep;
  constexpr std::uint64_t patience_ns = 2'000'000'000;
  cuwarden::shim::note_process();
  const std::uint64_t deadline_ns = cuwarden::now_ns() + patience_ns;
  return cuwarden::shim::reclaimers.remove(number, deadline_ns) ? 0 : -1;
}

}  // extern "C"
