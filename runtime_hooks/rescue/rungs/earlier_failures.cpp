#include "runtime_hooks/rescue/rungs/earlier_failures.hpp"

#include "runtime_hooks/core/atomic_field.hpp"

namespace cuwarden::rescue {
namespace {

constexpr std::uint64_t again_after_ns = 100'000'000;

}  // namespace

bool EarlierFailures::allow_another(const Request& request, const RescueConditions& now,
                                    bool has_last_resorts, std::uint32_t reclaimers_now,
                                    std::uint64_t now_ns) const noexcept {
  const std::uint64_t failed_ns = time_ns.load(relaxed);
  return failed_ns == 0 || now_ns >= failed_ns + again_after_ns ||
         request.bytes < bytes.load(relaxed) || now.live_bytes < live_bytes.load(relaxed) ||
         now.noted != noted.load(relaxed) ||
         (has_last_resorts && now.is_last_resort_due &&
          (!tried_all.load(relaxed) || reclaimers_now != reclaimers.load(relaxed) ||
           (now.can_spill() && !tried_spill.load(relaxed))));
}

void EarlierFailures::found_nothing(const Request& request, const RescueConditions& now,
                                    bool all_were_tried, std::uint32_t reclaimers_now,
                                    std::uint64_t now_ns) noexcept {
  live_bytes.store(now.live_bytes, relaxed);
  bytes.store(request.bytes, relaxed);
  noted.store(now.noted, relaxed);
  tried_all.store(all_were_tried, relaxed);
  tried_spill.store(all_were_tried && now.can_spill(), relaxed);
  reclaimers.store(reclaimers_now, relaxed);
  time_ns.store(now_ns, relaxed);
}

}  // namespace cuwarden::rescue
