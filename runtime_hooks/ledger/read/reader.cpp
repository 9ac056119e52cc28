// Each number is loaded once and checked before use, because the file's owner may change it between
// a check and a second look.
#include "runtime_hooks/ledger/read/reader.hpp"

#include <unistd.h>

#include <algorithm>

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/ledger/format/geometry.hpp"
#include "runtime_hooks/ledger/format/group_counts.hpp"
#include "runtime_hooks/ledger/read/reader_rows.hpp"

namespace cuwarden::ledger {
namespace {

// Longest text that is read; writers make no longer ones. Without a bound, a few damaged rows could
// each return all of the strings. Linux allows no longer path and, in a command line, no longer
// word.
constexpr std::uint64_t longest_text = 128 << 10;

// Returns the most rows of the region that are read. Loops over devices run inside loops over
// series, so both are bounded; no machine has more of them, whatever room their regions have.
std::uint64_t most_rows(RegionId id) noexcept {
  switch (id) {
    case RegionId::series:
      return 4096;
    case RegionId::devices:
      return 1024;
    case RegionId::incidents:
      return 2048;
    case RegionId::incident_slabs:
      return 1 << 18;
    case RegionId::incident_holders:
    case RegionId::incident_classes:
    case RegionId::incident_rungs:
    case RegionId::incident_processes:
    case RegionId::frameworks:
      return 16384;
    default:
      return UINT64_MAX;
  }
}

bool is_kind(Kind kind) { return static_cast<std::uint8_t>(kind) < kind_count; }

}  // namespace

std::optional<Reader> Reader::open(std::span<const std::byte> bytes, ReadError& error) noexcept {
  const auto fail = [&error](const char* text) {
    error.text = text;
    return std::nullopt;
  };
  if (bytes.size() < sizeof(Header)) return fail("the file is shorter than a ledger's header");
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(Header) != 0) {
    return fail("the ledger's bytes are not aligned");
  }
  Reader reader(bytes);
  const Header& header = reader.header();
  if (load_field(header.magic) != magic) return fail("the file is not a cuwarden ledger");
  if (load_field(header.version) != layout_version) {
    return fail("the ledger was written by another version of cuwarden");
  }
  if (get(header.published) != 1) return fail("the ledger was never completed");
  if (load_field(header.header_bytes) != sizeof(Header) ||
      load_field(header.checksum) != header_checksum(header)) {
    return fail("the ledger's header is damaged");
  }
  reader.own_process_ =
      load_field(header.mapped_at) == reinterpret_cast<std::uintptr_t>(bytes.data()) &&
      load_field(header.process.pid) == static_cast<std::uint32_t>(getpid());
  for (std::size_t i = 0; i < region_count; ++i) {
    const Region& region = header.regions[i];
    const std::uint64_t offset = load_field(region.offset);
    const std::uint64_t capacity = load_field(region.capacity_bytes);
    const std::uint32_t row_bytes = row_bytes_of(static_cast<RegionId>(i));
    if (load_field(region.row_bytes) != row_bytes || offset % page_bytes != 0) {
      return fail("the ledger's tables are damaged");
    }
    // If bytes are missing at the end of the file, only the rows in those bytes are lost.
    if (offset >= bytes.size()) continue;
    const std::uint64_t there = std::min<std::uint64_t>(capacity, bytes.size() - offset);
    reader.tables_[i] = {offset, std::min(there / row_bytes, most_rows(static_cast<RegionId>(i))),
                         row_bytes};
  }
  return reader;
}

const Header& Reader::header() const noexcept {
  return *reinterpret_cast<const Header*>(bytes_.data());
}

std::uint64_t Reader::rows(RegionId id) const noexcept {
  const std::size_t i = index_of(id);
  const Region& region = header().regions[i];
  const std::uint64_t used = std::min(get(region.used), tables_[i].rows);
  if (own_process_) return used;
  // A division for each row that is read took most of the time in a damaged ledger.
  const std::uint64_t in_file = get(region.file_bytes);
  const std::uint64_t row_bytes = tables_[i].row_bytes;
  return used * row_bytes <= in_file ? used : in_file / row_bytes;
}

