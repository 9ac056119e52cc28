// A profile of pprof: samples of memory by call stack, with labels. The file is a message of
// protocol buffers (github.com/google/pprof, proto/profile.proto) in the format of gzip.
//
// Messages may have the rows of their tables in any order. So each row is compressed as soon as it
// is known, and only the numbers of rows stay in memory.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reporters/exports/exports.hpp"
#include "reporters/exports/frame_words.hpp"
#include "reporters/exports/gzip.hpp"
#include "reporters/exports/protobuf_message.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/wall_clock.hpp"

namespace cuwarden {
namespace {

// Fields of the message Profile. An interval is one between samples.
enum Field : std::uint32_t {
  sample_type = 1,
  sample = 2,
  mapping = 3,
  location = 4,
  function = 5,
  string_table = 6,
  time_nanos = 9,
  duration_nanos = 10,
  type_of_interval = 11,
  interval = 12,
  comment = 13,
  default_sample_type = 14,
};

// The figures of a sample, in the order of value_types.
struct Values {
  std::uint64_t live_count = 0, live_bytes = 0;
  std::uint64_t all_count = 0, all_bytes = 0;  // all allocations, freed or not
  std::uint64_t peak_count = 0, peak_bytes = 0;
};
constexpr std::pair<const char*, const char*> value_types[] = {
    {"inuse_objects", "count"}, {"inuse_space", "bytes"},  {"alloc_objects", "count"},
    {"alloc_space", "bytes"},   {"peak_objects", "count"}, {"peak_space", "bytes"}};

// Location of the allocations of stacks that the report does not list.
constexpr char unlisted_stacks[] = "[call stacks that the report does not list]";

using Labels = std::vector<std::pair<const char*, std::string>>;

std::string device_words(model::MaybeId device) {
  return device ? std::to_string(*device) : "host";
}

// Adds labels of a kind of memory and a device to those of the process. At its end, removes all
// labels that were added since.
class LabelScope {
 public:
  LabelScope(Labels& labels, const std::string& kind, model::MaybeId device)
      : labels_(labels), of_process_(labels.size()) {
    labels.emplace_back("kind", kind);
    labels.emplace_back("device", device_words(device));
  }
  LabelScope(const LabelScope&) = delete;
  LabelScope& operator=(const LabelScope&) = delete;
  ~LabelScope() { labels_.resize(of_process_); }

 private:
  Labels& labels_;
  std::size_t of_process_;
};

// A profile that reports are added to.
class Profile final : public CommonFile {
 public:
  Profile() {
    text("");  // pprof takes text 0 for none.
    for (const auto& [type, unit] : value_types) add_value_type(sample_type, type, unit);
    add_value_type(type_of_interval, "space", "bytes");
    ProtobufMessage facts;
    facts.number(interval, 1);  // Each allocation is recorded, and not only samples of them.
    facts.number(default_sample_type, text("inuse_space"));
    content_.add(facts.bytes());
  }

  bool is_binary() const override { return true; }

  void add(const IndexedReport& report, const std::string&, Told told) override {
    locations_of_report_.clear();
    mappings_of_report_.clear();
    const std::string process = words_of_process(*report);
    ProtobufMessage about;
    about.number(comment, text(process + ", started " + printable(report->process.start)));
    content_.add(about.bytes());
    note_time(report->process);
    // pprof takes the first file of a profile for its program.
    const auto program = std::ranges::find_if(report->modules, [&](const model::Module& module) {
      return module.path == report->process.program;
    });
    if (program != report->modules.end()) mapping_of(*program);
    RowProgress done(
        report->allocation_sites.size() + report->leak_groups.size() + report->peak_holders.size(),
        1, told);
    add_samples(report, process, done);
  }

  void write(Output& output, Told) override {
    ProtobufMessage facts;
    facts.number_unless_0(time_nanos, static_cast<std::uint64_t>(begin_.value_or(0)));
    facts.number_unless_0(duration_nanos, static_cast<std::uint64_t>(end_ - begin_.value_or(0)));
    content_.add(facts.bytes());
    output.write(content_.finish());
  }

 private:
  using Numbers = std::unordered_map<std::string, std::uint64_t>;

  void add_row(Field field, std::string_view row) {
    ProtobufMessage message;
    message.text(field, row);
    content_.add(message.bytes());
  }

  void add_value_type(Field field, const char* type, const char* unit) {
    ProtobufMessage row;
    row.number(1, text(type));
    row.number(2, text(unit));
    add_row(field, row.bytes());
  }

  // Returns the index of a text in the table of texts.
  std::uint64_t text(const std::string& value) {
    const auto [found, is_new] = texts_.try_emplace(value, texts_.size());
    if (is_new) add_row(string_table, value);
    return found->second;
  }

