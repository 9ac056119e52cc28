// A trace of Perfetto: live bytes over time, refused requests, and the largest groups of memory
// that were held at the end. The file is a message of protocol buffers (github.com/google/perfetto,
// protos/perfetto/trace/trace_packet.proto).
//
// All times are of the real-time clock, so that the processes of a job have one axis of time.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reporters/exports/exports.hpp"
#include "reporters/exports/frame_words.hpp"
#include "reporters/exports/protobuf_message.hpp"
#include "reporters/text/elements/text_elements.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"
#include "reporters/words/wall_clock.hpp"

namespace cuwarden {
namespace {

// Groups of allocations that get a slice. More would hide the rest of the view.
constexpr std::size_t most_groups = 100;
// Pids from here on are made up. Linux gives no such pid.
constexpr std::uint64_t first_made_up_pid = 1U << 30;

// Fields of the messages.
enum Packet : std::uint32_t {
  clock_snapshot = 6,
  timestamp = 8,
  sequence_id = 10,
  track_event = 11,
  sequence_flags = 13,
  timestamp_clock_id = 58,
  track_descriptor = 60,
};
constexpr std::uint32_t trace_packet = 1;      // field of Trace
constexpr std::uint64_t realtime_clock = 1;    // BuiltinClock
constexpr std::uint64_t our_sequence = 1;      // any number but 0
constexpr std::uint64_t unit_of_bytes = 3;     // CounterDescriptor::Unit
constexpr std::uint64_t state_is_cleared = 1;  // TracePacket::SequenceFlags
enum EventType : std::uint64_t { slice_begin = 1, slice_end = 2, instant = 3, counter = 4 };

// Words that an event shows when it is selected: name and value of each.
class Details {
 public:
  void add(const char* name, const std::string& value) {
    if (value.empty()) return;
    ProtobufMessage detail;
    detail.text(10, name);
    detail.text(6, value);
    details_.push_back(std::move(detail));
  }
  void add(const char* name, const model::Text& value) { add(name, printable(value.value_or(""))); }
  void add(const char* name, model::Figure value) {
    if (!value) return;
    ProtobufMessage detail;
    detail.text(10, name);
    detail.number(3, *value);
    details_.push_back(std::move(detail));
  }
  const std::vector<ProtobufMessage>& all() const { return details_; }

 private:
  std::vector<ProtobufMessage> details_;
};

std::string words_of_device(model::MaybeId device) {
  return device ? "GPU " + std::to_string(*device) : "host";
}

std::string words_of_bytes(model::Figure bytes) {
  return bytes ? human_bytes(*bytes) : std::string("memory");
}

// The rungs of one incident.
using Rungs = std::vector<const model::Rung*>;

class Trace final : public CommonFile {
 public:
  bool is_binary() const override { return true; }

  void add(const IndexedReport& report, const std::string&, Told) override {
    start_ns_ = static_cast<std::uint64_t>(parse_iso_8601(report->process.start).value_or(0));
    end_ns_ = report->process.end_ns.value_or(0);
    if (packets_.empty()) begin_trace();
    process_track_ = add_process(*report);
    add_counters(*report);
    add_peaks(*report);
    std::unordered_map<model::Id, Rungs> rungs;
    for (const model::Rung& rung : report->rungs) rungs[rung.incident].push_back(&rung);
    for (const model::Incident& incident : report->incidents)
      add_incident(report, incident, std::move(rungs[incident.id]));
    add_groups(report);
  }

  void write(Output& output, Told) override { output.write(packets_); }

 private:
  void add_packet(ProtobufMessage packet) {
    packet.number(sequence_id, our_sequence);
    ProtobufMessage trace;
    trace.message(trace_packet, packet);
    packets_ += trace.bytes();
  }

  // Makes the real-time clock the clock of the trace.
  void begin_trace() {
    ProtobufMessage clock, snapshot, packet;
    clock.number(1, realtime_clock);
    clock.number(2, start_ns_);
    snapshot.message(1, clock);
    snapshot.number(2, realtime_clock);
    packet.message(clock_snapshot, snapshot);
    packet.number(sequence_flags, state_is_cleared);
    add_packet(std::move(packet));
  }

