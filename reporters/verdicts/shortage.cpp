#include "reporters/verdicts/shortage.hpp"

#include <algorithm>

namespace cuwarden {
namespace {

using ledger::Asked;
using ledger::Fact;

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t device_page_bytes = 2 * mib;
// Free bytes that the driver hands out to no request (measured: 8 MiB were refused with 13.06 MiB
// free; mostly the driver keeps less).
constexpr std::uint64_t kept_by_driver = 6 * mib;
// Free bytes of the device that a spilled request leaves free.
constexpr std::uint64_t kept_by_spilling = 64 * mib;
// Bytes of a context with the code of its kernels, if its size is not known.
constexpr std::uint64_t usual_context = 1024 * mib;
// Approximate bytes that the creation of a context needs.
constexpr std::uint64_t needed_by_context = 640 * mib;
// Waste counts as a cause by its share of the device. Waste below 1/400 never counts, and waste
// above 1/50 always does. In between it must be at least a quarter of the request.
constexpr std::uint64_t least_waste_share = 400, large_waste_share = 50, part_of_request = 4;

}  // namespace

Shortage::Shortage(const IncidentCase& given) : case_(given), account_(account_of(given)) {
  total_ = incident().fact(Fact::total_bytes);
  free_ = free_bytes_of(incident());
  taken_ = taken_on_device(incident().bytes, case_.kind == Kind::stream_ordered);
  if (incident().asked == Asked::context) taken_ = needed_by_context;
  needed_ = std::max(taken_, device_page_bytes) + kept_by_driver;
  // A graph's launch does not say how many bytes it needs.
  if (free_ && incident().asked != Asked::graph) {
    const std::uint64_t usable = *free_ + page_cache();
    missing_ = needed_ > usable ? needed_ - usable : 0;
  }
  if (account_) own_ = account_->own();
}

model::Figure Shortage::limited(std::optional<std::uint64_t> fact) {
  return fact == ledger::no_limit ? std::nullopt : fact;
}

model::Figure Shortage::fact(Fact which) const { return limited(incident().fact(which)); }

model::Figure Shortage::requested_bytes() const {
  return incident().bytes == 0 ? std::nullopt : model::Figure(incident().bytes);
}

std::uint64_t Shortage::held_by(Holder holder) const { return account_ ? account_->of(holder) : 0; }

std::uint64_t Shortage::opened() const { return account_ ? account_->live(Kind::imported) : 0; }

bool Shortage::lacks_memory() const {
  const Asked asked = incident().asked;
  return missing_.value_or(0) > 0 && (asked == Asked::memory || asked == Asked::context);
}

bool Shortage::is_worth_it(std::uint64_t bytes) const {
  return total_ && bytes >= *total_ / least_waste_share &&
         (bytes >= *total_ / large_waste_share || bytes >= needed_ / part_of_request);
}

std::uint64_t Shortage::implicit() const { return account_ ? account_->implicit() : 0; }

std::uint64_t Shortage::listed() const {
  // Memory of other processes that this process has opened counts as theirs.
  return held_by(Holder::other_processes) + opened();
}

std::uint64_t Shortage::unlisted() const {
  // The verdict accuses no owner if the account has gaps. Some bytes of contexts are not seen,
  // and managed memory may take some of the device.
  if (!account_ || !incident().fact(Fact::slab_locked_bytes) ||
      !incident().fact(Fact::context_bytes))
    return 0;
  const std::uint64_t hidden = (held_by(Holder::context) == 0 ? usual_context : usual_context / 4) +
                               incident().live_bytes[static_cast<std::size_t>(Kind::managed)];
  const std::int64_t left = account_->unexplained();
  return left > 0 && static_cast<std::uint64_t>(left) > hidden
             ? static_cast<std::uint64_t>(left) - hidden
             : 0;
}

bool Shortage::is_the_most(std::uint64_t bytes) const { return is_the_most_of(bytes, implicit()); }

bool Shortage::is_the_most_beside_a_context(std::uint64_t bytes) const {
  return is_the_most_of(bytes, implicit() - std::min(held_by(Holder::context), needed_by_context));
}

bool Shortage::is_the_most_of(std::uint64_t bytes, std::uint64_t implicit) const {
  return bytes != 0 && bytes >= missing_.value_or(0) &&
         bytes == std::max({others(), implicit, own_, held_by(Holder::mempool_idle)});
}

std::string Shortage::with_rescues(std::string setting) const {
  if (case_.rescues) return setting;
  return "CUWARDEN_POOL=auto" + (setting.empty() ? "" : " and " + setting);
}

std::string Shortage::waiting_wants() const {
  return with_rescues(case_.waits ? "" : "CUWARDEN_WAIT=10m");
}

std::string Shortage::spilling_wants() const {
  if (case_.kind != Kind::device || incident().asked != Asked::memory || !missing_) return {};
  const std::uint64_t gib = (*missing_ + kept_by_spilling) / (1024 * mib) + 1;
  return with_rescues(case_.spills ? "" : "CUWARDEN_SPILL=" + std::to_string(gib) + "GiB");
}

}  // namespace cuwarden
