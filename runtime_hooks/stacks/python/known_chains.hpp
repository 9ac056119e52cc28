// Maps a native stack and the Python frames on it to a name, so that a stack that comes again is
// recognised by comparing its frames.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/core/thread_slot.hpp"
#include "runtime_hooks/stacks/python/frame_chain.hpp"

namespace cuwarden::stacks::python {

// Names (numbers other than 0) of stacks with Python frames, a table for each thread, which only
// the thread itself fills. A later stack may overwrite an earlier one. Functions may be called by
// several threads at once, and take no lock. A signal handler of the same thread may call them,
// too.
//
// Parameters of all functions: the ThreadSlot is the calling thread's. `native` is a number that
// stands for the native stack. `generation` is a number that changes when names become invalid: a
// name is found only with the generation with which it was kept. Chains have at least one frame.
class KnownChains {
 public:
  ~KnownChains();

  // The Python frames of a remembered stack, and the name that keep() got for it.
  struct Known {
    // The stack's Python frames, innermost first; empty if there is no such stack. Valid until the
    // thread's next keep().
    std::span<const PythonFrame> frames;
    std::uint32_t name = 0;
  };
  // Returns the stack that find() last found for the calling thread on this native stack, or a
  // stack that keep() has written over it. The result has no frames if there is neither. `native`:
  // number of the native stack. `generation`: a stack is returned only if it was kept with this
  // number, which changes when names become invalid.
  Known last_found(ThreadSlot thread, std::uint32_t native,
                   std::uint32_t generation) const noexcept {
    const Table* const table = table_of(thread);
    if (table == nullptr) return {};
    const Entry* const entry = table->last[native % natives];
    if (entry == nullptr || entry->native != native || entry->generation != generation) return {};
    return {{entry->frames, entry->count}, entry->name};
  }
  // Returns the name that keep() got for these Python frames on this native stack; 0 if there is
  // none. last_found() then returns this stack. `native`: number of the native stack. `generation`:
  // a name is found only if it was kept with this number.
  std::uint32_t find(ThreadSlot, std::uint32_t native, const FrameChain&,
                     std::uint32_t generation) noexcept;
  // Remembers the name of a stack, which consists of the native stack with the number `native` and
  // the Python frames on it. Does nothing if the thread has no number, or if there is no memory.
  // `generation`: find() must be given this number to find the name. `name`: not 0.
  void keep(ThreadSlot, std::uint32_t native, const FrameChain&, std::uint32_t generation,
            std::uint32_t name) noexcept;

 private:
  // `sets`: number of sets in a thread's table. `ways`: number of stacks in each set. `natives`:
  // number of native stacks for each of which the table has the stack that find() found last.
  static constexpr std::size_t sets = 64, ways = 2, natives = 64;

  // One remembered stack. `native`, `name`, `generation`: the arguments of keep(). `count`: number
  // of its Python frames; 0: the entry is unused, or being written.
  struct Entry {
    // Hash of `native`, and of the code and position (PythonFrame) of each Python frame.
    std::uint64_t hash;
    std::uint32_t native, name, generation, count;
    PythonFrame frames[FrameChain::most_frames];
  };
  // The remembered stacks of one thread. `tenancy`: ThreadSlot::tenancy of the thread. If the
  // calling thread's differs, the entries are those of an earlier thread with the same number, and
  // mean nothing.
  struct Table {
    std::uint32_t tenancy;
    // Number of stacks so far that found the first entry of their set taken by another stack. It
    // chooses the entry that is overwritten next.
    std::uint32_t turn;
    // For each native stack, the entry that find() last found. The index is the stack's number
    // modulo the length of the array. Stacks with the same index displace each other. Null: none
    // yet. The entry may have been overwritten since.
    const Entry* last[natives];
    Entry entries[sets][ways];
  };

  // Returns the table of stacks that are remembered for this thread. Returns null if nothing was
  // remembered for it; a table of an earlier thread with the same number does not count.
  Table* table_of(ThreadSlot thread) const noexcept {
    Table* const table = tables_[thread.number].load(std::memory_order_acquire);
    return table != nullptr && table->tenancy == thread.tenancy ? table : nullptr;
  }
  static std::uint64_t hash_of(std::uint32_t native, const FrameChain&) noexcept;
  static bool is_same(const Entry&, std::uint64_t hash, std::uint32_t native, const FrameChain&,
                      std::uint32_t generation) noexcept;

  // The threads' tables of remembered stacks, by ThreadSlot::number; null: not made yet.
  std::atomic<Table*> tables_[ThreadSlot::count]{};
};

}  // namespace cuwarden::stacks::python