  // Adds a track with these further fields of its descriptor, and returns its id.
  std::uint64_t add_track(const std::string& name, std::optional<std::uint64_t> parent,
                          const ProtobufMessage& fields, std::uint32_t field) {
    const std::uint64_t id = ++tracks_;
    ProtobufMessage track, packet;
    track.number(1, id);
    if (!name.empty()) track.text(2, name);
    if (parent) track.number(5, *parent);
    if (!fields.bytes().empty()) track.message(field, fields);
    packet.number(timestamp, start_ns_);
    packet.number(timestamp_clock_id, realtime_clock);
    packet.message(track_descriptor, track);
    add_packet(std::move(packet));
    return id;
  }
  std::uint64_t add_track(const std::string& name) {
    return add_track(name, process_track_, {}, 0);
  }

  // Adds a track for the process, and returns its id. Processes of different hosts may have one
  // pid, which would make one process of them: the second one gets a pid that is made up.
  std::uint64_t add_process(const model::Report& report) {
    std::uint64_t pid = report.process.pid.value_or(0);
    if (pid == 0 || !pids_.insert(pid).second) pid = first_made_up_pid + pids_.size();
    pids_.insert(pid);
    ProtobufMessage process;
    process.number(1, pid);
    process.text(6, words_of_process(report));
    process.number(7, start_ns_);
    return add_track("", std::nullopt, process, 3);
  }

  // Adds an event at a time in nanoseconds since the process's start.
  void add_event(std::uint64_t track, EventType type, std::uint64_t time_ns,
                 const std::string& name = {}, const Details& details = {}) {
    ProtobufMessage event;
    event.number(9, type);
    event.number(11, track);
    if (!name.empty()) event.text(23, name);
    for (const ProtobufMessage& detail : details.all()) event.message(4, detail);
    add_event(event, time_ns);
  }
  void add_event(const ProtobufMessage& event, std::uint64_t time_ns) {
    ProtobufMessage packet;
    packet.number(timestamp, start_ns_ + time_ns);
    packet.number(timestamp_clock_id, realtime_clock);
    packet.message(track_event, event);
    add_packet(std::move(packet));
  }
  void add_value(std::uint64_t track, std::uint64_t time_ns, std::uint64_t value) {
    ProtobufMessage event;
    event.number(9, counter);
    event.number(11, track);
    event.number(30, value);
    add_event(event, time_ns);
  }

  // Adds the live bytes of each kind and device. A counter has the most bytes of a span from its
  // begin on, and at the end of the last span the bytes that were live then.
  void add_counters(const model::Report& report) {
    struct Counter {
      std::uint64_t track = 0, end_ns = 0;
      model::Figure last_bytes;
    };
    std::map<std::pair<model::MaybeId, std::string>, Counter> counters;
    for (const model::Bucket& span : report.timeline) {
      Counter& row = counters[{span.device, span.kind}];
      if (row.track == 0) {
        ProtobufMessage bytes;
        bytes.number(3, unit_of_bytes);
        const bool is_rss = span.kind == "host_rss";
        row.track = add_track(
            is_rss ? "resident memory of the process" : memory_name(span.kind, span.device),
            process_track_, bytes, 8);
      }
      const std::uint64_t begin_ns = span.time_ns.value_or(0);
      if (const model::Figure most = span.max_bytes ? span.max_bytes : span.last_bytes)
        add_value(row.track, begin_ns, *most);
      row.end_ns = begin_ns + span.width_ns.value_or(0);
      row.last_bytes = span.last_bytes;
    }
    for (const auto& [key, row] : counters)
      if (row.last_bytes) add_value(row.track, row.end_ns, *row.last_bytes);
  }

  void add_peaks(const model::Report& report) {
    std::uint64_t track = 0;
    for (const model::Total& total : report.totals) {
      if (!total.peak_time_ns || total.peak_bytes.value_or(0) == 0) continue;
      if (track == 0) track = add_track("peaks");
      Details details;
      details.add("bytes", total.peak_bytes);
      details.add("allocations", total.peak_count);
      add_event(
          track, instant, *total.peak_time_ns,
          memory_name(total.kind, total.device) + " peaks at " + human_bytes(*total.peak_bytes),
          details);
    }
  }

