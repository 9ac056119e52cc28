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

class Shortage {
 public:
  // The case has to outlive the object.
  explicit Shortage(const IncidentCase& given);

  const IncidentCase& given() const { return case_; }
  const ledger::IncidentView& incident() const { return case_.incident; }
  bool is_of_host() const { return is_host_memory(case_.kind); }

  // Null if the fact is unknown or says that there is no limit.
  model::Figure fact(ledger::Fact which) const;
  model::Figure free_bytes() const { return limited(free_); }
  // Null: the call does not say.
  model::Figure requested_bytes() const;
  // 0 if the account of the device has no such item.
  std::uint64_t in_account(std::string_view item) const;

  // Bytes that the device lacked for the request; 0: none. Null: unknown.
  model::Figure missing() const { return missing_; }
  // True if the request is for memory of the device, and the device lacked some.
  bool lacks_memory() const;
  // Bytes that the request takes of the device.
  std::uint64_t taken() const { return taken_; }
  // True if so much memory, held for no use, is worth to be named as the cause.
  bool is_worth_it(std::uint64_t bytes) const;

  // Live bytes that this process allocated on the device.
  std::uint64_t own() const { return own_; }
  // Bytes that no allocation call asked for.
  std::uint64_t implicit() const;
  // Bytes of other processes: those that NVML lists, and those that this process opened.
  std::uint64_t listed() const;
  // Bytes that neither this process nor NVML's list accounts for.
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