  // Returns the id of the row with these fields, to which the table adds the id, from 1. Rows with
  // equal fields are one row.
  std::uint64_t id_of(Field field, Numbers& table, const ProtobufMessage& fields) {
    const auto [found, is_new] = table.try_emplace(fields.bytes(), table.size() + 1);
    if (is_new) {
      ProtobufMessage row = fields;
      row.number(1, found->second);
      add_row(field, row.bytes());
    }
    return found->second;
  }

  std::uint64_t mapping_of(const model::Module& module) {
    const auto [found, is_new] = mappings_of_report_.try_emplace(module.id, 0);
    if (is_new) {
      ProtobufMessage row;
      row.number(5, text(printable(module.path)));
      row.number_unless_0(6, text(printable(module.build_id.value_or(""))));
      // cuwarden has looked up the names, so that pprof need not look for files of this machine.
      for (std::uint32_t has_names = 7; has_names <= 10; ++has_names) row.number(has_names, 1);
      found->second = id_of(mapping, mappings_, row);
    }
    return found->second;
  }

  // Returns the id of the location of one instruction: `frames` are ids of the functions that are
  // inlined there, innermost first, and of the function around them.
  std::uint64_t location_of(const IndexedReport& report, const std::u32string& frames) {
    const auto [found, is_new] = locations_of_report_.try_emplace(frames, 0);
    if (!is_new) return found->second;
    ProtobufMessage row;
    const model::Frame* const outer = report.frame(frames.back());
    const model::Module* const module = outer ? report.module(outer->module) : nullptr;
    if (module != nullptr) {
      row.number(2, mapping_of(*module));
      row.number_unless_0(3, outer->offset.value_or(0));
    }
    for (const model::Id id : frames) {
      const model::Frame* const frame = report.frame(id);
      ProtobufMessage line;
      line.number(1, function_of(report, frame));
      if (frame != nullptr) line.number_unless_0(2, frame->line.value_or(0));
      row.message(4, line);
    }
    return found->second = id_of(location, locations_, row);
  }

  std::uint64_t function_of(const IndexedReport& report, const model::Frame* frame) {
    const std::string name = frame == nullptr ? "unknown code" : function_words(report, *frame);
    ProtobufMessage row;
    row.number(2, text(name));
    // pprof takes equal names for mangled ones, of which it hides the parts in angle brackets.
    // Python has names such as "<module>".
    row.number(3, text(name.starts_with('<') ? name.substr(1) : name));
    if (frame != nullptr && frame->file) row.number(4, text(printable(*frame->file)));
    return id_of(function, functions_, row);
  }

  // Returns the id of a location that only names something.
  std::uint64_t named_location(const char* name) {
    ProtobufMessage row, line, fields;
    fields.number(2, text(name));
    fields.number(3, text(name));
    line.number(1, id_of(function, functions_, fields));
    row.message(4, line);
    return id_of(location, locations_, row);
  }

  std::vector<std::uint64_t> locations(const IndexedReport& report, model::MaybeId id) {
    const model::Stack* const stack = report.stack(id);
    std::vector<std::uint64_t> ids;
    if (stack == nullptr || stack->frames.empty()) return {named_location(unrecorded_stack)};
    std::u32string frames;
    for (std::size_t i = 0; i < stack->frames.size(); ++i) {
      frames += static_cast<char32_t>(stack->frames[i]);
      const model::Frame* const frame = report.frame(stack->frames[i]);
      const bool goes_on = frame != nullptr && frame->inlined && i + 1 < stack->frames.size();
      if (goes_on) continue;
      ids.push_back(location_of(report, frames));
      frames.clear();
    }
    if (stack->truncated) ids.push_back(named_location(unrecorded_frames));
    return ids;
  }

  // Adds a sample, unless all of its values are 0. `stack`: returns the ids of its locations,
  // innermost first; called only if the sample is added, so that no location is without a sample.
  template <class Stack>
  void add_sample(const Stack& stack, const Values& values, const Labels& labels) {
    const std::uint64_t numbers[] = {values.live_count, values.live_bytes, values.all_count,
                                     values.all_bytes,  values.peak_count, values.peak_bytes};
    static_assert(std::size(numbers) == std::size(value_types));
    if (std::ranges::count(numbers, 0U) == std::ssize(numbers)) return;
    ProtobufMessage row;
    row.numbers(1, stack());
    row.numbers(2, numbers);
    for (const auto& [key, value] : labels) {
      if (value.empty()) continue;
      ProtobufMessage label;
      label.number(1, text(key));
      label.number(2, text(printable(value)));
      row.message(3, label);
    }
    add_row(sample, row.bytes());
  }

