// Compression in the format of gzip.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct z_stream_s;

namespace cuwarden {

// Compresses bytes that come piece by piece, so that only the compressed bytes lie in memory.
class Gzip {
 public:
  // Begins a compressed file. It has neither a name nor a time in it, so that equal content makes
  // equal files. Throws std::bad_alloc.
  Gzip();
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip();

  // Adds bytes to the content.
  void add(std::string_view bytes);
  // Returns the whole compressed file. To be called once, after the last call of add().
  std::string finish();

 private:
  // Compresses the bytes of waiting_. `flush`: Z_FINISH if they are the last ones, otherwise
  // Z_NO_FLUSH.
  void compress(int flush);

  // State of zlib's compression.
  std::unique_ptr<z_stream_s> stream_;
  std::string waiting_;     // bytes that were added and not yet compressed
  std::string compressed_;  // beginning of the compressed file, as far as it was made
};

}  // namespace cuwarden
