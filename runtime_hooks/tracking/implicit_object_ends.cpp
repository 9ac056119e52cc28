// Ends of streams, modules and executable graphs: what they give back to the device.
#include <algorithm>
#include <bit>
#include <utility>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/ledger/write/allocation_records/allocations.hpp"
#include "runtime_hooks/ledger/write/allocation_records/group_table.hpp"
#include "runtime_hooks/tracking/implicit_objects.hpp"

namespace cuwarden::tracking {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

}  // namespace

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
        implicit_.bases.memory_may_change();  // that of a device which is not read now
      }
    }
    forget_waiting([&](const Waiting& entry) {
      return entry.object.space == code.space && entry.object.handle == code.handle;
    });
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
  bool has_waited = false;
  forget_waiting([&](const Waiting& entry) {
    const bool is_it = entry.object.space == object.space && entry.object.handle == object.handle;
    has_waited = has_waited || is_it;
    if (is_it) add_waited_end(entry);
    return is_it;
  });
  Ending ending{ledger_.allocations.take(object.space, object.address()), here};
  if (ending.record) ending.device = ledger_.groups.device_of(ending.record.fields.group);
  if (has_waited) ending.record.fields.flags |= ledger::record_bytes_uncertain;
  ending.base_version = implicit_.bases.of(ending.device).version;
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
  add_unmeasured_end(kind, ending.device, known, given, ending.base_version);
}

void ImplicitObjects::add_unmeasured_end(Kind kind, DeviceOrdinal device, std::uint64_t known,
                                         std::uint64_t given, FreeBases::Version before) noexcept {
  if (known == 0 || !has_sums(device) || implicit_.bases.of(device).version != before) return;
  const Locked locked(lock_);
  if (!locked) return;
  UnsettledEnds& ends = ends_[static_cast<std::size_t>(device.value)];
  if (ends.base_version != before) ends = {.base_version = before};
  ends.known[index_of(kind)] += known;
  ends.given[index_of(kind)] += given;
  devices_with_ends_.fetch_or(std::uint64_t{1} << device.value, relaxed);
}

// The caller, forget_waiting(), holds the lock.
void ImplicitObjects::add_waited_end(const Waiting& entry) noexcept {
  constexpr std::uint64_t any_bytes = std::uint64_t{2} << 20;
  if (given_back_of(entry.object.kind).likely(any_bytes) > any_bytes / 2) return;
  UnsettledEnds& ends = ends_[static_cast<std::size_t>(entry.device.value)];
  if (ends.base_version != entry.base_version) ends = {.base_version = entry.base_version};
  ++ends.waited[index_of(entry.object.kind)];
  devices_with_ends_.fetch_or(std::uint64_t{1} << entry.device.value, relaxed);
}

ImplicitObjects::UnsettledEnds ImplicitObjects::take_ends(DeviceOrdinal device,
                                                          FreeBases::Version version) noexcept {
  const UnsettledEnds ends = std::exchange(ends_[static_cast<std::size_t>(device.value)], {});
  devices_with_ends_.fetch_and(~(std::uint64_t{1} << device.value), relaxed);
  return ends.base_version == version ? ends : UnsettledEnds{};
}

void ImplicitObjects::correct(DeviceOrdinal device, const UnsettledEnds& ends,
                              std::int64_t missing) noexcept {
  for (const Kind kind : {Kind::stream, Kind::module, Kind::graph_exec}) {
    const auto known = static_cast<std::int64_t>(ends.known[index_of(kind)]);
    const auto given = static_cast<std::int64_t>(ends.given[index_of(kind)]);
    // No end gives back more than all, or less than nothing.
    const std::int64_t less = std::clamp(missing, given - known, given);
    book(kind, device, less);
    given_back_of(kind).was_measured(static_cast<std::uint64_t>(known),
                                     static_cast<std::uint64_t>(given - less));
    missing -= less;
  }
}

void ImplicitObjects::not_ended(const Ending& ending) noexcept {
  ledger_.allocations.put_back(ending.record);
}

}  // namespace cuwarden::tracking
