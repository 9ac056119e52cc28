// The loaded objects that occur in stacks. An object is looked up while a stack that contains it is
// interned, because it may be unloaded later: base, range, build id and path are copied then.
//
// A file that is loaded once more, at another address or from a copy, is known as the same file. It
// gets another row only when a stack is stored that was not met in it before: a plugin may be
// loaded and unloaded any number of times.
//
// The loader calls back with its own lock held, so this table's lock is always the inner one and
// nothing is called out of it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/mapping.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"

struct dl_phdr_info;

namespace cuwarden::ledger {

struct ModuleDescription;

class ModuleTable {
 public:
  explicit ModuleTable(Storage& storage) noexcept : storage_(storage) {}
  bool create(StringRef program) noexcept;

  // Looks up the modules of these frames, so that the functions below know them. Code that belongs
  // to no module, such as a JIT compiler's, costs one look at the loader's counter, and no scan.
  void cover(std::span<const Frame> frames) noexcept;
  // Makes rows for the modules of these frames that have none; to be called after cover(), before a
  // stack of these frames is stored.
  void store_rows(std::span<const Frame> frames) noexcept;

  // Returns a hash of the frames' files and offsets in them, so that it does not depend on the
  // addresses at which files are loaded. A frame in no module counts with its address. cover() must
  // have been called with the frames.
  std::uint64_t hash_of_locations(std::span<const Frame> frames) noexcept;
  // True if `frames`, of the present epoch, have the same files and offsets as `stored`: an array
  // of as many frames, of the given epoch.
  bool are_same_locations(std::span<const Frame> frames, const Frame* stored,
                          std::uint64_t epoch) noexcept;

  // The range of addresses of a module that was unloaded.
  struct Gone {
    std::uint64_t start, end;
  };
  // Ends the rows of modules that were unloaded. Calls gone(range) for each, without holding a
  // lock.
  template <class Callback>
  void remove_gone(const Callback& gone) noexcept {
    const std::uint64_t generation = mark_present();
    Gone range{};
    while (take_unmarked(generation, range)) gone(range);
  }

  // Returns the path of the file that was mapped at this address in that epoch; empty if unknown.
  std::string_view path_at(Frame frame, std::uint64_t epoch) const noexcept;

 private:
  struct Known {
    std::uint64_t start, end;
    std::uint64_t base;
    std::uint64_t identity;    // of build id and path
    std::uint64_t generation;  // of the last scan that met it
    std::uint32_t row;         // 0: not stored yet
    std::uint32_t file;        // row of the first module of its file
  };
  // Facts about a module's row, by the row's number.
  struct RowOfFile {
    std::uint64_t file_hash;  // 0: the row is not the first of its file
    std::uint32_t next;       // row of the same file; 0 ends the list
  };

  Known* known() const noexcept { return static_cast<Known*>(known_.data()); }
  Known* find(std::uint64_t address) const noexcept;
  std::size_t lower_bound(std::uint64_t start) const noexcept;
  enum class Coverage { complete, generated_code, missing };
  Coverage coverage(std::span<const Frame> frames) noexcept;
  void note_loaded(const ModuleDescription&, bool first) noexcept;
  void add(const ModuleDescription&, std::uint64_t file_hash) noexcept;
  void store_row_of(const ModuleDescription&) noexcept;
  std::uint32_t store(const ModuleDescription&, std::string_view path, std::uint32_t file) noexcept;
  std::uint32_t find_file(const ModuleDescription&, std::uint64_t file_hash) const noexcept;
  bool lack_rows(std::span<const Frame> frames) noexcept;
  bool was_at(std::uint32_t file, std::uint64_t offset, Frame, std::uint64_t epoch) const noexcept;
  RowOfFile& row_of_file(std::uint32_t row) const noexcept {
    return static_cast<RowOfFile*>(rows_of_files_.data())[row];
  }
  template <class Visit>
  void each_location(std::span<const Frame> frames, const Visit& visit) const noexcept;
  std::uint64_t mark_present() noexcept;
  bool take_unmarked(std::uint64_t generation, Gone&) noexcept;

  Storage& storage_;
  StringRef program_;
  Mapping known_;  // sorted by start, not overlapping
  std::size_t known_count_ = 0, known_capacity_ = 0;
  Mapping rows_of_files_;
  std::uint64_t generation_ = 1;
  // All that the loader had at the last scan, to tell generated code from a module not met yet.
  Mapping loaded_;
  std::size_t loaded_count_ = 0;
  std::atomic<std::uint64_t> scanned_adds_{0};  // the loader's counter then
  FutexLock lock_;
};

}  // namespace cuwarden::ledger
