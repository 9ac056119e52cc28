#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/ledger/read/reader_rows.hpp"

namespace cuwarden::ledger {

std::optional<IncidentView> Reader::incident(std::uint64_t index) const noexcept {
  const auto* const found = published<Incident>(RegionId::incidents, index);
  if (found == nullptr) return std::nullopt;
  IncidentView view;
  view.id = IncidentId{static_cast<std::uint32_t>(index)};
  view.group = GroupId{load_field(found->group)};
  view.thread = ThreadId{load_field(found->thread)};
  view.result = load_field(found->result);
  view.time_ns = load_field(found->time_ns);
  view.bytes = load_field(found->bytes);
  view.asked = load_field(found->asked);
  if (static_cast<std::uint8_t>(view.asked) >= asked_count) return std::nullopt;
  view.repeats = get(found->repeats);
  view.last_ns = get(found->last_ns);
  view.last_bytes = get(found->last_bytes);
  view.recovered = get(found->recovered);
  view.failed = get(found->failed);
  for (std::size_t i = 0; i < rung_count; ++i) view.rescued[i] = get(found->rescued[i]);
  view.rescued_bytes = get(found->rescued_bytes);
  for (std::size_t i = 0; i < rung_count; ++i) {
    const LeftOut reason = get(found->left_out[i]);
    if (static_cast<std::uint8_t>(reason) < left_out_count) view.left_out[i] = reason;
  }
  for (std::size_t i = 0; i < kind_count; ++i) {
    view.live_bytes[i] = load_field(found->live_bytes[i]);
    view.live_count[i] = load_field(found->live_count[i]);
  }
  for (std::size_t i = 0; i < fact_count; ++i) view.facts[i] = get(found->facts[i]);
  return view;
}

std::optional<IncidentHolderView> Reader::incident_holder(std::uint64_t index) const noexcept {
  const auto* const found = published<IncidentHolder>(RegionId::incident_holders, index);
  if (found == nullptr) return std::nullopt;
  const auto known = [](const std::atomic<std::uint64_t>& number) {
    const std::uint64_t value = get(number);
    return value == unknown_value ? std::nullopt : std::optional(value);
  };
  return IncidentHolderView{{.group = GroupId{load_field(found->group)},
                             .count = load_field(found->count),
                             .bytes = load_field(found->bytes),
                             .growth_bytes_per_minute = known(found->growth_bytes_per_minute),
                             .slab_locked_bytes = known(found->slab_locked_bytes)},
                            IncidentId{load_field(found->incident)}};
}

std::optional<IncidentProcessView> Reader::incident_process(std::uint64_t index) const noexcept {
  const auto* const found = published<IncidentProcess>(RegionId::incident_processes, index);
  if (found == nullptr) return std::nullopt;
  constexpr std::uint64_t longest_name = 256;
  IncidentProcessView view;
  view.incident = IncidentId{load_field(found->incident)};
  view.pid = load_field(found->pid);
  view.parent = load_field(found->parent);
  view.bytes = load_field(found->bytes);
  view.seen_by = load_field(found->seen_by);
  view.run_state = load_field(found->run_state);
  view.is_of_another_user = load_field(found->is_of_another_user) != 0;
  view.start_realtime_ns = load_field(found->start_realtime_ns);
  view.program = text(found->program, longest_path);
  view.parent_program = text(found->parent_program, longest_path);
  view.user = text(found->user, longest_name);
  view.job = text(found->job, longest_name);
  view.container = text(found->container, longest_name);
  view.pod = text(found->pod, longest_name);
  view.unit = text(found->unit, longest_name);
  if (view.pid == 0 || static_cast<std::uint8_t>(view.seen_by) >= seen_by_count ||
      static_cast<std::uint8_t>(view.run_state) >= run_state_count)
    return std::nullopt;
  return view;
}

std::optional<IncidentClassView> Reader::incident_class(std::uint64_t index) const noexcept {
  const auto* const found = published<IncidentClass>(RegionId::incident_classes, index);
  if (found == nullptr) return std::nullopt;
  return IncidentClassView{{load_field(found->class_bytes), load_field(found->slab_count),
                            load_field(found->live_count), load_field(found->live_bytes)},
                           IncidentId{load_field(found->incident)}};
}

std::optional<IncidentRungView> Reader::incident_rung(std::uint64_t index) const noexcept {
  const auto* const found = published<IncidentRung>(RegionId::incident_rungs, index);
  if (found == nullptr) return std::nullopt;
  const IncidentRungView view{{.order = load_field(found->order),
                               .rung = load_field(found->rung),
                               .outcome = load_field(found->outcome),
                               .duration_ns = load_field(found->duration_ns),
                               .name = text(found->name, 64)},
                              IncidentId{load_field(found->incident)}};
  if (static_cast<std::size_t>(view.rung) >= rung_count ||
      static_cast<std::uint8_t>(view.outcome) >= rung_outcome_count)
    return std::nullopt;
  return view;
}

std::optional<IncidentSlabView> Reader::incident_slab(std::uint64_t index) const noexcept {
  const auto* const found = published<IncidentSlab>(RegionId::incident_slabs, index);
  if (found == nullptr) return std::nullopt;
  IncidentSlabView view{{.address = DeviceAddress{load_field(found->address)},
                         .live_count = load_field(found->live_count),
                         .live_bytes = load_field(found->live_bytes)},
                        IncidentId{load_field(found->incident)}};
  for (std::size_t i = 0; i < slab_group_count; ++i) {
    const std::uint32_t group = load_field(found->groups[i]);
    if (group < rows(RegionId::groups)) view.groups[i] = GroupId{group};
  }
  return view;
}

}  // namespace cuwarden::ledger
