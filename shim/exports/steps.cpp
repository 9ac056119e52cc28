#include "shim/exports/steps.hpp"

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/ledger/write/steps.hpp"
#include "shim/process/process.hpp"
#include "shim/support/steps_under_way.hpp"

namespace cuwarden::shim {
namespace {

// Returns the ledger if the process records, else null.
constexpr auto find_ledger = [] { return Process::get().ledger(); };

}  // namespace

// A process that calls no CUDA has no report.
void begin_step(std::string_view name) noexcept {
  const ErrnoGuard keep;
  if (!Process::get().enabled()) return;
  ledger::Writer* const ledger = Process::get().ledger();
  if (ledger != nullptr && name.empty())
    ledger->steps.begin(name);
  else
    steps_under_way.begin(Process::get().owner(), name, find_ledger);
}

void end_named_step() noexcept {
  const ErrnoGuard keep;
  if (!Process::get().enabled()) return;
  steps_under_way.end_name(Process::get().owner(), find_ledger);
}

}  // namespace cuwarden::shim

// The functions that cuwarden.h and the Python module find by their names.
extern "C" [[gnu::visibility("default")]] void cuwarden_1_step() noexcept {
  cuwarden::shim::begin_step();
}
extern "C" [[gnu::visibility("default")]] void cuwarden_1_named_step(const char* name) noexcept {
  if (name == nullptr || *name == '\0')
    cuwarden::shim::end_named_step();
  else
    cuwarden::shim::begin_step(name);
}
