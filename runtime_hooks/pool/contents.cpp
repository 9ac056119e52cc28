#include "runtime_hooks/pool/contents.hpp"

#include <algorithm>
#include <new>
#include <vector>

namespace cuwarden::pool {
namespace {

using Bytes = std::vector<unsigned char>;

// Device memory is copied to the host in parts of this size.
constexpr std::uint64_t part_bytes = std::uint64_t{1} << 20;

bool read(const driver::RealDriver& real, Bytes& to, std::uint64_t address) {
  return real.cuMemcpyDtoH_v2(to.data(), address, to.size()) == CUDA_SUCCESS;
}

// Writes through `one`, and reads through both addresses.
Contents write_through(const driver::RealDriver& real, std::uint64_t one, std::uint64_t other,
                       std::uint64_t bytes, unsigned char value) {
  const Bytes written(bytes, value);
  Bytes found(bytes);
  if (real.cuMemcpyHtoD_v2(one, written.data(), written.size()) != CUDA_SUCCESS ||
      !read(real, found, other))
    return Contents::unknown;
  return found == written ? Contents::equal : Contents::different;
}

}  // namespace

Contents compare(const driver::RealDriver& real, std::uint64_t one, std::uint64_t other,
                 std::uint64_t bytes) noexcept try {
  if (real.cuMemcpyDtoH_v2 == nullptr) return Contents::unknown;
  for (std::uint64_t done = 0; done < bytes; done += part_bytes) {
    Bytes first(std::min(part_bytes, bytes - done)), second(first.size());
    if (!read(real, first, one + done) || !read(real, second, other + done))
      return Contents::unknown;
    if (first != second) return Contents::different;
  }
  return Contents::equal;
} catch (const std::bad_alloc&) {
  return Contents::unknown;
}

Contents write_and_compare(const driver::RealDriver& real, std::uint64_t one, std::uint64_t other,
                           std::uint64_t bytes) noexcept try {
  if (real.cuMemcpyDtoH_v2 == nullptr || real.cuMemcpyHtoD_v2 == nullptr) return Contents::unknown;
  constexpr unsigned char first_value = 0x5a, second_value = 0xc3;
  Bytes kept(bytes);
  if (!read(real, kept, one)) return Contents::unknown;
  Contents outcome = write_through(real, one, other, bytes, first_value);
  if (outcome == Contents::equal) outcome = write_through(real, other, one, bytes, second_value);
  return real.cuMemcpyHtoD_v2(one, kept.data(), kept.size()) == CUDA_SUCCESS ? outcome
                                                                             : Contents::unknown;
} catch (const std::bad_alloc&) {
  return Contents::unknown;
}

}  // namespace cuwarden::pool
