// Modules and libraries to which kernels belong. With lazy loading a kernel's code comes to the
// device when the kernel is first needed, and leaves it when its module or library is unloaded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/hash.hpp"
#include "runtime_hooks/core/kind.hpp"

namespace cuwarden::tracking {

// A module (Space::module) or a library (Space::library), by its handle.
struct CodeOwner {
  Space space{};
  std::uint64_t handle = 0;  // 0: none
  friend bool operator==(const CodeOwner&, const CodeOwner&) = default;
};

// A table of kernels (CUfunction or CUkernel, as numbers) and their owners. Several threads may use
// it at once. If a part of the table is full, a new kernel replaces another one; the record of that
// one's code then ends only with its context.
class CodeOwners {
 public:
  // Enters the owner of a kernel, or replaces it.
  void set(std::uint64_t kernel, CodeOwner owner) noexcept {
    const Locked locked(lock_);
    if (!locked || kernel == 0 || owner.handle == 0) return;
    Entry* const line = line_of(kernel);
    Entry* to = line + hash_pair(kernel, 1) % ways;
    for (Entry* entry = line; entry != line + ways; ++entry) {
      if (entry->kernel == 0) to = entry;
      if (entry->kernel != kernel) continue;
      to = entry;
      break;
    }
    *to = {kernel, owner};
  }
  // Returns the owner of a kernel; one with the handle 0 if it is not known.
  CodeOwner of(std::uint64_t kernel) noexcept {
    const Locked locked(lock_);
    if (!locked) return {};
    const Entry* const line = line_of(kernel);
    for (const Entry* entry = line; entry != line + ways; ++entry)
      if (entry->kernel == kernel) return entry->owner;
    return {};
  }
  // Removes the kernels of the owner, which is unloaded, and calls visit(kernel) for each. `visit`
  // must not use this table.
  template <class Visit>
  void remove_all_of(CodeOwner owner, Visit visit) noexcept {
    const Locked locked(lock_);
    if (!locked) return;
    for (Entry& entry : entries_) {
      if (entry.kernel == 0 || entry.owner != owner) continue;
      visit(entry.kernel);
      entry = {};
    }
  }

 private:
  static constexpr std::size_t ways = 8, lines = 512;
  struct Entry {
    std::uint64_t kernel = 0;  // 0: the entry is unused
    CodeOwner owner;
  };
  Entry* line_of(std::uint64_t kernel) noexcept {
    return entries_.data() + hash_pair(kernel, 0) % lines * ways;
  }

  // While it is held, the ledger may be changed, but neither the driver nor the program is called.
  FutexLock lock_;
  std::array<Entry, ways * lines> entries_{};
};

}  // namespace cuwarden::tracking
