// The sparse file behind a ledger, or the anonymous memory that replaces it. The file is made once,
// within the process's limits, and mapped. Its descriptor is closed at once: the program may close
// or replace descriptors that are not its own. All functions preserve errno and never raise SIGXFSZ
// or SIGBUS.
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

// The arguments with which a ledger's file is made.
struct BackingRequest {
  std::span<const char* const> folders;  // folders for the file, tried in order
  const char* name;                      // file name, without a folder
  std::uint64_t largest_bytes;  // largest size of the file; 0: only the process's limits count
  std::size_t hooks;            // number of hooks, for which the hooks table gets rows
  bool without_populate;        // true: do not use MADV_POPULATE_WRITE, as before Linux 5.14
};

// A system call that the kernel refused when more of the ledger's file was to be used.
struct RefusedGrowth {
  GrowthOperation operation = GrowthOperation::none;  // none: nothing was refused so far
  int error = 0;                                      // errno of the call; 0: nothing was refused
};

// The mapping of one ledger: of its file or, without a file, of anonymous memory. Offsets count
// from the start of the mapping.
class BackingFile {
 public:
  // Makes the file in the first folder that works, and maps it; maps memory if none works. Only the
  // header is accessible then. Returns false if there is no memory either.
  bool create(const BackingRequest&) noexcept;

  // Returns true if the ledger has a file; false if it is in memory only, or remove() was called.
  bool in_file() const noexcept { return path_[0] != '\0'; }
  // Returns the absolute path of the file; empty if there is no file.
  const char* path() const noexcept { return path_; }
  // Returns true if the file has a lock (flock) that ends with the mapping, so that readers can
  // tell that the process lives.
  bool is_locked() const noexcept { return locked_; }
  // Return the device and inode of the ledger's file; 0 if there is no file.
  dev_t device() const noexcept { return in_file() ? device_ : 0; }
  ino_t inode() const noexcept { return in_file() ? inode_ : 0; }
  // Returns the start of the mapping.
  std::byte* base() const noexcept { return static_cast<std::byte*>(mapping_.data()); }
  // Returns the division of the mapping into regions.
  const Geometry& geometry() const noexcept { return geometry_; }

  // Makes [offset, offset + bytes) of the file accessible, and allocates its blocks on the disk, so
  // that no access can raise SIGBUS. Returns false if the kernel refuses (refused_growth()). Parts
  // that were not filled yet are inaccessible, so that an mlockall() of the program ignores them.
  bool fill(std::uint64_t offset, std::uint64_t bytes) noexcept;
  // Makes [offset, offset + bytes) accessible where the mapping is anonymous memory. Returns false
  // if the kernel refuses (refused_growth()).
  bool open_memory(std::uint64_t offset, std::uint64_t bytes) noexcept;
  // Makes a range accessible without allocating it, so that the kernel splits the mapping now. A
  // later fill() or open_memory() there works even if the process has no mappings left.
  void open_ahead(std::uint64_t offset, std::uint64_t bytes) noexcept {
    mapping_.open(offset, bytes);
  }
  // Maps anonymous memory over [offset, offset + bytes), which must be unused yet, for the rest of
  // a region that cannot grow in the file. open_memory() then makes it accessible. Returns false if
  // the kernel refuses: the range must not be touched then.
  bool replace_by_memory(std::uint64_t offset, std::uint64_t bytes) noexcept;
  // Unlinks the file, if its path still leads to it. The mapping stays.
  void remove() noexcept;
  // Returns the system call that the kernel refused last.
  RefusedGrowth refused_growth() const noexcept { return refused_growth_; }

 private:
  bool create_in(const char* folder, const BackingRequest&, std::uint64_t limit) noexcept;
  bool map_file(int fd, std::uint64_t limit, const BackingRequest&) noexcept;
  bool create_in_memory(const BackingRequest&, std::uint64_t limit) noexcept;
  bool has_room_on_disk(std::uint64_t bytes) const noexcept;
  bool fill_by_path(std::uint64_t offset, std::uint64_t bytes) noexcept;
  Descriptor open_again() const noexcept;
  // Stores the operation and errno for refused_growth(). Always returns false.
  bool refused(GrowthOperation) noexcept;

  Mapping mapping_;
  Geometry geometry_;
  RefusedGrowth refused_growth_;
  bool populate_unknown_ = false;  // true if the kernel does not know MADV_POPULATE_WRITE
  bool locked_ = false;            // is_locked()
  dev_t device_ = 0;
  ino_t inode_ = 0;
  char path_[PATH_MAX] = {};
};

}  // namespace cuwarden::ledger
