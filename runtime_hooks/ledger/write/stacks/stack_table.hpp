// The ledger's stacks table: call stacks, each stored once. A known stack is found without a lock;
// all frames are compared.
//
// Two stacks are equal if their frames have equal offsets in equal files, wherever the files were
// loaded. So a stack keeps its id when one of its files is unloaded and loaded again elsewhere. The
// row keeps the addresses that the stack had when it was stored.
#pragma once

#include <cstdint>
#include <span>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/storage/id_table.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"
#include "runtime_hooks/ledger/write/stacks/module_table.hpp"
#include "runtime_hooks/ledger/write/stacks/moved_stacks.hpp"

namespace cuwarden::ledger {

// Stores call stacks in the ledger. All threads may call the functions at any time after create().
class StackTable {
 public:
  // `storage`: the memory of the ledger. `modules`: the ledger's table of loaded objects. Both must
  // outlive the object.
  StackTable(Storage& storage, ModuleTable& modules) noexcept
      : storage_(storage), modules_(modules) {}
  // Maps memory for the indexes of the stacks. Must be called before other functions. Returns false
  // if there is no memory.
  bool create() noexcept { return ids_.create() && ids_by_locations_.create(); }

  // Returns the id of the stack with these frames, and stores the stack if it is new. Returns 0 if
  // there is no room (reason_ledger_full) or the table's lock cannot be had. `frames`: innermost
  // first; each is a Frame: an address inside the call instruction, or a Python frame. `truncated`:
  // true if outer frames were cut off. `added`: may be null; otherwise set to true if this call has
  // stored the stack, and to false if not.
  StackId intern(std::span<const Frame> frames, bool truncated, bool* added = nullptr) noexcept;
  // Calls visit(path) for each frame of the stack, until a call returns false. `path`: path of the
  // frame's module (the program or a library); empty if unknown, and for a Python frame. Returns
  // true if all calls returned true, also for a stack without frames. Returns false otherwise, and
  // for the id 0.
  template <class Visit>
  bool all_modules(StackId id, const Visit& visit) const noexcept {
    if (id.value == 0) return false;
    const Stack& stack = storage_.rows<Stack>(RegionId::stacks)[id.value];
    const Frame* const frames = storage_.rows<Frame>(RegionId::frames) + stack.first;
    for (std::uint32_t i = 0; i < stack.count; ++i)
      if (!visit(modules_.path_at(frames[i], stack.module_epoch))) return false;
    return true;
  }
  // Ends the rows of modules that were unloaded. Must be called after a dlclose. Stacks through an
  // unloaded module are then not found by their addresses any more, since other code may be loaded
  // there. A caller that has cached a StackId or GroupId by addresses must drop it.
  void modules_changed() noexcept;

 private:
  // Removes all stacks with a frame in this range of addresses from the index by addresses, because
  // other code may be loaded there. The stacks stay in the ledger.
  void retire(ModuleTable::Gone range) noexcept;
  // Returns the row of the stack that was stored with exactly these addresses; 0 if there is none.
  // `hash`: hash of `frames` and `truncated`. `truncated`: true if outer frames were cut off. Takes
  // no lock.
  std::uint32_t find(std::uint64_t hash, std::span<const Frame> frames,
                     bool truncated) const noexcept;
  // Returns the row of a stack whose frames have the same files and offsets in them, wherever the
  // files were loaded; 0 if there is none. `hash_of_locations`: hash of these files and offsets.
  // `truncated`: true if outer frames were cut off.
  std::uint32_t find_by_locations(std::uint64_t hash_of_locations, std::span<const Frame> frames,
                                  bool truncated) noexcept;
  // Returns the row of the stack, found by its addresses or else by its files and offsets; 0 if
  // there is none. A stack that was found by its files is then entered under these addresses, too.
  // `hash`: hash of `frames` and `truncated`. `truncated`: true if outer frames were cut off.
  // `hash_of_locations`: hash of the frames' files and offsets. The caller holds the table's lock.
  std::uint32_t find_again(std::uint64_t hash, std::span<const Frame> frames, bool truncated,
                           std::uint64_t hash_of_locations) noexcept;
  // Stores a new stack, and returns its row; 0 if there is no room (reason_ledger_full). `hash`:
  // hash of `frames` and `truncated`. `truncated`: true if outer frames were cut off.
  // `hash_of_locations`: hash of the frames' files and offsets. The caller holds the table's lock.
  std::uint32_t add(std::uint64_t hash, std::span<const Frame> frames, bool truncated,
                    std::uint64_t hash_of_locations) noexcept;
  // True if the stack in this row was stored with these addresses. The stack must have as many
  // frames as `frames`.
  bool has_addresses(std::uint32_t row, std::span<const Frame> frames) const noexcept;

  Storage& storage_;      // the memory of the ledger, with its tables
  ModuleTable& modules_;  // the ledger's table of loaded object files
  // Rows of stacks by the addresses of their frames. Its lock is the lock of the whole StackTable.
  IdTable ids_;
  // Rows of stacks by the files and offsets of their frames. No row is ever removed from it.
  IdTable ids_by_locations_;
  MovedStacks moved_;  // rows of stacks whose addresses have changed since they were stored
};

}  // namespace cuwarden::ledger
