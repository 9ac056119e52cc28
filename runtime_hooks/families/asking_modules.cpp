#include "runtime_hooks/families/asking_modules.hpp"

#include <algorithm>

#include "runtime_hooks/core/caching_allocators.hpp"
#include "runtime_hooks/ledger/reader.hpp"

namespace cuwarden::families {
namespace {

// Visits the path of each frame's module, empty where it is not known, until it returns false.
// Returns false where it did, or there is no such stack.
template <class Visit>
bool all_modules(const ledger::Writer& ledger, StackId id, const Visit& visit) noexcept {
  ledger::ReadError error;
  const auto reader = ledger::Reader::open(ledger.bytes(), error);
  const auto stack = reader ? reader->stack(id.value) : std::nullopt;
  if (!stack) return false;
  for (const ledger::Frame frame : stack->frames) {
    const auto module = reader->module_at(frame, stack->module_epoch);
    if (!visit(module ? module->path : std::string_view())) return false;
  }
  return true;
}

StackId stack_of(const ledger::Writer& ledger, GroupId id) noexcept {
  ledger::ReadError error;
  const auto reader = ledger::Reader::open(ledger.bytes(), error);
  const auto group = reader ? reader->group(id.value) : std::nullopt;
  return group ? group->stack : StackId{};
}

}  // namespace

bool asked_by_caching_allocator(const ledger::Writer& ledger, GroupId id) noexcept {
  bool found = false;
  all_modules(ledger, stack_of(ledger, id), [&](std::string_view path) {
    found = asks_again_when_refused(path);
    return !found;
  });
  return found;
}

bool has_none_of(const ledger::Writer& ledger, StackId id, std::string_view modules) noexcept {
  const auto is_listed = [modules](std::string_view path) {
    for (std::string_view rest = modules; !rest.empty();) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      if (end != 0 && path.find(rest.substr(0, end)) != path.npos) return true;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return false;
  };
  return all_modules(ledger, id,
                     [&](std::string_view path) { return !path.empty() && !is_listed(path); });
}

}  // namespace cuwarden::families
