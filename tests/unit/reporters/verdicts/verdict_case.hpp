// A refused request, for tests of its verdict. A test states the facts about the request.
#pragma once

#include <gtest/gtest.h>

#include "reporters/verdicts/verdicts.hpp"

namespace cuwarden {

// Numbers of bytes: of a mebibyte and of a gibibyte.
inline constexpr std::uint64_t MiB = 1 << 20, GiB = 1 << 30;

// A refused request for 8 GiB on a device of 100 GiB with 2 GiB free. A test states further facts.
// Then it compares verdict(), the name of the refusal's cause, and the figures that prove it.
class Verdicts : public testing::Test {
 protected:
  // States the facts of a request for 8 GiB on a device of 100 GiB with 2 GiB free; the other facts
  // are unknown, or 0.
  Verdicts() {
    given.device = DeviceOrdinal{0};
    given.kind = Kind::device;
    given.program = "/bin/app";
    given.requester = "/bin/app";
    given.incident.bytes = 8 * GiB;
    given.incident.facts.fill(ledger::unknown_value);
    set(Fact::total_bytes, 100 * GiB);
    set(Fact::free_bytes, 2 * GiB);
    set(Fact::slab_locked_bytes, 0);
    set(Fact::context_bytes, 0);
  }
  using Fact = ledger::Fact;  // a fact about the moment of the refusal

  // States the value of a fact, in the unit of that fact.
  void set(Fact fact, std::uint64_t value) {
    given.incident.facts[static_cast<std::size_t>(fact)] = value;
  }
  // States the bytes of live allocations of this kind at the refusal.
  void live(Kind kind, std::uint64_t bytes) {
    given.incident.live_bytes[static_cast<std::size_t>(kind)] = bytes;
  }
  // States the number of live stream-ordered allocations at the refusal.
  void live_count(std::uint64_t count) {
    given.incident.live_count[static_cast<std::size_t>(Kind::stream_ordered)] = count;
  }
  // Returns the name of the verdict on the request.
  std::string_view verdict() const { return verdict_name(judge(given).verdict); }
  // Returns a figure or text of the verdict's proof by its name; null (std::monostate) if the proof
  // has none of this name.
  model::ProofValue proof_value(std::string_view name) const {
    for (const auto& [known, value] : judge(given).proof)
      if (known == name) return value;
    return std::monostate();
  }
  // Returns a figure of the verdict's proof by its name. Fails the test, and returns 0, if the
  // proof has no such figure.
  std::uint64_t proof(std::string_view name) const {
    const model::ProofValue value = proof_value(name);
    EXPECT_TRUE(std::holds_alternative<std::uint64_t>(value)) << name;
    return value.index() == 1 ? std::get<1>(value) : 0;
  }
  // Returns true if the verdict's proof has a figure or text of this name.
  bool proves(std::string_view name) const { return proof_value(name).index() != 0; }

  // The refused request with all facts that the test has stated.
  IncidentCase given;
};

}  // namespace cuwarden
