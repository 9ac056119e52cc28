// Call stacks, each stored once. A known stack is found without a lock; all frames are compared.
//
// Two stacks are equal if their frames have equal offsets in equal files, at any addresses of the
// files. A stack that comes back at other addresses gets the id that it had. It is stored with the
// addresses that it had first.
#pragma once

#include <cstdint>
#include <span>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/storage/id_table.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"
#include "runtime_hooks/ledger/write/stacks/module_table.hpp"
#include "runtime_hooks/ledger/write/stacks/moved_stacks.hpp"

namespace cuwarden::ledger {

class StackTable {
 public:
  StackTable(Storage& storage, ModuleTable& modules) noexcept
      : storage_(storage), modules_(modules) {}
  bool create() noexcept { return ids_.create() && ids_by_locations_.create(); }

  // Returns the id of the stack with these frames, and stores it if it is new; 0 if there is no
  // room. `frames`: innermost first; each is an address inside the call instruction. `added`: set
  // to true if the stack is new; may be null.
  StackId intern(std::span<const Frame> frames, bool truncated, bool* added = nullptr) noexcept;
  // Calls visit(path) with the path of each frame's module, until it returns false; the path is
  // empty if the module is not known. Returns false if a call did, or if there is no such stack.
  template <class Visit>
  bool all_modules(StackId id, const Visit& visit) const noexcept {
    if (id.value == 0) return false;
    const Stack& stack = storage_.rows<Stack>(RegionId::stacks)[id.value];
    const Frame* const frames = storage_.rows<Frame>(RegionId::frames) + stack.first;
    for (std::uint32_t i = 0; i < stack.count; ++i)
      if (!visit(modules_.path_at(frames[i], stack.module_epoch))) return false;
    return true;
  }
  // To be called after a dlclose. Finds modules that went away, ends their rows and retires their
  // stacks. A StackId or GroupId that the caller keeps for such a stack must not be used for new
  // records.
  void modules_changed() noexcept;

 private:
  // Stacks with a frame in this range are not matched by their addresses any more: these may come
  // to mean other code.
  void retire(ModuleTable::Gone range) noexcept;
  std::uint32_t find(std::uint64_t hash, std::span<const Frame> frames,
                     bool truncated) const noexcept;
  std::uint32_t find_by_locations(std::uint64_t hash_of_locations, std::span<const Frame> frames,
                                  bool truncated) noexcept;
  std::uint32_t find_again(std::uint64_t hash, std::span<const Frame> frames, bool truncated,
                           std::uint64_t hash_of_locations) noexcept;
  std::uint32_t add(std::uint64_t hash, std::span<const Frame> frames, bool truncated,
                    std::uint64_t hash_of_locations) noexcept;
  bool has_addresses(std::uint32_t row, std::span<const Frame> frames) const noexcept;

  Storage& storage_;
  ModuleTable& modules_;
  IdTable ids_;               // by addresses; its lock is this table's
  IdTable ids_by_locations_;  // never retired
  MovedStacks moved_;
};

}  // namespace cuwarden::ledger
