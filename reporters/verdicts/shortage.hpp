// A refused request with the amounts that verdicts are made of.
#pragma once

#include <optional>
#include <string_view>

#include "reporters/model/values.hpp"
#include "reporters/verdicts/incident_case.hpp"

namespace cuwarden {

// True if memory of the kind lies, or may lie, in the host's memory.
constexpr bool is_host_memory(Kind kind) {
  return kind == Kind::pinned || kind == Kind::registered || kind == Kind::managed;
}

// Figures that predicates ask of an incident. Bytes are those at the refusal.
class Shortage {
 public:
  // The case has to outlive the object.
  explicit Shortage(const IncidentCase& given);

  const IncidentCase& given() const { return case_; }
  const ledger::IncidentView& incident() const { return case_.incident; }
  // True if the request was for host memory.
  bool is_of_host() const { return is_host_memory(case_.kind); }

  // Null if the fact is unknown or says that there is no limit.
  model::Figure fact(ledger::Fact which) const;
  model::Figure free_bytes() const { return limited(free_); }
  // Returns the size of the request; null if the call has no size.
  model::Figure requested_bytes() const;
  // 0 if the account of the device has no such item.
  std::uint64_t in_account(std::string_view item) const;

  // Returns the bytes that the device lacked for the request; 0 if it lacked none; null if unknown.
  model::Figure missing() const { return missing_; }
  // True if the request is for memory of the device, and the device lacked some.
  bool lacks_memory() const;
  // Returns the bytes that the request would take of the device, with rounding.
  std::uint64_t taken() const { return taken_; }
  // True if `bytes` of unused memory are enough to be named as the cause of the refusal.
  bool is_worth_it(std::uint64_t bytes) const;

  // Returns the live bytes that this process allocated on the device.
  std::uint64_t own() const { return own_; }
  // Returns the bytes that no allocation call asked for: contexts, code, local memory, heaps,
  // streams.
  std::uint64_t implicit() const;
  // Returns the bytes of other processes: of those that NVML lists, and their memory that this
  // process opened.
  std::uint64_t listed() const;
  // Returns the used bytes that belong neither to this process nor to a process that NVML lists.
  std::uint64_t unlisted() const;
  std::uint64_t others() const { return listed() + unlisted(); }
  // True if no other holder has more than `bytes`, and the request would have fitted without them.
  bool is_the_most(std::uint64_t bytes) const;

 private:
  static model::Figure limited(std::optional<std::uint64_t> fact);

  const IncidentCase& case_;
  std::optional<Account> account_;
  model::Figure total_, free_, missing_;
  std::uint64_t taken_ = 0, needed_ = 0, own_ = 0;
};

}  // namespace cuwarden
