#include "tools/cuwarden/ledgers/time_for_users.hpp"

#include <algorithm>

namespace cuwarden {
namespace {

constexpr int pieces_of_one_user = 5;

}  // namespace

std::chrono::nanoseconds TimeForUsers::left(uid_t user) const {
  const auto spent = spent_.find(user);
  if (spent == spent_.end()) return each_;
  return std::min(each_, each_ * pieces_of_one_user - spent->second);
}

void TimeForUsers::spend(uid_t user, std::chrono::nanoseconds time) { spent_[user] += time; }

}  // namespace cuwarden
