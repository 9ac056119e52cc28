#include "shim/exports/steps.hpp"

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/ledger/write/steps.hpp"
#include "shim/process/process.hpp"
#include "shim/support/steps_under_way.hpp"

namespace cuwarden::shim {

// A process that calls no CUDA has no report.
void begin_step(std::string_view name) noexcept {
  const ErrnoGuard keep;
  if (!Process::get().enabled()) return;
  const pid_t owner = Process::get().owner();
  ledger::Writer* const ledger = Process::get().ledger();
  if (ledger != nullptr) ledger->steps.begin(name);
  if (ledger == nullptr || !name.empty()) steps_under_way.begin(owner, name, ledger != nullptr);
  if (ledger != nullptr) return;
  // Recording may have begun meanwhile.
  if (ledger::Writer* const made = Process::get().ledger()) steps_under_way.hand_over(owner, *made);
}

void end_named_step() noexcept {
  const ErrnoGuard keep;
  if (!Process::get().enabled()) return;
  if (ledger::Writer* const ledger = Process::get().ledger()) ledger->steps.end_name();
  steps_under_way.end_name(Process::get().owner());
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
