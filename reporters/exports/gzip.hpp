// Compression in the format of gzip.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct z_stream_s;

namespace cuwarden {

// Compresses bytes that come piece by piece, so that only the compressed ones are in memory.
class Gzip {
 public:
  // Begins a compressed file without a name and a time, so that equal content makes equal files.
  Gzip();
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip();

  // Adds bytes of the content.
  void add(std::string_view bytes);
  // Returns the compressed file with all bytes that were added. To be called once; no bytes may be
  // added afterwards.
  std::string finish();

 private:
  // Compresses the bytes that are waiting. `flush`: Z_NO_FLUSH, or Z_FINISH for the last ones.
  void compress(int flush);

  std::unique_ptr<z_stream_s> stream_;
  std::string waiting_;     // bytes that were added, and are compressed together
  std::string compressed_;  // the compressed file so far
};

}  // namespace cuwarden
