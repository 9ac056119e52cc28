// A refused request. A test states the facts that were known about it.
#pragma once

#include <gtest/gtest.h>

#include "reporters/verdicts/verdicts.hpp"

namespace cuwarden {

inline constexpr std::uint64_t MiB = 1 << 20, GiB = 1 << 30;

class Verdicts : public testing::Test {
 protected:
  Verdicts() {
    given.device = DeviceOrdinal{0};
    given.kind = Kind::device;
    given.program = "/bin/app";
    given.requester = "/bin/app";
    given.incident.bytes = 8 * GiB;
    given.incident.facts.fill(ledger::unknown_bytes);
    set(Fact::total_bytes, 100 * GiB);
    set(Fact::free_bytes, 2 * GiB);
    set(Fact::slab_locked_bytes, 0);
    set(Fact::context_bytes, 0);
  }
  using Fact = ledger::Fact;

  void set(Fact fact, std::uint64_t value) {
    given.incident.facts[static_cast<std::size_t>(fact)] = value;
  }
  void live(Kind kind, std::uint64_t bytes) {
    given.incident.live_bytes[static_cast<std::size_t>(kind)] = bytes;
  }
  void live_count(std::uint64_t count) {
    given.incident.live_count[static_cast<std::size_t>(Kind::stream_ordered)] = count;
  }
  std::string_view verdict() const { return verdict_name(judge(given).verdict); }
  // Null if the proof has no such figure or text.
  model::ProofValue proof_value(std::string_view name) const {
    for (const auto& [known, value] : judge(given).proof)
      if (known == name) return value;
    return std::monostate();
  }
  std::uint64_t proof(std::string_view name) const {
    const model::ProofValue value = proof_value(name);
    EXPECT_TRUE(std::holds_alternative<std::uint64_t>(value)) << name;
    return value.index() == 1 ? std::get<1>(value) : 0;
  }
  bool proves(std::string_view name) const { return proof_value(name).index() != 0; }

  IncidentCase given;
};

}  // namespace cuwarden
