#include "reporters/exports/gzip.hpp"

#include <zlib.h>

#include <new>

namespace cuwarden {
namespace {

// Pieces are often a few bytes long: a call of zlib for each would take most of the time.
constexpr std::size_t most_waiting = 64 * 1024;

}  // namespace

Gzip::Gzip() : stream_(std::make_unique<z_stream>()) {
  constexpr int gzip_header = 16, memory_level = 8;
  if (deflateInit2(stream_.get(), Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + gzip_header,
                   memory_level, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
}

Gzip::~Gzip() { deflateEnd(stream_.get()); }

void Gzip::add(std::string_view bytes) {
  // zlib counts in 32 bits.
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, most_waiting);
    waiting_ += piece;
    bytes.remove_prefix(piece.size());
    if (waiting_.size() >= most_waiting) compress(Z_NO_FLUSH);
  }
}

std::string Gzip::finish() {
  compress(Z_FINISH);
  return std::move(compressed_);
}

void Gzip::compress(int flush) {
  Bytef room[16 * 1024];
  stream_->next_in = reinterpret_cast<Bytef*>(waiting_.data());
  stream_->avail_in = static_cast<uInt>(waiting_.size());
  do {
    stream_->next_out = room;
    stream_->avail_out = sizeof room;
    deflate(stream_.get(), flush);
    compressed_.append(reinterpret_cast<const char*>(room), sizeof room - stream_->avail_out);
  } while (stream_->avail_out == 0);
  waiting_.clear();
}

}  // namespace cuwarden