std::string_view Reader::text(const StringRef& ref, std::uint64_t longest) const noexcept {
  const std::uint64_t offset = load_field(ref.offset), length = load_field(ref.length);
  if (length == 0 || length > longest || offset == 0 || offset + length > rows(RegionId::strings)) {
    return {};
  }
  const std::byte* const start = bytes_.data() + tables_[index_of(RegionId::strings)].offset;
  return {reinterpret_cast<const char*>(start + offset), length};
}

ProcessView Reader::process() const noexcept {
  const Header& header = this->header();
  const Process& process = header.process;
  ProcessView view;
  view.pid = load_field(process.pid);
  view.parent = load_field(process.parent);
  view.start_realtime_ns = load_field(process.start_realtime_ns);
  view.start_monotonic_ns = load_field(process.start_monotonic_ns);
  view.start_ticks = load_field(process.start_ticks);
  view.pid_namespace = load_field(process.pid_namespace);
  view.lock_held = load_field(process.lock_held) == 1;
  view.file_device = load_field(process.file_device);
  view.file_inode = load_field(process.file_inode);
  view.boot_id = process.boot_id;
  view.memory_cgroup = text(process.memory_cgroup, longest_path);
  view.memory_cgroup_inode = load_field(process.memory_cgroup_inode);
  view.memory_cgroup_oom_kills = load_field(process.memory_cgroup_oom_kills);
  view.host = text(process.host, longest_path);
  view.program = text(process.program, longest_path);
  view.command_line = text(process.command_line, longest_text);
  view.report_path = text(process.report_path, longest_path);
  view.steps = get(header.steps);
  const std::uint64_t search = get(header.reach_search);
  if (search < reach_search_count) view.reach_search = static_cast<ReachSearch>(search);
  view.reach_scanned_bytes = get(header.reach_scanned_bytes);
  view.reach_ns = get(header.reach_ns);
  const std::uint32_t end = get(header.end_reason);
  view.report_written = get(header.report_written) != 0;
  if (const std::uint32_t number = get(header.report_number)) view.report_number = number - 1;
  view.end_reason = end <= static_cast<std::uint32_t>(EndReason::unknown)
                        ? static_cast<EndReason>(end)
                        : EndReason::unknown;
  if (get(header.exit_status_known) == 1) {
    view.exit_status = static_cast<int>(get(header.exit_status));
  }
  view.driver_version = static_cast<int>(get(header.driver_version));
  view.runtime_version = static_cast<int>(get(header.runtime_version));
  view.reasons = get(header.reasons);
  const std::uint32_t operation = get(header.growth_operation);
  if (operation <= static_cast<std::uint32_t>(GrowthOperation::allow_access)) {
    view.growth_operation = static_cast<GrowthOperation>(operation);
    view.growth_error = static_cast<int>(get(header.growth_error));
  }
  for (std::size_t i = 0; i < stack_exceptions; ++i) view.stacks_cut[i] = get(header.stacks_cut[i]);
  view.recorded_calls = get(header.recorded_calls);
  const std::uint64_t hooks = rows(RegionId::hooks);
  for (std::uint64_t i = 0; i < hooks; ++i) view.recorded_calls += calls_of(i);
  view.unknown_frees = get(header.unknown_frees);
  view.superseded = get(header.superseded);
  view.pinned_served_count = get(header.pinned_served_count);
  view.pinned_served_bytes = get(header.pinned_served_bytes);
  view.pinned_held_bytes = get(header.pinned_held_bytes);
  view.cut_short = load_field(header.file_bytes) > bytes_.size();
  view.ledger_bytes = sizeof(Header);
  for (std::size_t i = 0; i < region_count; ++i) {
    view.ledger_bytes += rows(static_cast<RegionId>(i)) * tables_[i].row_bytes;
  }
  return view;
}

