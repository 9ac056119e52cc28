// Ends of streams, modules and executable graphs: what they give back to the device.
#include <algorithm>
#include <bit>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/tracking/implicit_objects.hpp"

namespace cuwarden::tracking {

std::uint64_t ImplicitObjects::end_code_of(const ImplicitObject& object,
                                           DeviceOrdinal here) noexcept {
  std::uint64_t bytes_here = 0;
  const auto end = [&](ImplicitObject code) {
    for (std::uint64_t left = devices_with_code_.load(relaxed); left != 0; left &= left - 1) {
      code.loaded_on = DeviceOrdinal{std::countr_zero(left)};
      const ledger::TakenRecord record = ledger_.allocations.take(code.space, code.address());
      if (!record) continue;
      const std::uint64_t bytes = record.fields.bytes.value;
      if (code.loaded_on == here) {
        bytes_here += bytes;
      } else {
        book(code.kind, code.loaded_on, -static_cast<std::int64_t>(bytes));
        // Memory of a device that is not read now has changed.
        implicit_.bases.memory_may_change();
      }
    }
    forget_waiting([&](const Waiting& entry) { return entry.is_of(code); });
  };
  owners.remove_all_of({object.space, object.handle}, [&](std::uint64_t kernel) {
    end({Kind::module, Space::kernel, kernel});
  });
  if (object.space == Space::library) end(object);
  return bytes_here;
}

ImplicitObjects::Ending ImplicitObjects::begin_end(const ImplicitObject& object,
                                                   DeviceOrdinal here) noexcept {
  const ErrnoGuard keep;
  Ending ending{ledger_.allocations.take(object.space, object.address()), here};
  const bool has_waited = end_waiting(object, ending.record.fields.group);
  if (ending.record) ending.device = ledger_.groups.device_of(ending.record.fields.group);
  if (has_waited) ending.record.fields.flags |= ledger::record_bytes_uncertain;
  const FreeBases::Base base = implicit_.bases.of(ending.device);
  ending.base_version = base.is_known ? base.version : 0;
  if (object.kind == Kind::module) ending.code_bytes = end_code_of(object, ending.device);
  return ending;
}

void ImplicitObjects::ended(Kind kind, const Ending& ending, Taken taken) noexcept {
  const ErrnoGuard keep;
  const std::uint64_t known = ending.code_bytes + ending.record.fields.bytes.value;
  if (taken) {
    const auto given_back = static_cast<std::uint64_t>(-std::min<std::int64_t>(*taken, 0));
    const bool is_uncertain = (ending.record.fields.flags & ledger::record_bytes_uncertain) != 0;
    if (!is_uncertain && !has_managed(ending.device))
      given_back_of(kind).was_measured(known, given_back);
    return book(
        kind, ending.device,
        -static_cast<std::int64_t>(is_uncertain ? std::min(given_back, known) : given_back));
  }
  const std::uint64_t given = given_back_of(kind).likely(known);
  book(kind, ending.device, -static_cast<std::int64_t>(given));
  implicit_.bases.took(ending.device, -static_cast<std::int64_t>(given), ending.base_version);
  implicit_.bases.was_not_measured(ending.device);
}

bool ImplicitObjects::end_waiting(const ImplicitObject& object, GroupId group) noexcept {
  if (count_.load(relaxed) == 0) return false;
  const Locked locked(lock_);
  if (!locked) return false;
  constexpr std::uint64_t any_bytes = std::uint64_t{2} << 20;
  const bool is_kept = given_back_of(object.kind).likely(any_bytes) <= any_bytes / 2;
  std::uint32_t count = count_.load(relaxed);
  bool has_waited = false;
  for (std::uint32_t i = 0; i < count;) {
    Waiting& entry = waiting_[i];
    if (!entry.is_of(object)) {
      ++i;
      continue;
    }
    has_waited = true;
    if (group.value != 0) entry.group = group;
    auto* const end = waiting_.data() + count;
    auto* const like = std::find_if(waiting_.data(), end, [&](const Waiting& other) {
      return other.ended != 0 && other.group == entry.group && other.device == entry.device &&
             other.base_version == entry.base_version && other.context == entry.context;
    });
    if (is_kept && like == end) {
      waiting_[i++].ended = 1;
      continue;
    }
    if (is_kept) ++like->ended;
    entry = waiting_[--count];
  }
  count_.store(count, relaxed);
  return has_waited;
}

void ImplicitObjects::not_ended(const Ending& ending) noexcept {
  ledger_.allocations.put_back(ending.record);
}

}  // namespace cuwarden::tracking