  // Adds a slice from the first refusal of the incident to the last one, with the rungs in it. Each
  // slice has a track of its own, since slices of one track may only lie in each other; the views
  // draw tracks of one name together.
  void add_incident(const IndexedReport& report, const model::Incident& incident, Rungs rungs) {
    if (!incident.time_ns) return;
    std::uint64_t rungs_ns = 0;
    for (const model::Rung* const rung : rungs) rungs_ns += rung->duration_ns.value_or(0);
    std::ranges::stable_sort(rungs, {}, [](const model::Rung* rung) { return rung->order; });
    const std::uint64_t begin_ns = *incident.time_ns;
    const std::uint64_t end_ns = std::max(incident.last_ns.value_or(0), begin_ns + rungs_ns);
    const std::uint64_t track = add_track("refused requests");
    add_event(track, end_ns > begin_ns ? slice_begin : instant, begin_ns,
              printable(incident.api.value_or("request")) + " of " +
                  words_of_bytes(incident.bytes) + ": " + printable(incident.verdict),
              details_of(report, incident));
    std::uint64_t at_ns = begin_ns;
    for (const model::Rung* const rung : rungs) {
      Details details;
      details.add("outcome", printable(rung->outcome));
      details.add("reclaimer", rung->reclaimer);
      add_event(track, slice_begin, at_ns, "rung " + printable(rung->rung), details);
      at_ns += rung->duration_ns.value_or(0);
      add_event(track, slice_end, at_ns);
    }
    if (end_ns > begin_ns) add_event(track, slice_end, end_ns);
  }

  static Details details_of(const IndexedReport& report, const model::Incident& incident) {
    Details details;
    details.add("verdict", printable(incident.verdict));
    details.add("outcome", printable(incident.outcome));
    details.add("rescued_by", incident.rescued_by);
    details.add("advice", incident.advice);
    details.add("bytes", incident.bytes);
    details.add("device", words_of_device(incident.device));
    details.add("kind", incident.kind);
    details.add("refusals", model::Figure(incident.repeats.value_or(0) + 1));
    details.add("result", incident.result);
    details.add("stack", stack_words(report, incident.stack));
    return details;
  }

  // Adds slices for the largest groups of allocations that are live at the end, from the oldest of
  // them on.
  void add_groups(const IndexedReport& report) {
    std::vector<const model::LeakGroup*> groups;
    for (const model::LeakGroup& group : report->leak_groups)
      if (!group.released_by && group.first_ns && group.bytes.value_or(0) != 0)
        groups.push_back(&group);
    std::ranges::stable_sort(groups, std::greater(),
                             [](const model::LeakGroup* group) { return group->bytes; });
    if (groups.size() > most_groups) groups.resize(most_groups);
    for (const model::LeakGroup* const group : groups) {
      Details details;
      details.add("bytes", group->bytes);
      details.add("allocations", group->count);
      details.add("kind", printable(group->kind));
      details.add("device", words_of_device(group->device));
      details.add("api", group->api);
      details.add("growth", group->growth);
      details.add("reachability", group->reachability);
      if (group->last_ns)
        details.add("newest_allocation", human_time(*group->last_ns) + " after the start");
      details.add("stack", stack_words(report, group->stack));
      const std::string& where = group->where ? *group->where : group->api.value_or("unknown code");
      const std::uint64_t track = add_track("held at the end: " + words_of_device(group->device));
      add_event(track, slice_begin, *group->first_ns,
                human_bytes(*group->bytes) + " " + printable(where), details);
      add_event(track, slice_end, std::max(end_ns_, *group->first_ns));
    }
  }

  std::string packets_;           // the trace so far
  std::uint64_t tracks_ = 0;      // number of tracks, which is the last one's id
  std::set<std::uint64_t> pids_;  // pids of the trace's processes
  // The report that is being added: start of its process in ns since 1970, end in ns since the
  // start, and the id of the process's track.
  std::uint64_t start_ns_ = 0, end_ns_ = 0, process_track_ = 0;
};

}  // namespace

std::unique_ptr<CommonFile> exports::perfetto() { return std::make_unique<Trace>(); }

}  // namespace cuwarden
