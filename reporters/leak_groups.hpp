// The leaks of a ledger: what is still live, by group, and what went only because its context did.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reporters/growth.hpp"
#include "runtime_hooks/ledger/read/group_sums.hpp"
#include "runtime_hooks/ledger/read/reader.hpp"

namespace cuwarden {

struct LeakGroup {
  ledger::GroupView group;
  bool released_by_context = false;
  std::uint64_t count = 0, bytes = 0;
  std::optional<std::uint64_t> first_ns, last_ns;  // births of those that are live
  std::optional<DeviceAddress> example;            // the oldest that is live
  std::optional<std::uint64_t> unmapped_count;     // vmm: handles unmapped but never released
  Growth growth;
};

// Sorted by bytes, then count, descending. Reads the records twice: the quarters of Growth need
// each group's oldest survivor first. All groups, as they were read, are added to the sums.
std::vector<LeakGroup> leak_groups(const ledger::Reader&, std::uint64_t end_ns, ledger::GroupSums&);
// Of a process that goes on: each group's counts are what it states of itself at one moment; the
// records, which come and go meanwhile, say only when and where.
std::vector<LeakGroup> live_groups(const ledger::Reader&, std::uint64_t end_ns, ledger::GroupSums&);

struct GroupLabel {
  std::string api;           // as the program called it
  std::uint32_t module = 0;  // of the innermost frame outside CUDA's own libraries; 0: unknown
};

struct NamedFrame {
  std::uint32_t module = 0;  // 0: in no module that is known
  std::string_view path, function;
  std::string_view file{};  // of the source; empty: unknown
};

// `frames` innermost first. A call that the program made into the runtime was recorded under the
// driver's name where no runtime hook saw it (a runtime linked statically, a pointer that was
// looked up): then the outermost runtime function at the inner end of the stack names it.
GroupLabel label_group(std::string_view recorded_api, std::span<const NamedFrame> frames);

}  // namespace cuwarden
