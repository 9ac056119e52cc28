#include "reporters/files/unfinished_files.hpp"

#include <unistd.h>

#include <atomic>
#include <utility>

namespace cuwarden {
namespace {

constexpr int most_listed = 8;
// Paths of the files on the list, each owned by its UnfinishedFile; null: the slot is free. A
// signal handler reads them, so that they are lock-free atomics.
constinit std::atomic<const char*> listed_paths[most_listed] = {};
static_assert(std::atomic<const char*>::is_always_lock_free);

}  // namespace

UnfinishedFile::UnfinishedFile(std::string path) noexcept : path_(std::move(path)) {
  for (int slot = 0; slot < most_listed && slot_ < 0; ++slot) {
    const char* expected = nullptr;
    if (listed_paths[slot].compare_exchange_strong(expected, path_.c_str())) slot_ = slot;
  }
}

UnfinishedFile::~UnfinishedFile() {
  if (slot_ >= 0) listed_paths[slot_] = nullptr;
}

void remove_unfinished_files() noexcept {
  for (const std::atomic<const char*>& slot : listed_paths)
    if (const char* const path = slot) unlink(path);
}

}  // namespace cuwarden
