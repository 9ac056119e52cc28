#include "reporters/report_json.hpp"

#include "reporters/call_frames.hpp"
#include "reporters/each_row.hpp"
#include "reporters/fragmentation_tables.hpp"
#include "reporters/incident_tables.hpp"
#include "reporters/json_stream.hpp"
#include "reporters/leak_groups.hpp"
#include "reporters/ledger_damage.hpp"
#include "reporters/memory_tables.hpp"
#include "reporters/process_facts.hpp"
#include "reporters/quantities.hpp"
#include "reporters/worst_slabs.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

std::optional<std::uint64_t> device_number(DeviceOrdinal device) {
  if (device == no_device || device.value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(device.value);
}
// By frame id - 1.
std::vector<NamedFrame> name_frames(const CallFrames& frames) {
  std::vector<NamedFrame> result;
  result.reserve(frames.frames().size());
  for (const FrameRow& frame : frames.frames()) {
    NamedFrame named;
    named.module = frame.module;
    if (frame.module != 0) named.path = frames.modules().at(frame.module).path;
    if (frame.function != nullptr) named.function = *frame.function;
    if (frame.file != nullptr) named.file = *frame.file;
    result.push_back(named);
  }
  return result;
}

void write_leaks(const ledger::Reader& reader, const std::vector<LeakGroup>& groups,
                 const CallFrames& frames, JsonStream& json) {
  std::uint64_t bytes = 0, count = 0, released = 0;
  for (const LeakGroup& leak : groups) {
    if (leak.released_by_context) {
      released += leak.bytes;
    } else {
      bytes += leak.bytes;
      count += leak.count;
    }
  }
  Row leaks;
  leaks["bytes"] = number(bytes);
  leaks["count"] = number(count);
  leaks["suppressed_bytes"] = 0;
  leaks["released_by_context_bytes"] = number(released);
  json.value("leaks", leaks);

  const std::vector<NamedFrame> all_named = name_frames(frames);
  std::vector<NamedFrame> named;
  json.begin_table("leak_groups");
  for (const LeakGroup& leak : groups) {
    const auto stack = reader.stack(leak.group.stack.value);
    const bool known_stack = stack && frames.stacks().contains(leak.group.stack.value);
    const auto hook = reader.hook(leak.group.api.value);
    named.clear();
    if (known_stack) {
      for (const std::uint32_t id : frames.frame_ids(*stack)) named.push_back(all_named[id - 1]);
    }
    const GroupLabel label = label_group(hook ? hook->name : "", named);
    const auto unless = [](bool absent, auto value) {
      return absent ? std::nullopt : std::optional(value);
    };
    const bool is_released = leak.released_by_context;
    json.begin_row();
    json.field("stack", unless(!known_stack, leak.group.stack.value));
    json.field("kind", kind_name(leak.group.kind));
    json.field("api", unless(label.api.empty(), std::string_view(label.api)));
    json.field("device", device_number(leak.group.device));
    json.field("count", leak.count);
    json.field("bytes", leak.bytes);
    json.field("first_ns", leak.first_ns);
    json.field("last_ns", leak.last_ns);
    json.field("module", unless(label.module == 0, label.module));
    json.field("allocations", leak.group.allocations);
    json.field("growth", unless(is_released, leak.growth.name()));
    json.field("growth_bytes_per_minute",
               is_released ? std::nullopt : leak.growth.bytes_per_minute());
    json.field("count_by_quarter",
               unless(is_released, std::span<const std::uint64_t>(leak.growth.by_quarter)));
    json.field("lost_count", nullptr);
    json.field("lost_bytes", nullptr);
    json.field("reachable_count", nullptr);
    json.field("reachable_bytes", nullptr);
    json.field("released_by", unless(!is_released, std::string_view("context")));
    json.field("suppressed", false);
    json.field("example_address",
               leak.example ? std::optional(address_text(leak.example->value)) : std::nullopt);
    json.field("unmapped_count", leak.unmapped_count);
    json.end_row();
  }
  json.end_table();
}

void write_stacks(const ledger::Reader& reader, const CallFrames& frames, JsonStream& json) {
  json.begin_table("stacks");
  for (const std::uint32_t id : frames.stacks()) {
    const auto stack = reader.stack(id);
    if (!stack) continue;
    json.begin_row();
    json.field("id", id);
    json.field("frames", std::span<const std::uint32_t>(frames.frame_ids(*stack)));
    json.field("truncated", stack->truncated);
    json.end_row();
  }
  json.end_table();

  json.begin_table("frames");
  std::uint32_t id = 0;
  for (const FrameRow& frame : frames.frames()) {
    const bool in_module = frame.module != 0;
    const auto text = [](const std::string* known) {
      return known == nullptr ? std::nullopt : std::optional<std::string_view>(*known);
    };
    json.begin_row();
    json.field("id", ++id);
    json.field("function", text(frame.function));
    json.field("file", text(frame.file));
    json.field("line", frame.line > 0 ? std::optional(static_cast<std::uint32_t>(frame.line))
                                      : std::nullopt);
    json.field("inlined", frame.inlined);
    json.field("module", in_module ? std::optional(frame.module) : std::nullopt);
    json.field("offset", in_module ? std::optional(frame.offset) : std::nullopt);
    json.field("language", "native");
    // Code that no file holds (compiled at run time) is told apart by its address.
    json.field("address", in_module ? std::nullopt : std::optional(address_text(frame.offset)));
    json.end_row();
  }
  json.end_table();

  json.begin_table("modules");
  for (const auto& [module, file] : frames.modules()) {
    Row row;
    row["id"] = module;
    row["path"] = file.path;
    row["build_id"] = text_or_null(file.build_id);
    json.row(row);
  }
  json.end_table();
}

void write_pool(const ledger::Reader& reader, JsonStream& json) {
  Row pool;
  pool["mode"] = "off";
  each_row(reader, RegionId::settings, &ledger::Reader::setting, [&](const auto& setting) {
    for (const char* mode : {"rescue", "on", "auto"})
      if (setting.name == "CUWARDEN_POOL" && setting.value == mode) pool["mode"] = mode;
  });
  std::uint64_t count = 0, bytes = 0;
  each_row(reader, RegionId::incidents, &ledger::Reader::incident, [&](const auto& incident) {
    count += rescues_of(incident);
    bytes += incident.rescued_bytes;
  });
  pool["rescued_count"] = number(count);
  pool["rescued_bytes"] = number(bytes);
  std::uint64_t spilled = 0, spilled_at_most = 0, spilled_count = 0;
  const ledger::ProcessView& process = reader.process();
  ledger::ArenaView arenas{.held_bytes = process.pinned_held_bytes,
                           .served_count = process.pinned_served_count,
                           .served_bytes = process.pinned_served_bytes};
  each_row(reader, RegionId::devices, &ledger::Reader::device, [&](const auto& device) {
    spilled += device.spilled_bytes;
    spilled_at_most += device.spilled_peak_bytes;  // of each device, at its own moment
    spilled_count += device.spilled_count;
    arenas.held_bytes += device.arena.held_bytes;
    arenas.served_count += device.arena.served_count;
    arenas.served_bytes += device.arena.served_bytes;
    arenas.returned_bytes += device.arena.returned_bytes;
    arenas.meshed_pages += device.arena.meshed_pages;
    arenas.meshed_bytes += device.arena.meshed_bytes;
    arenas.pause_ns += device.arena.pause_ns;
  });
  pool["served_count"] = number(arenas.served_count);
  pool["served_bytes"] = number(arenas.served_bytes);
  pool["held_bytes"] = number(arenas.held_bytes);
  pool["returned_bytes"] = number(arenas.returned_bytes);
  pool["meshed_pages"] = number(arenas.meshed_pages);
  pool["mesh_recovered_bytes"] = number(arenas.meshed_bytes);
  pool["mesh_pause_ns"] = number(arenas.pause_ns);
  pool["spilled_bytes"] = number(spilled);
  pool["spilled_peak_bytes"] = number(spilled_at_most);
  pool["spilled_count"] = number(spilled_count);
  pool["ipc_refused"] = (reader.process().reasons & ledger::reason_pool_not_shared) != 0;
  json.value("pool", pool);
}

Row completeness(const std::vector<std::string>& reasons) {
  Row row;
  row["complete"] = reasons.empty();
  row["reasons"] = reasons;
  return row;
}

}  // namespace