std::optional<RecordView> Reader::record(std::uint64_t index) const noexcept {
  const auto* const found = row<Record>(RegionId::records, index);
  if (found == nullptr) return std::nullopt;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const std::uint32_t state = get(found->state);
    if ((state & 1) == 0) return std::nullopt;
    RecordView view;
    view.id = RecordId{static_cast<std::uint32_t>(index)};
    view.group = GroupId{load_field(found->group)};
    view.address = DeviceAddress{load_field(found->address)};
    view.bytes = ByteCount{load_field(found->bytes)};
    view.time_ns = load_field(found->time_ns);
    view.context = ContextId{load_field(found->context)};
    view.related = load_field(found->related);
    view.thread = ThreadId{load_field(found->thread)};
    view.mappings = load_field(found->mappings);
    view.references = load_field(found->references);
    view.space = load_field(found->space);
    const std::uint8_t flags = load_field(found->flags);
    view.flags = flags & static_cast<std::uint8_t>(~record_reach_bits);
    const auto reach = static_cast<std::uint8_t>(flags >> record_reach_shift);
    view.reach = reach < reach_count ? static_cast<Reach>(reach) : Reach::unknown;
    view.difference = load_field(found->difference);
    if (get(found->state) != state) continue;
    if (view.space > Space::framework_block) return std::nullopt;
    return view;
  }
  // The row was reused faster than it could be read, so its allocations do not last.
  return std::nullopt;
}

std::optional<GroupView> Reader::group(std::uint64_t index) const noexcept {
  const auto* const found = published<Group>(RegionId::groups, index);
  if (found == nullptr) return std::nullopt;
  GroupView view;
  view.id = GroupId{static_cast<std::uint32_t>(index)};
  view.stack = StackId{load_field(found->stack)};
  view.api = HookId{load_field(found->api)};
  view.kind = load_field(found->kind);
  if (!is_kind(view.kind)) return std::nullopt;
  view.device = DeviceOrdinal{load_field(found->device)};
  const GroupCounts counts = counts_of(*found, view.id.value, [this](std::uint32_t group_shard) {
    return row<GroupShard>(RegionId::group_shards, group_shard);
  });
  view.allocations = counts.allocations;
  view.frees = counts.frees;
  view.longest_life = counts.longest_life;
  view.live_count = counts.live_count;
  view.live_bytes = counts.live_bytes;
  view.allocated_bytes = counts.allocated_bytes;
  view.last_ns = counts.last_ns;
  view.released_count = get(found->released_count);
  view.released_bytes = get(found->released_bytes);
  view.failures = get(found->failures);
  view.first_ns = get(found->first_ns);
  view.at_peak_count = get(found->at_peak_count);
  view.at_peak_bytes = get(found->at_peak_bytes);
  return view;
}

std::optional<ThreadView> Reader::thread(std::uint64_t index) const noexcept {
  const auto* const found = published<Thread>(RegionId::threads, index);
  if (found == nullptr) return std::nullopt;
  ThreadView view{ThreadId{static_cast<std::uint32_t>(index)}, load_field(found->tid),
                  fixed_text(found->name, sizeof found->name), load_field(found->first_ns)};
  const RequestUnderWay& request = found->under_way;
  const IncidentId incident{get(request.incident)};
  const Rung rung = get(request.rung);
  if (incident.value != 0 && static_cast<std::size_t>(rung) < rung_count)
    view.under_way = {incident, rung, get(request.since_ns), get(request.bytes)};
  return view;
}

std::optional<SeriesView> Reader::series(std::uint64_t index) const noexcept {
  const auto* const found = published<Series>(RegionId::series, index);
  if (found == nullptr) return std::nullopt;
  SeriesView view;
  const std::uint8_t kind = load_field(found->kind);
  view.host_rss = kind == series_host_rss;
  if (!view.host_rss) {
    view.kind = static_cast<Kind>(kind);
    if (!is_kind(view.kind)) return std::nullopt;
  }
  view.device = DeviceOrdinal{load_field(found->device)};
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const std::uint32_t version = get(found->fold_version);
    const bool folding = (version & 1) != 0;
    if (folding && attempt + 1 < attempts) continue;
    const std::uint64_t width = get(found->width_ns);
    view.buckets_used = std::min<std::size_t>(get(found->buckets_used), bucket_count);
    for (std::size_t i = 0; i < view.buckets_used; ++i) {
      view.buckets[i] = {i * width, width, get(found->buckets[i].max_bytes),
                         get(found->buckets[i].last_bytes)};
    }
    if (get(found->fold_version) == version) break;
  }
  view.live_bytes = get(found->live_bytes);
  view.beside_live_bytes = beside_live_bytes(*found);
  view.peak_ns = get(found->peak_ns);
  view.peak_count = get(found->peak_count);
  view.peak_bytes = get(found->peak_bytes);
  view.worst = worst_of(*found);
  if (view.buckets_used > 0) view.buckets[view.buckets_used - 1].last_bytes = view.live_bytes;
  std::uint64_t carried = 0;
  for (std::size_t i = 0; i < view.buckets_used; ++i) {
    BucketView& bucket = view.buckets[i];
    // No change in this bucket.
    if (bucket.max_bytes == 0) bucket.max_bytes = bucket.last_bytes = carried;
    carried = bucket.last_bytes;
  }
  return view;
}

