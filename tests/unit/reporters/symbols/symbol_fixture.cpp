// A program for the symboliser's test, built position-independent, fixed and stripped. For a call
// that was inlined, it prints the address as an offset in the file, and the two source lines of the
// call.
#include <link.h>

#include <cstdint>
#include <cstdio>

namespace fixture {

struct Call {
  std::uint64_t address;
  int inner_line, outer_line;
};

__attribute__((noinline)) std::uint64_t return_address() {
  // Minus one: the address is inside the call instruction, as the ledger keeps it.
  return reinterpret_cast<std::uint64_t>(__builtin_return_address(0)) - 1;
}

// __LINE__ is in the same expression as the call, so that both are on one line.
__attribute__((always_inline)) inline Call inner(int outer_line) {
  const Call call{return_address(), __LINE__, outer_line};
  return call;
}

__attribute__((noinline)) Call outer() {
  const Call call = inner(__LINE__);
  return call;
}

}  // namespace fixture

int main() {
  std::uint64_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        *static_cast<std::uint64_t*>(data) = info->dlpi_addr;
        return 1;  // ends the loop: the program is listed first
      },
      &base);
  const fixture::Call call = fixture::outer();
  std::printf("%llu %d %d\n", static_cast<unsigned long long>(call.address - base), call.inner_line,
              call.outer_line);
  return 0;
}