WrittenReport write_report_json(const ledger::Reader& reader, const ReportOptions& options,
                                Output& output) {
  const ledger::ProcessView process = reader.process();
  const std::uint64_t end_ns = end_of(process, options);

  const bool is_running = options.end_reason == ledger::EndReason::running;
  const auto sums = std::make_unique<ledger::GroupSums>();  // 90 KB
  const std::vector<LeakGroup> groups =
      is_running ? live_groups(reader, end_ns, *sums) : leak_groups(reader, end_ns, *sums);
  const std::vector<ledger::SeriesView> series = all_series(reader, *sums);
  const Fragmentations fragmentations = find_fragmentation(reader);
  const std::vector<IncidentCase> incidents = all_incidents(reader);
  CallFrames frames(reader);
  for (const LeakGroup& leak : groups) frames.add_stack(leak.group.stack);
  add_stacks(reader, incidents, frames);
  std::vector<std::string> unknown;
  const auto worst_slabs = find_worst_slabs(reader, fragmentations, unknown);
  add_stacks(reader, worst_slabs, frames);
  each_row(reader, RegionId::groups, &ledger::Reader::group, [&](const auto& group) {
    if (group.at_peak_count > 0) frames.add_stack(group.stack);
  });
  const LedgerDamage damage = find_damage(reader, options.at_rest);
  const std::vector<std::string> lost = record_reasons(process, damage, options);
  std::vector<std::string> reasons = tool_reasons(process, options);
  reasons.insert(reasons.begin(), lost.begin(), lost.end());
  reasons.insert(reasons.end(), unknown.begin(), unknown.end());
  SymbolBudget budget = options.symbol_time
                            ? SymbolBudget(*options.symbol_time, options.symbol_memory)
                            : SymbolBudget();
  std::vector<std::string> nameless;
  if (!options.symbolise) {
    // What stays of a report when the attempt to write it again, with names, does not succeed.
    nameless.emplace_back(
        "functions and lines are missing: the process died before the report with them was "
        "written, or there was too little memory, disk or permitted file size (ulimit -f) for it");
  }
  frames.name_all(options.symbolise ? &budget : nullptr, nameless);
  reasons.insert(reasons.end(), nameless.begin(), nameless.end());

  JsonStream json(output);
  json.value("schema", "cuwarden.report/1");
  Row tool;
  tool["name"] = "cuwarden";
  tool["version"] = CUWARDEN_VERSION;
  tool.update(completeness(reasons));
  json.value("tool", tool);
  // Those of the tool's reasons that concern allocations, and neither names nor lines.
  json.value("records", completeness(lost));
  // Those that concern names and lines: the command completes them.
  json.value("names", completeness(nameless));
  json.value("process", process_row(process, options, end_ns));
  json.value("memory_cgroup", memory_cgroup_row(process));
  json.value("job", job_row(reader));

  json.begin_table("settings");
  // What has lost its name is among the reasons.
  each_row(reader, RegionId::settings, &ledger::Reader::setting, [&](const auto& setting) {
    if (!setting.name.starts_with("CUWARDEN_")) return;
    Row row;
    row["name"] = std::string(setting.name);
    row["value"] = std::string(setting.value);
    row["source"] = setting.from_environment ? "environment" : "default";
    json.row(row);
  });
  json.end_table();
  json.begin_table("environment");
  each_row(reader, RegionId::environment, &ledger::Reader::environment, [&](const auto& variable) {
    if (variable.name.empty()) return;
    Row row;
    row["name"] = std::string(variable.name);
    row["value"] = std::string(variable.value);
    json.row(row);
  });
  json.end_table();

  json.value("coverage", completeness(coverage_reasons(reader)));
  json.begin_table("hooks");
  each_row(reader, RegionId::hooks, &ledger::Reader::hook, [&](const auto& hook) {
    if (hook.calls == 0 || hook.name.empty()) return;
    Row row;
    row["name"] = std::string(hook.name);
    row["calls"] = number(hook.calls);
    json.row(row);
  });
  json.end_table();
  json.begin_table("unhooked_lookups");
  each_row(reader, RegionId::unhooked_lookups, &ledger::Reader::unhooked_lookup,
           [&](const auto& lookup) {
             if (lookup.name.empty()) return;
             Row row;
             row["name"] = std::string(lookup.name);
             row["count"] = number(lookup.count);
             json.row(row);
           });
  json.end_table();

  write_devices(reader, json);
  write_accounts(reader, series, fragmentations, incidents, json);
  write_device_processes(reader, incidents, json);
  write_totals(series, json);
  write_leaks(reader, groups, frames, json);
  write_fragmentation(reader, series, fragmentations, frames, json);
  write_worst_slabs(reader, worst_slabs, frames, json);
  write_incidents(reader, incidents, frames, json);
  write_pool(reader, json);
  write_timeline(reader, json);

  json.begin_table("peak_holders");
  each_row(reader, RegionId::groups, &ledger::Reader::group, [&](const auto& group) {
    if (group.at_peak_count == 0) return;
    json.begin_row();
    json.field("device", device_number(group.device));
    json.field("kind", kind_name(group.kind));
    json.field("stack", frames.stacks().contains(group.stack.value)
                            ? std::optional(group.stack.value)
                            : std::nullopt);
    json.field("count", group.at_peak_count);
    json.field("bytes", group.at_peak_bytes);
    json.field("allocations", group.allocations);
    json.field("first_ns", group.first_ns);
    json.field("last_ns", group.last_ns);
    json.end_row();
  });
  json.end_table();

  // A reader can tell a module without leaks from one that was never there.
  frames.add_other_modules();
  write_stacks(reader, frames, json);

  Row overhead;
  overhead["recorded_calls"] = number(process.recorded_calls);
  // Sampled: no sample yet is not the same as no time.
  overhead["shim_ns"] =
      process.shim_ns == 0 && process.recorded_calls > 0 ? Row(nullptr) : number(process.shim_ns);
  overhead["ledger_bytes"] = number(process.ledger_bytes);
  json.value("overhead", overhead);
  json.finish();
  return {.ledger_is_damaged = damage.any()};
}

}  // namespace cuwarden