std::uint64_t Reader::calls_of(std::uint64_t hook_row) const noexcept {
  const auto* const found = row<Hook>(RegionId::hooks, hook_row);
  std::uint64_t calls = found == nullptr ? 0 : get(found->calls);
  const std::uint64_t shard = calls_in_shard(rows(RegionId::hooks));
  const std::uint64_t end = rows(RegionId::shard_calls);
  for (std::uint64_t i = first_row(RegionId::shard_calls) + hook_row; shard != 0 && i < end;
       i += shard) {
    if (const auto* const count = row<std::atomic<std::uint64_t>>(RegionId::shard_calls, i))
      calls += get(*count);
  }
  return calls;
}

std::optional<HookView> Reader::hook(std::uint64_t index) const noexcept {
  const auto* const found = row<Hook>(RegionId::hooks, index);
  if (found == nullptr || index > UINT16_MAX) return std::nullopt;
  return HookView{HookId{static_cast<std::uint16_t>(index)}, text(found->name, longest_text),
                  calls_of(index)};
}

std::optional<StepMarkView> Reader::step_mark(std::uint64_t index) const noexcept {
  const auto* const found = published<StepMark>(RegionId::steps, index);
  if (found == nullptr) return std::nullopt;
  return StepMarkView{load_field(found->number), load_field(found->time_ns),
                      text(found->name, longest_step_name),
                      found->name_end_ns.load(std::memory_order_relaxed)};
}

std::optional<FrameworkPoolView> Reader::framework_pool(std::uint64_t index) const noexcept {
  const auto* const found = published<FrameworkPool>(RegionId::frameworks, index);
  if (found == nullptr) return std::nullopt;
  return FrameworkPoolView{{.framework = text(found->framework, longest_text),
                            .framework_pool = text(found->framework_pool, longest_text),
                            .device = DeviceOrdinal{load_field(found->device)},
                            .incident = IncidentId{load_field(found->incident)},
                            .stack = StackId{load_field(found->stack)}},
                           {.reserved_bytes = get(found->reserved_bytes),
                            .allocated_bytes = get(found->allocated_bytes),
                            .allocated_count = get(found->allocated_count),
                            .peak_allocated_bytes = get(found->peak_allocated_bytes),
                            .hole_count = get(found->hole_count),
                            .hole_bytes = get(found->hole_bytes),
                            .largest_free_bytes = get(found->largest_free_bytes)},
                           get(found->time_ns)};
}

std::optional<NamedCountView> Reader::unhooked_lookup(std::uint64_t index) const noexcept {
  const auto* const found = published<NamedCount>(RegionId::unhooked_lookups, index);
  if (found == nullptr) return std::nullopt;
  return NamedCountView{text(found->name, longest_text), get(found->count)};
}

std::optional<NamedValueView> Reader::named_value(RegionId id, std::uint64_t index) const noexcept {
  const auto* const found = published<NamedValue>(id, index);
  if (found == nullptr) return std::nullopt;
  return NamedValueView{text(found->name, longest_text), text(found->value, longest_text),
                        load_field(found->source) == 1};
}

std::optional<NamedValueView> Reader::setting(std::uint64_t index) const noexcept {
  return named_value(RegionId::settings, index);
}

std::optional<NamedValueView> Reader::environment(std::uint64_t index) const noexcept {
  return named_value(RegionId::environment, index);
}

}  // namespace cuwarden::ledger
