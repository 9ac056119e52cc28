#include "runtime_hooks/rescue/rungs/asking_modules.hpp"

#include <algorithm>

#include "runtime_hooks/core/caching_allocators.hpp"

namespace cuwarden::rescue {

bool asked_by_caching_allocator(const ledger::StackTable& stacks, StackId id) noexcept {
  bool found = false;
  stacks.all_modules(id, [&](std::string_view path) {
    found = asks_again_when_refused(path);
    return !found;
  });
  return found;
}

bool has_none_of(const ledger::StackTable& stacks, StackId id, std::string_view modules) noexcept {
  const auto is_listed = [modules](std::string_view path) {
    for (std::string_view rest = modules; !rest.empty();) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      if (end != 0 && path.find(rest.substr(0, end)) != path.npos) return true;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return false;
  };
  return stacks.all_modules(
      id, [&](std::string_view path) { return !path.empty() && !is_listed(path); });
}

}  // namespace cuwarden::rescue
