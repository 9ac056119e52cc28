// A ledger opened for reading: checked to be a plain file, mapped, and closed again on destruction.
// Whoever wrote it may still change it, or may be hostile: it is read by ledger::Reader only, and
// where it shrinks under the reader, zeros are read (zeros_where_files_shrink).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime_hooks/core/open_file.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

// Once, at the start of the command: a mapped file that is cut short is no reason to die.
void zeros_where_files_shrink();

bool is_ledger(const std::string& path);

std::string belongs_to(uid_t);  // "it belongs to NAME"

class LedgerFile {
 public:
  enum class Failure : std::uint8_t {
    none,
    unreadable,  // not there, not permitted, no plain file
    other_user,  // it is not ours, and was to be
    unfinished,  // no process has completed its header
    no_ledger,   // another file, another version, or damaged
  };
  enum class Kind : std::uint8_t {
    any,          // symbolic links are not followed
    ours,         // nor is it another user's: what it says will be done with our rights
    kernel_link,  // a link that the kernel made
  };
  // Null with `error` set to the reason, without the path.
  static std::unique_ptr<LedgerFile> open(const std::string& path, std::string& error,
                                          Failure* failure = nullptr, Kind kind = Kind::any);
  // Whatever it holds, which is not looked at: only to be locked and removed.
  static std::unique_ptr<LedgerFile> open_unread(const std::string& path, std::string& error,
                                                 Failure* failure, Kind kind);
  LedgerFile(const LedgerFile&) = delete;
  LedgerFile& operator=(const LedgerFile&) = delete;
  ~LedgerFile();

  const std::string& path() const { return path_; }
  const ledger::Reader& reader() const { return *reader_; }
  ino_t inode() const { return inode_; }
  // Last change that the file system knows of; a write through a mapping may not be one.
  std::int64_t modified_realtime_ns() const { return modified_realtime_ns_; }

  // True when no living process keeps the file locked, nor another cuwarden; it is ours then until
  // this object goes. False with `error` 0: somebody has it. False with an errno: no locks here.
  bool lock(int& error) const;
  // Whether it is the file that its process made, and no copy of it.
  bool is_original() const;
  // Whether the path still leads to this file.
  bool is_in_place() const;
  void remove() const;  // if it does
  // Gives it a name in its folder under which it is not looked for. Its path afterwards, which is
  // the old one where that cannot be done.
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
