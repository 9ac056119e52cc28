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
  std::uint64_t handle = 0;  // handle of the module or library; 0: no owner
  friend bool operator==(const CodeOwner&, const CodeOwner&) = default;
};

// A table of kernels (CUfunction or CUkernel, as numbers) and the modules or libraries to which
// they belong (owners). Several threads may use it at once. If a part of the table is full, a new
// kernel replaces an older one. The record of the older kernel's code then ends only when the
// context ends, not when the owner is unloaded.
class CodeOwners {
 public:
  // Enters the owner of a kernel, in place of an earlier one. Does nothing if one of the handles is
  // 0.
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
  // Returns the owner of a kernel; a CodeOwner with the handle 0 if the owner is not known.
  CodeOwner of(std::uint64_t kernel) noexcept {
    const Locked locked(lock_);
    if (!locked) return {};
    const Entry* const line = line_of(kernel);
    for (const Entry* entry = line; entry != line + ways; ++entry)
      if (entry->kernel == kernel) return entry->owner;
    return {};
  }
  // Removes all kernels of the owner, and calls visit(kernel) for each. The table is locked
  // meanwhile, so `visit` must not use it. To be called before the driver unloads the owner. Does
  // nothing if the lock cannot be had.
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
    std::uint64_t kernel = 0;  // handle of the kernel; 0: the entry is unused
    CodeOwner owner;
  };
  Entry* line_of(std::uint64_t kernel) noexcept {
    return entries_.data() + hash_pair(kernel, 0) % lines * ways;
  }

  // Guards `entries_`. Its holder may change the ledger, but calls neither the driver nor the
  // program.
  FutexLock lock_;
  std::array<Entry, ways * lines> entries_{};
};

}  // namespace cuwarden::tracking
