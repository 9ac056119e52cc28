// Opens ledgers for reading. A ledger is the memory-mapped file in which a process records its
// allocations. That process may still change the file, or may be hostile. So the file is read only
// by ledger::Reader, which checks all contents. If the file shrinks while it is read, zeros are
// read.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime_hooks/core/files/open_file.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Installs a handler of SIGBUS: from then on, a read of a mapped file behind the end of the file
// gives zeros instead of ending the command. Called once, at the start of the command.
void zeros_where_files_shrink();

// True if the file at `path` begins with the magic number of ledgers; its other contents are not
// checked. False also if the file cannot be read, or if `path` is a symbolic link.
bool is_ledger(const std::string& path);

// Returns "it belongs to NAME", a part of an error message about a file. NAME is the user's name,
// or "user UID" if the user has no name.
std::string belongs_to(uid_t);

// A ledger's file that is open for reading, and mapped if it was opened by open(). The destructor
// closes and unmaps it.
class LedgerFile {
 public:
  // Reasons why a file could not be opened as a ledger.
  enum class Failure : std::uint8_t {
    none,        // the file was opened
    unreadable,  // the file does not exist, may not be read, or is not a regular file
    other_user,  // the file belongs to another user, and the caller asked for Kind::ours
    unfinished,  // the process that made the file has not completed its header
    no_ledger,   // the file is no ledger, is one of another version, or is damaged
  };
  // Files that open() and open_unread() accept.
  enum class Kind : std::uint8_t {
    any,   // a file of any user; symbolic links are not followed
    ours,  // a file of this process's effective user; symbolic links are not followed
    // A file of any user to which a link leads that the kernel makes, /proc/PID/map_files/RANGE.
    kernel_link,
  };
  // Opens and maps the ledger at `path`, and checks its header. On failure, returns null, sets
  // `error` to the reason in words, without the path, and sets *failure if `failure` is not null.
  // `kind`: the files to accept; Kind::ours if this process will write to a path that the ledger
  // contains.
  static std::unique_ptr<LedgerFile> open(const std::string& path, std::string& error,
                                          Failure* failure = nullptr, Kind kind = Kind::any);
  // Opens the file at `path` without reading its contents, so that the caller can lock and remove
  // it; reader() and is_original() must not be called. On failure, returns null, sets `error` to
  // the reason in words, without the path, and sets *failure if `failure` is not null. `kind`: the
  // files to accept.
  static std::unique_ptr<LedgerFile> open_unread(const std::string& path, std::string& error,
                                                 Failure* failure, Kind kind);
  LedgerFile(const LedgerFile&) = delete;
  LedgerFile& operator=(const LedgerFile&) = delete;
  ~LedgerFile();

  // Returns the path by which the ledger's file was opened.
  const std::string& path() const { return path_; }
  // Returns the reader of the ledger's contents, which lives as long as this object.
  const ledger::Reader& reader() const { return *reader_; }
  // Returns the inode number of the ledger's file.
  ino_t inode() const { return inode_; }
  // Returns the modification time that the ledger's file had when this object opened it, in
  // nanoseconds since 1970. It may be earlier than the last write: the recorded process writes
  // through a mapping of memory, which need not change the file's time.
  std::int64_t modified_realtime_ns() const { return modified_realtime_ns_; }

  // Locks the ledger's file (flock) until this object is destroyed, and returns true. Does not
  // wait: returns false if another process has the lock (then `error` is 0; usually it is the
  // recorded process or another cuwarden), or if locks do not work on this file system (then
  // `error` is an errno).
  bool lock(int& error) const;
  // True if this is the file that the recorded process made, false if it is a copy. The ledger
  // contains the device and inode numbers of the file that was made.
  bool is_original() const;
  // True if the ledger says which file the recorded process made, and this is another one. The
  // process may still write to the original.
  bool is_copy() const;
  // True if the file that is open here still lies at path() itself. False if it was removed,
  // renamed or replaced, also by a symbolic link to it, or if the path cannot be looked at.
  bool is_still_at_its_path() const;
  // Removes the ledger's file from its folder; does nothing if path() leads to another file or to
  // none.
  void remove() const;
  // Renames the damaged ledger within its folder, to cuwarden-damaged-ledger-..., so that searches
  // for ledgers do not find it any more. Returns the new path. Returns the old one if the file was
  // not renamed, as when its name does not begin with cuwarden-ledger-.
  std::string set_aside() const;

 private:
  LedgerFile() = default;
  std::string path_;       // path by which the ledger's file was opened
  Descriptor descriptor_;  // descriptor of the ledger's file, open for reading
  dev_t device_ = 0;       // device number (st_dev) of the ledger's file
  ino_t inode_ = 0;        // inode number of the ledger's file
  // Modification time of the ledger's file when it was opened, in ns since 1970.
  std::int64_t modified_realtime_ns_ = 0;
  // Address at which this process has mapped the ledger's file; null if the file is not mapped.
  void* start_ = nullptr;
  // bytes_: size of the ledger's file when it was opened. blocks_bytes_: bytes of disk space that
  // the file had when it was opened.
  std::size_t bytes_ = 0, blocks_bytes_ = 0;
  // Reads the mapping of the ledger's file; null if the file is not mapped.
  std::optional<ledger::Reader> reader_;
};

}  // namespace cuwarden
