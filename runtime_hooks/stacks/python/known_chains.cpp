#include "runtime_hooks/stacks/python/known_chains.hpp"

#include <algorithm>
#include <cstring>

#include "runtime_hooks/core/hash.hpp"

namespace cuwarden::stacks::python {

KnownChains::~KnownChains() {
  for (std::atomic<Table*>& table : tables_)
    if (Table* const made = table.load()) Mapping(made, sizeof(Table));
}

std::uint64_t KnownChains::hash_of(std::uint32_t native, const FrameChain& chain) noexcept {
  std::uint64_t hash = hash_salt[0] ^ native;
  for (std::uint32_t i = 0; i < chain.count; ++i) {
    const PythonFrame& frame = chain.frames[i];
    hash = fold_product(hash ^ frame.code, hash_salt[1] ^ frame.position) + frame.code;
  }
  return hash;
}

bool KnownChains::is_same(const Entry& entry, std::uint64_t hash, std::uint32_t native,
                          const FrameChain& chain, std::uint32_t generation) noexcept {
  return entry.hash == hash && entry.native == native && entry.generation == generation &&
         entry.count == chain.count &&
         std::memcmp(entry.frames, chain.frames, chain.count * sizeof(PythonFrame)) == 0;
}

std::uint32_t KnownChains::find(ThreadSlot thread, std::uint32_t native, const FrameChain& chain,
                                std::uint32_t generation) noexcept {
  Table* const table = table_of(thread);
  if (table == nullptr) return 0;
  const std::uint64_t hash = hash_of(native, chain);
  for (const Entry& entry : table->entries[hash % sets]) {
    if (!is_same(entry, hash, native, chain, generation)) continue;
    table->last[native % natives] = &entry;
    return entry.name;
  }
  return 0;
}

// The entries of a set are overwritten in turn. A signal handler of the thread may interrupt this:
// the entry has no count meanwhile.
void KnownChains::keep(ThreadSlot thread, std::uint32_t native, const FrameChain& chain,
                       std::uint32_t generation, std::uint32_t name) noexcept {
  if (thread.number == 0) return;
  std::atomic<Table*>& entry_of_thread = tables_[thread.number];
  Table* table = entry_of_thread.load(std::memory_order_relaxed);
  if (table == nullptr) {
    Mapping memory = Mapping::anonymous(sizeof(Table));
    if (!memory) return;
    table = static_cast<Table*>(memory.data());
    memory.release();
    entry_of_thread.store(table, std::memory_order_release);
  }
  if (table->tenancy != thread.tenancy) {
    for (auto& set : table->entries)
      for (Entry& entry : set) entry.count = 0;
    table->tenancy = thread.tenancy;
  }
  const std::uint64_t hash = hash_of(native, chain);
  auto& set = table->entries[hash % sets];
  Entry& newest = set[set[0].count != 0 && set[0].hash != hash ? table->turn++ % ways : 0];
  newest.count = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  newest.hash = hash;
  newest.native = native;
  newest.name = name;
  newest.generation = generation;
  std::copy_n(chain.frames, chain.count, newest.frames);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  newest.count = chain.count;
}

}  // namespace cuwarden::stacks::python
