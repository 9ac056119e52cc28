#include "runtime_hooks/families/caching_allocators.hpp"

#include <string_view>

#include "runtime_hooks/ledger/reader.hpp"

namespace cuwarden::families {
namespace {

// PyTorch's, CuPy's pool, XLA's BFC.
bool is_caching_allocator(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  return file.starts_with("libc10_cuda") || file.starts_with("xla_") ||
         (path.find("/cupy/") != path.npos && file.starts_with("memory."));
}

}  // namespace

bool asked_by_caching_allocator(const ledger::Writer& ledger, GroupId id) noexcept {
  ledger::ReadError error;
  const auto reader = ledger::Reader::open(ledger.bytes(), error);
  const auto group = reader ? reader->group(id.value) : std::nullopt;
  const auto stack = group ? reader->stack(group->stack.value) : std::nullopt;
  if (!stack) return false;
  for (const ledger::Frame frame : stack->frames) {
    const auto module = reader->module_at(frame, stack->module_epoch);
    if (module && is_caching_allocator(module->path)) return true;
  }
  return false;
}

}  // namespace cuwarden::families
