#include "runtime_hooks/stacks/python/layout.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace cuwarden::stacks::python {
namespace {

// From 3.13 on, the interpreter describes itself at the start of _PyRuntime (_Py_DebugOffsets).
struct Description {
  char cookie[8];  // "xdebugpy"
  std::uint64_t version, free_threaded;
};
constexpr std::uint32_t first_described = 0x030d;

bool is_usual_build(const void* runtime) noexcept {
  Description described;
  std::memcpy(&described, runtime, sizeof described);
  return std::memcmp(described.cookie, "xdebugpy", sizeof described.cookie) == 0 &&
         described.free_threaded == 0;
}

}  // namespace

std::uint32_t version_of(const PythonSymbols& symbols) noexcept {
  if (symbols.version != nullptr) return static_cast<std::uint32_t>(*symbols.version >> 16);
  return symbols.has_iterator_send ? 0x030a : symbols.has_add_type ? 0x0309 : 0;
}

const Layout* layout_of(const PythonSymbols& symbols) noexcept {
  const std::uint32_t version = version_of(symbols);
  const auto* const found = std::ranges::find(layouts, version, &Layout::version);
  if (found == std::end(layouts)) return nullptr;
  if (version >= first_described &&
      (symbols.runtime == nullptr || !is_usual_build(symbols.runtime)))
    return nullptr;
  return found;
}

}  // namespace cuwarden::stacks::python
