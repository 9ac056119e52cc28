// Lists the files that this process is writing, so that a command which a signal ends can remove
// them first.
#pragma once

#include <string>

namespace cuwarden {

// A file of no use until it is whole, which is on the list while the object lives. The list has
// room for a few files; those beyond are not listed. Objects may be made by several threads.
class UnfinishedFile {
 public:
  // Lists the file at the path, which need not exist yet.
  explicit UnfinishedFile(std::string path) noexcept;
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;
  // Takes the file off the list, and leaves it as it is.
  ~UnfinishedFile();

 private:
  const std::string path_;  // path of the file
  int slot_ = -1;           // index of the file's slot of the list; -1: it is not listed
};

// Removes the files on the list. To be called by a handler of a signal that ends the process: a
// thread of it may be writing or renaming one of them. Failures are ignored.
void remove_unfinished_files() noexcept;

}  // namespace cuwarden
