// Stands for a third-party library: no debug information, hidden visibility, stripped.
// Prints nothing; the test loads it and asks for addresses.
#include <cstdint>

namespace {
__attribute__((noinline)) std::uint64_t hidden(std::uint64_t* caller) {
  *caller = reinterpret_cast<std::uint64_t>(__builtin_return_address(0)) - 1;
  return reinterpret_cast<std::uint64_t>(&hidden) + 4;
}
}  // namespace

// In `exported_place`: an address inside the exported function; returns one inside a hidden one.
extern "C" __attribute__((visibility("default"))) std::uint64_t vendor_open(
    std::uint64_t* exported_place) {
  const std::uint64_t inside = hidden(exported_place);
  return inside + (*exported_place == 0 ? 1 : 0);  // no tail call
}
