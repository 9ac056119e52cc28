#include "shim/process/debug_lines.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "runtime_hooks/hooks/call/hooked_call.hpp"
#include "shim/interpose/driver_table.hpp"
#include "shim/interpose/own_imports.hpp"
#include "shim/support/loaded_objects.hpp"
#include "shim/support/log.hpp"

namespace cuwarden::shim {
namespace {

// Returns the path of the libcuda that calls are passed on to; empty if none is loaded.
std::string driver_path() {
  const auto entry = reinterpret_cast<std::uintptr_t>(real_driver().cuInit);
  std::string path;
  if (entry == 0) return path;
  with_loaded_objects_held([&] {
    any_loaded_object([&](const LoadedObject& object) {
      if (!object.contains(entry)) return false;
      path = object.path();
      return true;
    });
  });
  return path;
}

}  // namespace

void say_what_recording_begins_with(const Settings& settings, std::string_view ledger,
                                    const std::string& report) {
  if (settings.log.level != LogLevel::debug) return;
  const std::uint16_t row = hooks::call_state.runtime_row;
  log_debug(formatted("the driver is {}", driver_path()));
  if (!imports_are_libcs_own())
    log_debug("libc was not found at the start: the shim's own calls may reach wrappers of libc");
  log_debug(formatted("recording from the first CUDA call on ({}, thread {})",
                      row == 0 ? "made to the driver" : driver::row_names[row - 1],
                      syscall(SYS_gettid)));
  log_debug(formatted("the ledger is {}", ledger.empty() ? "in memory" : ledger));
  log_debug(formatted("the report will be {}", report));
}

bool is_debug_wanted() noexcept {
  const char* const level = std::getenv("CUWARDEN_LOG");
  return level != nullptr && std::string_view(level).starts_with("debug");
}

void say_why_nothing_was_recorded() {
  const std::string driver = driver_path();
  log_debug(
      driver.empty()
          ? std::string("nothing was recorded: no libcuda.so.1 is loaded in this process")
          : formatted("nothing was recorded: {} is loaded, but no call to it was seen", driver));
}

}  // namespace cuwarden::shim
