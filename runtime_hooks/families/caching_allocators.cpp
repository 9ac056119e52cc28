#include "runtime_hooks/families/caching_allocators.hpp"

#include "runtime_hooks/core/caching_allocators.hpp"
#include "runtime_hooks/ledger/reader.hpp"

namespace cuwarden::families {
bool asked_by_caching_allocator(const ledger::Writer& ledger, GroupId id) noexcept {
  ledger::ReadError error;
  const auto reader = ledger::Reader::open(ledger.bytes(), error);
  const auto group = reader ? reader->group(id.value) : std::nullopt;
  const auto stack = group ? reader->stack(group->stack.value) : std::nullopt;
  if (!stack) return false;
  for (const ledger::Frame frame : stack->frames) {
    const auto module = reader->module_at(frame, stack->module_epoch);
    if (module && asks_again_when_refused(module->path)) return true;
  }
  return false;
}

}  // namespace cuwarden::families