  void add_samples(const IndexedReport& report, const std::string& process, RowDone done) {
    Labels labels = {{"process", process}};
    if (report->job.rank) labels.emplace_back("rank", std::to_string(*report->job.rank));
    // Reports of older versions do not list the stacks that allocated the most.
    const bool lists_allocations = !report->allocation_sites.empty();
    if (lists_allocations) add_allocations(report, labels, done);
    add_live_and_peak(report, labels, !lists_allocations, done);
  }

  // Adds the allocations of the whole run, freed or not. `labels`: those of the process.
  void add_allocations(const IndexedReport& report, Labels labels, RowDone done) {
    // Allocations of stacks that the report does not list, by kind and device.
    std::map<std::pair<std::string, model::MaybeId>, Values> rest;
    for (const model::Total& total : report->totals)
      rest[{total.kind, total.device}] = {.all_count = total.allocations.value_or(0),
                                          .all_bytes = total.allocated_bytes.value_or(0)};
    for (const model::AllocationSite& site : report->allocation_sites) {
      done();
      const Values values{.all_count = site.allocations.value_or(0),
                          .all_bytes = site.allocated_bytes.value_or(0)};
      Values& others = rest[{site.kind, site.device}];
      others.all_count -= std::min(others.all_count, values.all_count);
      others.all_bytes -= std::min(others.all_bytes, values.all_bytes);
      const LabelScope scope(labels, site.kind, site.device);
      labels.emplace_back("api", site.api.value_or(""));
      add_sample([&] { return locations(report, site.stack); }, values, labels);
    }
    for (const auto& [memory, values] : rest) {
      const LabelScope scope(labels, memory.first, memory.second);
      add_sample([&] { return std::vector{named_location(unlisted_stacks)}; }, values, labels);
    }
  }

  // Adds the live memory and that of the peak. `labels`: those of the process. `with_allocations`:
  // true: the samples also have the number of their stacks' allocations, freed or not.
  void add_live_and_peak(const IndexedReport& report, Labels labels, bool with_allocations,
                         RowDone done) {
    // Allocations that are in samples of live memory, by stack, kind and device.
    std::map<std::tuple<model::MaybeId, std::string, model::MaybeId>, std::uint64_t> counted;
    std::set<std::tuple<model::MaybeId, std::string, model::MaybeId, std::string>> groups;
    for (const model::LeakGroup& group : report->leak_groups) {
      done();
      const LabelScope scope(labels, group.kind, group.device);
      labels.emplace_back("api", group.api.value_or(""));
      labels.emplace_back("reachability", group.reachability.value_or(""));
      labels.emplace_back("growth", group.growth.value_or(""));
      if (group.suppressed) labels.emplace_back("suppressed", "yes");
      Values values;
      // Live allocations and those that a context has released are rows of one group.
      if (with_allocations &&
          groups.emplace(group.stack, group.kind, group.device, group.api.value_or("")).second) {
        values.all_count = group.allocations.value_or(0);
        counted[{group.stack, group.kind, group.device}] += values.all_count;
      }
      if (!group.released_by) {
        values.live_count = group.count.value_or(0);
        values.live_bytes = group.bytes.value_or(0);
      }
      add_sample([&] { return locations(report, group.stack); }, values, labels);
    }
    for (const model::PeakHolder& holder : report->peak_holders) {
      done();
      const LabelScope scope(labels, holder.kind, holder.device);
      Values values{.peak_count = holder.count.value_or(0), .peak_bytes = holder.bytes.value_or(0)};
      if (with_allocations) {
        const std::uint64_t all = holder.allocations.value_or(0);
        values.all_count = all - std::min(all, counted[{holder.stack, holder.kind, holder.device}]);
      }
      add_sample([&] { return locations(report, holder.stack); }, values, labels);
    }
  }

  void note_time(const model::Process& process) {
    const auto start = parse_iso_8601(process.start);
    if (!start) return;
    begin_ = std::min(begin_.value_or(*start), *start);
    end_ = std::max(end_, *start + static_cast<std::int64_t>(process.end_ns.value_or(0)));
  }

  Gzip content_;  // the message Profile
  // Index of each text; ids of rows by their fields.
  Numbers texts_, functions_, locations_, mappings_;
  // Ids of the last report's locations by ids of their frames, and of its mappings by module.
  std::unordered_map<std::u32string, std::uint64_t> locations_of_report_;
  std::unordered_map<model::Id, std::uint64_t> mappings_of_report_;
  // Earliest start and latest end of the processes, in nanoseconds since 1970.
  std::optional<std::int64_t> begin_;
  std::int64_t end_ = 0;
};

}  // namespace

std::unique_ptr<CommonFile> exports::pprof() { return std::make_unique<Profile>(); }

}  // namespace cuwarden
