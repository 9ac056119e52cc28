// Represents a third-party library: stripped, without debug information, with hidden functions. The
// test loads it and asks for addresses.
#include <cstdint>

namespace {
__attribute__((noinline)) std::uint64_t hidden(std::uint64_t* caller) {
  *caller = reinterpret_cast<std::uint64_t>(__builtin_return_address(0)) - 1;
  return reinterpret_cast<std::uint64_t>(&hidden) + 4;
}
}  // namespace

// Sets `exported_address` to an address inside this function. Returns one inside a hidden function.
extern "C" __attribute__((visibility("default"))) std::uint64_t vendor_open(
    std::uint64_t* exported_address) {
  const std::uint64_t inside = hidden(exported_address);
  return inside + (*exported_address == 0 ? 1 : 0);  // work after the call prevents a tail call
}
