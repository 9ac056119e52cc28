#include "runtime_hooks/rescue/asking_modules.hpp"

#include <algorithm>
#include <optional>

#include "runtime_hooks/core/caching_allocators.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden::rescue {
namespace {

std::optional<ledger::Reader> reader_of(const ledger::Writer& ledger) noexcept {
  ledger::ReadError error;
  return ledger::Reader::open(ledger.bytes(), error);
}

// Calls visit(path of the module) for each frame until it returns false; the path is empty where
// the module is not known. Returns false where a visit did, or where there is no such stack.
template <class Visit>
bool all_modules(const ledger::Reader& reader, StackId id, const Visit& visit) noexcept {
  const auto stack = reader.stack(id.value);
  if (!stack) return false;
  for (const ledger::Frame frame : stack->frames) {
    const auto module = reader.module_at(frame, stack->module_epoch);
    if (!visit(module ? module->path : std::string_view())) return false;
  }
  return true;
}

}  // namespace

bool asked_by_caching_allocator(const ledger::Writer& ledger, GroupId id) noexcept {
  const auto reader = reader_of(ledger);
  const auto group = reader ? reader->group(id.value) : std::nullopt;
  bool found = false;
  if (group)
    all_modules(*reader, group->stack, [&](std::string_view path) {
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
  const auto reader = reader_of(ledger);
  return reader && all_modules(*reader, id, [&](std::string_view path) {
           return !path.empty() && !is_listed(path);
         });
}

}  // namespace cuwarden::rescue
