#include "reporters/exports/page/packed_data.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace cuwarden {
namespace {

std::string base64(const std::vector<Bytef>& bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t three = 0;
    for (std::size_t i = 0; i < 3; ++i) three = three << 8 | (i < count ? bytes[at + i] : 0u);
    for (std::size_t i = 0; i < 4; ++i)
      text += i <= count ? digits[three >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

}  // namespace

std::string packed_data(std::string_view data) {
  uLongf size = compressBound(data.size());
  std::vector<Bytef> bytes(size);
  // Only a lack of memory can make this fail, because the buffer is large enough.
  if (compress2(bytes.data(), &size, reinterpret_cast<const Bytef*>(data.data()), data.size(),
                Z_BEST_COMPRESSION) != Z_OK)
    throw std::bad_alloc();
  bytes.resize(size);
  return base64(bytes);
}

}  // namespace cuwarden
