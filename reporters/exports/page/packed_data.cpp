#include "reporters/exports/page/packed_data.hpp"

#include <zlib.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
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

// Compresses the data to its end, and adds the result to `bytes`. `stream`: ready to compress.
// Throws std::bad_alloc if zlib fails.
void compress(z_stream& stream, std::string_view data, Told told, std::vector<Bytef>& bytes) {
  const auto* next = reinterpret_cast<const Bytef*>(data.data());
  std::size_t left = data.size();
  Bytef room[16 * 1024];
  told(0, data.size());
  for (int result = Z_OK; result == Z_OK;) {
    // zlib counts in 32 bits. Pieces of input as large as possible give the same bytes as
    // compress2().
    if (stream.avail_in == 0) {
      stream.next_in = const_cast<Bytef*>(next);
      stream.avail_in = static_cast<uInt>(std::min<std::size_t>(left, UINT_MAX));
      next += stream.avail_in;
      left -= stream.avail_in;
    }
    stream.next_out = room;
    stream.avail_out = sizeof room;
    result = deflate(&stream, left == 0 ? Z_FINISH : Z_NO_FLUSH);
    bytes.insert(bytes.end(), room, stream.next_out);
    if (result != Z_OK && result != Z_STREAM_END) throw std::bad_alloc();
    told(data.size() - left - stream.avail_in, data.size());
  }
}

}  // namespace

std::string packed_data(std::string_view data, Told told) {
  z_stream stream{};
  if (deflateInit(&stream, Z_BEST_COMPRESSION) != Z_OK) throw std::bad_alloc();
  std::vector<Bytef> bytes;
  {
    const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, deflateEnd);
    compress(stream, data, told, bytes);
  }
  return base64(bytes);
}

}  // namespace cuwarden
