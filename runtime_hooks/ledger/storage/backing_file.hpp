// The sparse file behind a ledger, or the memory that stands in for it. Made once, within the
// process's limits, mapped, and its descriptor closed: nothing that the host does with descriptors
// reaches it. Everything here preserves errno and never raises SIGXFSZ or SIGBUS.
#pragma once

#include <sys/types.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime_hooks/core/mapping.hpp"
#include "runtime_hooks/core/open_file.hpp"
#include "runtime_hooks/ledger/format/geometry.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"

namespace cuwarden::ledger {

struct BackingRequest {
  std::span<const char* const> folders;
  const char* name;  // of the file, without a folder
  std::uint64_t largest_bytes;
  std::size_t hooks;
  bool without_populate;
};

struct RefusedGrowth {
  GrowthOperation operation = GrowthOperation::none;
  int error = 0;
};

class BackingFile {
 public:
  // False only when not even memory can be had.
  bool create(const BackingRequest&) noexcept;

  bool in_file() const noexcept { return path_[0] != '\0'; }
  const char* path() const noexcept { return path_; }
  // Whether the mapping keeps the file locked for as long as it is there (Process::lock_held).
  bool is_locked() const noexcept { return locked_; }
  // Of the file; 0 in memory.
  dev_t device() const noexcept { return in_file() ? device_ : 0; }
  ino_t inode() const noexcept { return in_file() ? inode_ : 0; }
  std::byte* base() const noexcept { return static_cast<std::byte*>(mapping_.data()); }
  const Geometry& geometry() const noexcept { return geometry_; }

  // Both make [offset, offset + bytes) accessible, which was not before; that much and no more is
  // there for an mlockall to fault in. The first: in the file, without a fault that could fail.
  bool fill(std::uint64_t offset, std::uint64_t bytes) noexcept;
  bool open_memory(std::uint64_t offset, std::uint64_t bytes) noexcept;
  // Lets a later fill() or open_memory() that begins here take no further mapping. Nothing is there
  // yet.
  void open_ahead(std::uint64_t offset, std::uint64_t bytes) noexcept {
    mapping_.open(offset, bytes);
  }
  // Puts memory in the place of [offset, offset + bytes), which nobody has touched yet;
  // open_memory() makes it accessible.
  bool replace_by_memory(std::uint64_t offset, std::uint64_t bytes) noexcept;
  void remove() noexcept;
  // Of the last step that failed.
  RefusedGrowth refused_growth() const noexcept { return refused_growth_; }

 private:
  bool create_in(const char* folder, const BackingRequest&, std::uint64_t limit) noexcept;
  bool map_file(int fd, std::uint64_t limit, const BackingRequest&) noexcept;
  bool create_in_memory(const BackingRequest&, std::uint64_t limit) noexcept;
  bool fill_by_path(std::uint64_t offset, std::uint64_t bytes) noexcept;
  Descriptor open_again() const noexcept;
  bool refused(GrowthOperation) noexcept;  // false; errno says why

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
