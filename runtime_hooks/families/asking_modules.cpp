#include "runtime_hooks/families/asking_modules.hpp"

#include <algorithm>

#include "runtime_hooks/core/caching_allocators.hpp"
#include "runtime_hooks/ledger/reader.hpp"

namespace cuwarden::families {
namespace {

enum class Answer { none, one, unknown };

// Whether it is so of any module on the stack, given by its path.
template <class Is>
Answer any_module(const ledger::Writer& ledger, GroupId id, const Is& is) noexcept {
  ledger::ReadError error;
  const auto reader = ledger::Reader::open(ledger.bytes(), error);
  const auto group = reader ? reader->group(id.value) : std::nullopt;
  const auto stack = group ? reader->stack(group->stack.value) : std::nullopt;
  if (!stack) return Answer::unknown;
  for (const ledger::Frame frame : stack->frames) {
    const auto module = reader->module_at(frame, stack->module_epoch);
    if (module && is(module->path)) return Answer::one;
  }
  return stack->truncated ? Answer::unknown : Answer::none;
}

}  // namespace

bool asked_by_caching_allocator(const ledger::Writer& ledger, GroupId id) noexcept {
  return any_module(ledger, id, asks_again_when_refused) == Answer::one;
}

bool asked_by_none_of(const ledger::Writer& ledger, GroupId id, std::string_view modules) noexcept {
  const auto is_listed = [modules](std::string_view path) {
    for (std::string_view rest = modules; !rest.empty();) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      if (end != 0 && path.find(rest.substr(0, end)) != path.npos) return true;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return false;
  };
  return any_module(ledger, id, is_listed) == Answer::none;
}

}  // namespace cuwarden::families
