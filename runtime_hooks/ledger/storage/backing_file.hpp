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
#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/ledger/format/geometry.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"

namespace cuwarden::ledger {

// The arguments with which a ledger's file is made.
struct BackingRequest {
  // Folders for the ledger's file, tried in order; null ones are skipped.
  std::span<const char* const> folders;
  // Name of the ledger's file without a folder. If a folder has such a file, .1, .2 and so on is
  // added.
  const char* name;
  // Largest size in bytes of the ledger's file, or of the memory in its stead. 0 and numbers above
  // default_total_bytes mean default_total_bytes. Limits of the process may be lower.
  std::uint64_t largest_bytes;
  std::size_t hooks;  // number of hooks, for which the hooks table gets rows
  // True: MADV_POPULATE_WRITE is not used, as if the kernel were older than Linux 5.14.
  bool without_populate;
};

// The step that failed when the ledger last could not grow, in its file or in memory.
struct RefusedGrowth {
  // The step that failed; `none`: no step has failed so far.
  GrowthOperation operation = GrowthOperation::none;
  int error = 0;  // errno of the failed step; 0: no step has failed so far
};

// The mapping of one ledger: of its file or, without a file, of anonymous memory. Offsets count
// from the start of the mapping.
class BackingFile {
 public:
  BackingFile(const BackingFile&) = delete;
  BackingFile& operator=(const BackingFile&) = delete;

  // Returns the absolute path of the ledger's file; empty if there is no file, or after remove().
  std::string_view path() const noexcept { return path_; }
  // Returns true if the file has a lock (flock) that lasts as long as the ledger's mapping. By this
  // lock, readers in other processes can tell that the recorded process lives.
  bool is_locked() const noexcept { return locked_; }
  // Returns the number of the device on which the ledger's file lies; 0 if there is no file, or
  // after remove().
  dev_t device() const noexcept { return in_file() ? device_ : 0; }
  // Returns the inode number of the ledger's file; 0 if there is no file, or after remove().
  ino_t inode() const noexcept { return in_file() ? inode_ : 0; }
  // Returns the ledger's whole mapping, for a Reader in this process. It includes those parts of
  // the ledger that are not in the file but in memory only. Pages of rows that no table has used
  // yet may be inaccessible.
  std::span<const std::byte> bytes() const noexcept { return {base(), geometry_.total_bytes}; }
  // Returns the division of the ledger's mapping into regions (tables, and heaps of bytes).
  const Geometry& geometry() const noexcept { return geometry_; }

  // Unlinks the ledger's file, unless its path leads to another file by now. The mapping stays
  // usable, and path() is empty from now on. A thread that calls path() meanwhile gets the path or
  // an empty text.
  void remove() noexcept;

 protected:
  BackingFile() = default;
  ~BackingFile() = default;

  // Returns true if the ledger has a file. False: the ledger is in memory only, or remove() was
  // called.
  bool in_file() const noexcept { return path_[0] != '\0'; }
  // Returns the start of the ledger's mapping, at which its header begins.
  std::byte* base() const noexcept { return static_cast<std::byte*>(mapping_.data()); }

  // Makes the ledger's file in the first folder of the request that works, and maps the file. Maps
  // anonymous memory instead if no folder works, or if RLIMIT_FSIZE would make the file smaller
  // than the memory, and smaller than smallest_useful_file_bytes. At first, only the header's pages
  // are accessible. Returns false if there is no memory either.
  bool create(const BackingRequest&) noexcept;
  // Makes [offset, offset + bytes) of the ledger's file accessible, and allocates its blocks on the
  // disk, so that no access can raise SIGBUS. On failure, or if the disk would be left too full for
  // the program's own files, returns false, with the reason in refused_growth(). Parts for which
  // neither fill() nor open_memory() was called are inaccessible, so that an mlockall() of the
  // program ignores them.
  bool fill(std::uint64_t offset, std::uint64_t bytes) noexcept;
  // Makes [offset, offset + bytes) of the ledger's mapping readable and writable; that part must be
  // anonymous memory. Returns false, with the reason in refused_growth(), if the kernel refuses.
  bool open_memory(std::uint64_t offset, std::uint64_t bytes) noexcept;
  // Makes [offset, offset + bytes) of the ledger's mapping accessible without allocating blocks or
  // memory. The kernel then splits the mapping now, so that a later fill() or open_memory() there
  // works even if the process may have no more mappings. A failure is ignored.
  void open_ahead(std::uint64_t offset, std::uint64_t bytes) noexcept {
    mapping_.open(offset, bytes);
  }
  // Maps inaccessible anonymous memory over [offset, offset + bytes) of the ledger's mapping, the
  // unused rest of a region (table) that cannot grow in the file. The caller then makes parts of it
  // accessible by open_memory(). Returns false, with the reason in refused_growth(), if the kernel
  // refuses: the range must then not be touched any more.
  bool replace_by_memory(std::uint64_t offset, std::uint64_t bytes) noexcept;
  // Returns the step that failed when the ledger last could not grow; `none` if no step has failed.
  RefusedGrowth refused_growth() const noexcept { return refused_growth_; }

 private:
  // Makes and maps the ledger's file in `folder`. `limit`: largest size of the file in bytes.
  // Returns false, and leaves no file, if the folder does not work.
  bool create_in(const char* folder, const BackingRequest&, std::uint64_t limit) noexcept;
  // Gives the open file `fd` its size, at most `limit` bytes, and maps it. Returns false on
  // failure.
  bool map_file(int fd, std::uint64_t limit, const BackingRequest&) noexcept;
  // Maps anonymous memory of at most `limit` bytes for the ledger; more, if not even the smallest
  // ledger fits into `limit`. Returns false if there is no memory.
  bool create_in_memory(const BackingRequest&, std::uint64_t limit) noexcept;
  // Returns true if the file system would have enough room left for the program's own files after
  // the ledger's file has taken `bytes` more. Also true if the room is not known. If the result is
  // false, errno is ENOSPC.
  bool has_room_on_disk(std::uint64_t bytes) const noexcept;
  // Opens the ledger's file again by its path, and allocates its blocks of [offset, offset +
  // bytes). Used if MADV_POPULATE_WRITE does not work: the kernel is older, or a seccomp filter
  // refuses the call. Returns false, with the reason in refused_growth(), on failure, or if the
  // path leads to another file by now.
  bool fill_by_path(std::uint64_t offset, std::uint64_t bytes) noexcept;
  // Opens the file at path(). Returns an empty Descriptor, with errno set, on failure, or if the
  // path leads to another file by now.
  Descriptor open_again() const noexcept;
  // Stores the operation and the present errno for refused_growth(). Always returns false.
  bool refused(GrowthOperation) noexcept;

  Mapping mapping_;                // the ledger: its file, or anonymous memory
  Geometry geometry_;              // division of the mapping into regions
  RefusedGrowth refused_growth_;   // the failed step that refused_growth() returns
  bool populate_unknown_ = false;  // true: MADV_POPULATE_WRITE is not used
  // True if the ledger's file has a lock (flock) that the mapping holds.
  bool locked_ = false;
  // Numbers of the ledger's file: of the device on which it lies, and of its inode. Valid only if
  // path_ is not empty.
  dev_t device_ = 0;
  ino_t inode_ = 0;
  char path_[PATH_MAX] = {};  // absolute path of the ledger's file; empty: there is none
};

}  // namespace cuwarden::ledger
