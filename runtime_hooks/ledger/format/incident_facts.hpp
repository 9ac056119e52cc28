// An incident as values: what was asked for, and what was known at the moment of the refusal. They
// are filled by the thread that met the refusal, or read from a ledger.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime_hooks/core/kind.hpp"
#include "runtime_hooks/core/strong_types.hpp"
#include "runtime_hooks/ledger/format/incident_layout.hpp"

namespace cuwarden::ledger {

// A refused request, and the facts that were known at the refusal.
struct IncidentFacts {
  Asked asked{};
  int result = 0;           // CUresult
  std::uint64_t bytes = 0;  // 0: the call does not say
  // Live memory by kind, on the device of the request, or on the host.
  std::array<std::uint64_t, kind_count> live_bytes{}, live_count{};
  // Values by Fact; unknown_bytes if a fact is not known.
  std::array<std::uint64_t, fact_count> facts = [] {
    std::array<std::uint64_t, fact_count> unknown{};
    unknown.fill(unknown_bytes);
    return unknown;
  }();

  std::optional<std::uint64_t> fact(Fact which) const noexcept {
    const std::uint64_t value = facts[static_cast<std::size_t>(which)];
    return value == unknown_bytes ? std::nullopt : std::optional(value);
  }
  void set(Fact which, std::uint64_t value) noexcept {
    facts[static_cast<std::size_t>(which)] = value;
  }
};

// A group that held memory of the device (or the host) at that moment, or another process.
struct IncidentHolding {
  GroupId group;          // 0: another process
  std::uint32_t pid = 0;  // of that process
  std::uint64_t count = 0, bytes = 0;
  std::optional<std::uint64_t> growth_bytes_per_minute{};  // null: it does not grow
  // bytes that its pieces lock in slabs; null: not looked at
  std::optional<std::uint64_t> slab_locked_bytes{};
};

}  // namespace cuwarden::ledger
