// The loaded objects that occur in stacks. They are looked up while a stack that shows them is
// interned, for later they may be gone: base, range, build id and path are copied then.
//
// The loader calls back with its own lock held, so this table's lock is always the inner one and
// nothing is called out of it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/mapping.hpp"
#include "runtime_hooks/ledger/storage.hpp"

struct dl_phdr_info;

namespace cuwarden::ledger {

class ModuleTable {
 public:
  explicit ModuleTable(Storage& storage) noexcept : storage_(storage) {}
  bool create(StringRef program) noexcept;

  // Makes rows for the modules of these frames that have none. Code that belongs to no module
  // (a JIT's) costs one glance at the loader's counter, not a scan.
  void cover(std::span<const Frame> frames) noexcept;

  struct Gone {
    std::uint64_t start, end;
  };
  // Ends the rows of modules that the loader no longer has. Calls `gone` for each, without a lock.
  template <class Callback>
  void remove_gone(const Callback& gone) noexcept {
    const std::uint64_t generation = mark_present();
    Gone range{};
    while (take_unmarked(generation, range)) gone(range);
  }

 private:
  struct Known {
    std::uint64_t start, end;
    std::uint64_t base;
    std::uint64_t identity;    // of build id and path
    std::uint64_t generation;  // of the last scan that met it
    std::uint32_t row;
  };
  struct Description;

  Known* known() const noexcept { return static_cast<Known*>(known_.data()); }
  Known* find(std::uint64_t address) const noexcept;
  std::size_t lower_bound(std::uint64_t start) const noexcept;
  enum class Coverage { complete, generated_code, missing };
  Coverage coverage(std::span<const Frame> frames) noexcept;
  void note_loaded(const Description&, bool first) noexcept;
  void add(const Description&) noexcept;
  std::uint64_t mark_present() noexcept;
  bool take_unmarked(std::uint64_t generation, Gone&) noexcept;
  static bool describe(const dl_phdr_info&, Description&) noexcept;

  Storage& storage_;
  StringRef program_;
  Mapping known_;  // sorted by start, not overlapping
  std::size_t known_count_ = 0, known_capacity_ = 0;
  std::uint64_t generation_ = 1;
  // All that the loader had at the last scan, to tell generated code from a module not met yet.
  Mapping loaded_;
  std::size_t loaded_count_ = 0;
  std::atomic<std::uint64_t> scanned_adds_{0};  // the loader's counter then
  FutexLock lock_;
};

}  // namespace cuwarden::ledger
