// A ledger that is opened for reading: checked to be a plain file, mapped, and closed again by the
// destructor. Its writer may still change it, or may be hostile. So only ledger::Reader reads it,
// and if the file shrinks meanwhile, zeros are read (zeros_where_files_shrink).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime_hooks/core/files/open_file.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// To be called once, at the start of the command. Afterwards, reading a mapped file that was cut
// short gives zeros instead of ending the command by SIGBUS.
void zeros_where_files_shrink();

// True if the file begins as a ledger does.
bool is_ledger(const std::string& path);

std::string belongs_to(uid_t);  // returns "it belongs to NAME"

class LedgerFile {
 public:
  enum class Failure : std::uint8_t {
    none,
    unreadable,  // it does not exist, may not be read, or is not a plain file
    other_user,  // it belongs to another user, and Kind::ours was asked for
    unfinished,  // its header is not complete
    no_ledger,   // it is another kind of file, has another version, or is damaged
  };
  enum class Kind : std::uint8_t {
    any,          // a file of any user; symbolic links are not followed
    ours,         // a file of this process's user; symbolic links are not followed
    kernel_link,  // a link that the kernel made, in /proc
  };
  // Opens a ledger and checks its header. On failure, returns null and sets `error` to the reason,
  // without the path. Kind::ours is needed if what the file says is done with this process's
  // rights.
  static std::unique_ptr<LedgerFile> open(const std::string& path, std::string& error,
                                          Failure* failure = nullptr, Kind kind = Kind::any);
  // Opens a file without looking at its contents, in order to lock and remove it. On failure as
  // open().
  static std::unique_ptr<LedgerFile> open_unread(const std::string& path, std::string& error,
                                                 Failure* failure, Kind kind);
  LedgerFile(const LedgerFile&) = delete;
  LedgerFile& operator=(const LedgerFile&) = delete;
  ~LedgerFile();

  const std::string& path() const { return path_; }
  const ledger::Reader& reader() const { return *reader_; }
  ino_t inode() const { return inode_; }
  // Time of the file's last change, in nanoseconds since 1970. Writes through a mapping may not
  // count.
  std::int64_t modified_realtime_ns() const { return modified_realtime_ns_; }

  // Locks the file until this object is destroyed. Returns false if that fails: `error` is 0 if the
  // writing process or another cuwarden holds the lock, or an errno if locks do not work here.
  bool lock(int& error) const;
  // Returns true if this is the file that its process made, rather than a copy.
  bool is_original() const;
  // Returns true if the path still leads to this file.
  bool is_still_at_its_path() const;
  // Removes the file, unless the path leads to another one by now.
  void remove() const;
  // Renames the file within its folder, so that searches do not find it any more. Returns its path
  // afterwards, which is the old one if it could not be renamed.
  std::string set_aside() const;

 private:
  LedgerFile() = default;
  std::string path_;
  Descriptor descriptor_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::int64_t modified_realtime_ns_ = 0;
  void* start_ = nullptr;
  std::size_t bytes_ = 0, blocks_bytes_ = 0;
  std::optional<ledger::Reader> reader_;
};

}  // namespace cuwarden
