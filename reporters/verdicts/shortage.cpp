#include "reporters/verdicts/shortage.hpp"

#include <algorithm>

namespace cuwarden {
namespace {

using ledger::Asked;
using ledger::Fact;

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t page = 2 * mib;
// The driver does not give away the last of a device: requests fail while so much is free
// (measured: 8 MiB with 13.06 MiB free; mostly it is less).
constexpr std::uint64_t kept_by_driver = 6 * mib;
// Bytes of a context with the code of its kernels, where nothing says what it takes.
constexpr std::uint64_t usual_context = 1024 * mib;
// Bytes that a request for a context needs, about.
constexpr std::uint64_t needed_by_context = 640 * mib;
// Parts of the device: less waste than the first did not bring a program to its end, more than the
// second always has its part in it. Between the two it must be worth a part of the request.
constexpr std::uint64_t least_waste_share = 400, large_waste_share = 50, part_of_request = 4;

}  // namespace

Shortage::Shortage(const IncidentCase& given) : case_(given), account_(account_of(given)) {
  total_ = incident().fact(Fact::total_bytes);
  free_ = free_bytes_of(incident());
  const bool by_page = case_.kind != Kind::stream_ordered && incident().bytes > mib;
  taken_ = by_page ? (incident().bytes + page - 1) / page * page : incident().bytes;
  if (incident().asked == Asked::context) taken_ = needed_by_context;
  needed_ = std::max(taken_, page) + kept_by_driver;
  // The call does not say what a graph needs.
  if (free_ && incident().asked != Asked::graph) missing_ = needed_ > *free_ ? needed_ - *free_ : 0;
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
  return missing_.value_or(0) > 0 &&
         (asked == Asked::memory || asked == Asked::graph || asked == Asked::context);
}

bool Shortage::is_worth_it(std::uint64_t bytes) const {
  return total_ && bytes >= *total_ / least_waste_share &&
         (bytes >= *total_ / large_waste_share || bytes >= needed_ / part_of_request);
}

std::uint64_t Shortage::implicit() const { return account_ ? account_->implicit() : 0; }

std::uint64_t Shortage::listed() const {
  // Memory of others that this process opened is theirs.
  return held_by(Holder::other_processes) + opened();
}

std::uint64_t Shortage::unlisted() const {
  // The verdict accuses no owner if the account has holes. A context takes some bytes unseen, and
  // managed memory may have some on the device.
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

bool Shortage::is_the_most(std::uint64_t bytes) const {
  return bytes != 0 && bytes >= missing_.value_or(0) &&
         bytes == std::max({others(), implicit(), own_, held_by(Holder::mempool_idle)});
}

}  // namespace cuwarden
