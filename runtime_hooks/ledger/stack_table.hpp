// Call stacks, each stored once. A known stack is found without a lock; all frames are compared.
#pragma once

#include <cstdint>
#include <span>

#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/id_table.hpp"
#include "runtime_hooks/ledger/module_table.hpp"
#include "runtime_hooks/ledger/storage.hpp"

namespace cuwarden::ledger {

class StackTable {
 public:
  StackTable(Storage& storage, ModuleTable& modules) noexcept
      : storage_(storage), modules_(modules) {}
  bool create() noexcept { return ids_.create(); }

  // `added` becomes true where this stack was not there.
  StackId intern(std::span<const Frame> frames, bool truncated, bool& added) noexcept;
  // Stacks with a frame in this range are not matched any more: the addresses may come to mean
  // other code.
  void retire(ModuleTable::Gone range) noexcept;

 private:
  std::uint32_t find(std::uint64_t hash, std::span<const Frame> frames,
                     bool truncated) const noexcept;

  Storage& storage_;
  ModuleTable& modules_;
  IdTable ids_;
};

}  // namespace cuwarden::ledger
