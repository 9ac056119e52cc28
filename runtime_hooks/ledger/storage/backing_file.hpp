// The sparse file behind a ledger, or the memory that replaces it. The file is made once, within
// the process's limits, and mapped. Its descriptor is closed at once, so that no change of
// descriptors by the program affects it. All functions preserve errno and never raise SIGXFSZ or
// SIGBUS.
#pragma once

#include <sys/types.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime_hooks/core/files/open_file.hpp"
#include "runtime_hooks/core/mapping.hpp"
#include "runtime_hooks/ledger/format/geometry.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"

namespace cuwarden::ledger {

// The wishes for a ledger's file.
struct BackingRequest {
  std::span<const char* const> folders;
  const char* name;  // file name, without a folder
  std::uint64_t largest_bytes;
  std::size_t hooks;
  bool without_populate;
};

// The last operation by which the file could not grow, and its errno; none and 0 if there is none.
struct RefusedGrowth {
  GrowthOperation operation = GrowthOperation::none;
  int error = 0;
};

class BackingFile {
 public:
  // Returns false only if there is not even memory.
  bool create(const BackingRequest&) noexcept;

  // True if the ledger is a file; false if it is in memory only.
  bool in_file() const noexcept { return path_[0] != '\0'; }
  const char* path() const noexcept { return path_; }
  // Returns true if the mapping keeps the file locked as long as it exists (Process::lock_held).
  bool is_locked() const noexcept { return locked_; }
  // Return the file's device and inode; 0 if the ledger is in memory.
  dev_t device() const noexcept { return in_file() ? device_ : 0; }
  ino_t inode() const noexcept { return in_file() ? inode_ : 0; }
  std::byte* base() const noexcept { return static_cast<std::byte*>(mapping_.data()); }
  const Geometry& geometry() const noexcept { return geometry_; }

  // fill() and open_memory() make [offset, offset + bytes) accessible, which was not before. Only
  // accessible bytes are locked in memory if the program calls mlockall(). fill() allocates the
  // bytes in the file first, so that no later fault can fail.
  bool fill(std::uint64_t offset, std::uint64_t bytes) noexcept;
  bool open_memory(std::uint64_t offset, std::uint64_t bytes) noexcept;
  // Prepares a range that is not accessible yet, so that a later fill() or open_memory() of it
  // needs no further mapping.
  void open_ahead(std::uint64_t offset, std::uint64_t bytes) noexcept {
    mapping_.open(offset, bytes);
  }
  // Replaces [offset, offset + bytes) of the file, which is unused yet, by memory; open_memory()
  // makes it accessible.
  bool replace_by_memory(std::uint64_t offset, std::uint64_t bytes) noexcept;
  void remove() noexcept;
  // Returns the operation that failed last, and its errno.
  RefusedGrowth refused_growth() const noexcept { return refused_growth_; }

 private:
  bool create_in(const char* folder, const BackingRequest&, std::uint64_t limit) noexcept;
  bool map_file(int fd, std::uint64_t limit, const BackingRequest&) noexcept;
  bool create_in_memory(const BackingRequest&, std::uint64_t limit) noexcept;
  bool fill_by_path(std::uint64_t offset, std::uint64_t bytes) noexcept;
  Descriptor open_again() const noexcept;
  bool refused(GrowthOperation) noexcept;  // notes the operation and errno; returns false

  Mapping mapping_;
  Geometry geometry_;
  RefusedGrowth refused_growth_;
  bool populate_unknown_ = false;
  bool locked_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  char path_[PATH_MAX] = {};
};

}  // namespace cuwarden::ledger
