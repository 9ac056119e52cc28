// A snapshot for PyTorch's memory_viz: Python's pickle of a dictionary like that of
// torch.cuda.memory._snapshot(). Each group of allocations that are live at the end is a segment
// with one block, since a report has the groups' call stacks and bytes, but not all addresses.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "reporters/exports/exports.hpp"
#include "reporters/exports/frame_words.hpp"
#include "reporters/exports/pickle_writer.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/wall_clock.hpp"

namespace cuwarden {
namespace {

// Addresses are made up, so that the segments of a device lie behind each other. They begin where
// no device has any, and stay exact in a reader whose numbers have 53 bits.
constexpr std::uint64_t first_address = 1U << 20;
constexpr std::uint64_t between_segments = 512;
// Devices with higher numbers are left out: a damaged report may have any number, and the file has
// a list for each number below the largest.
constexpr model::Id most_devices = 1024;

// An event of a device: a group of allocations, of which the oldest was made then, or a refused
// request.
struct Event {
  std::uint64_t time_ns = 0;  // in ns since the process's start
  const model::LeakGroup* group = nullptr;
  const model::Incident* incident = nullptr;  // null if `group` is not
  std::uint64_t free_bytes = 0;               // free bytes of the device at the refusal
};

// Returns words that say why a report has nothing to show. `hidden`: number of refused requests
// that memory_viz cannot show. `left_out_devices`: true if the report has devices whose numbers are
// too high.
std::string why_empty(std::size_t hidden, bool left_out_devices) {
  std::string words = "no live memory";
  if (hidden != 0)
    words += ", " + std::to_string(hidden) + " refused request" + (hidden == 1 ? "" : "s") +
             " that this view cannot show";
  if (left_out_devices) words += ", devices with numbers from 1024 on are left out";
  return words;
}

class Snapshot final : public CommonFile {
 public:
  bool is_binary() const override { return true; }

  void add(const IndexedReport& report, const std::string&, Told told) override {
    frames_of_report_.clear();
    std::map<model::MaybeId, std::vector<Event>> events;
    for (const model::Device& device : report->devices) events[device.device];
    for (const model::LeakGroup& group : report->leak_groups)
      if (!group.released_by && group.bytes.value_or(0) != 0)
        events[group.device].push_back({group.first_ns.value_or(0), &group});
    std::map<model::Id, const model::Incident*> incidents;
    for (const model::Incident& incident : report->incidents) incidents[incident.id] = &incident;
    std::size_t shown = 0;
    for (const model::IncidentFact& fact : report->incident_facts) {
      // memory_viz cannot show a refused request without the free bytes of the device.
      if (fact.fact != "free_bytes" || !fact.value) continue;
      const auto incident = incidents.find(fact.incident);
      if (incident == incidents.end() || !incident->second->device) continue;
      events[incident->second->device].push_back(
          {incident->second->time_ns.value_or(0), nullptr, incident->second, *fact.value});
      ++shown;
    }
    const std::size_t too_high =
        std::erase_if(events, [](const auto& of) { return of.first && *of.first >= most_devices; });
    const bool is_empty =
        std::ranges::all_of(events, [](const auto& of) { return of.second.empty(); });
    // A viewer has nothing to choose, and may fail, if no device has any event.
    if (is_empty && events.empty()) events[model::Id{0}];
    const std::size_t hidden = incidents.size() - std::min(shown, incidents.size());
    start_ns_ = static_cast<std::uint64_t>(parse_iso_8601(report->process.start).value_or(0));
    // Host memory, which has no number, is the process's last device.
    const std::uint64_t first = devices_;
    std::uint64_t host = first;
    for (const auto& [device, list] : events)
      if (device) host = std::max(host, first + *device + 1);
    const std::uint64_t count = host - first + (events.contains(std::nullopt) ? 1 : 0);
    std::size_t all = 0;
    for (const auto& of_device : events) all += of_device.second.size();
    RowProgress done(all, 1, told);
    for (; devices_ < first + count; ++devices_) {
      const std::uint64_t number = devices_ - first;
      const bool is_host = devices_ == host;
      const auto found = events.find(is_host ? model::MaybeId() : static_cast<model::Id>(number));
      traces_.empty_list();
      if (is_empty && number == 0) add_empty_event(report, why_empty(hidden, too_high != 0));
      if (found != events.end()) add_events(report, found->second, done);
      traces_.append();
    }
  }

  void write(Output& output, Told) override {
    PickleWriter begin, middle, end;
    begin.begin();
    begin.empty_dictionary();
    // The traces stand first, since they have the call stacks to which segments refer.
    begin.text("device_traces");
    begin.empty_list();
    middle.set_item();
    middle.text("segments");
    middle.empty_list();
    end.set_item();
    end.text("allocator_settings");
    end.empty_dictionary();
    end.set_item();
    end.end();
    for (const PickleWriter* const part : {&begin, &traces_, &middle, &segments_, &end})
      output.write(part->bytes());
  }

 private:
  // Adds the events of the device `devices_`, with the segments that they make. A segment has an
  // event of its own, from which viewers know when it was made and by which call stack. `done`: is
  // called for each event.
  void add_events(const IndexedReport& report, std::vector<Event>& events, RowDone done) {
    std::ranges::stable_sort(events, {}, &Event::time_ns);
    std::uint64_t address = first_address;
    for (const Event& event : events) {
      done();
      const std::uint64_t time_us = (start_ns_ + event.time_ns) / 1000;
      if (event.group == nullptr) {
        begin_event("oom", event.incident->bytes.value_or(0), time_us);
        traces_.entry("device_free", event.free_bytes);
        traces_.text("frames");
        add_frames(report, *event.incident);
        end_event();
        continue;
      }
      const std::uint64_t bytes = *event.group->bytes;
      begin_event("segment_alloc", bytes, time_us);
      traces_.entry("addr", address);
      traces_.text("frames");
      const std::uint32_t frames = add_frames(report, *event.group);
      end_event();
      begin_event("alloc", bytes, time_us);
      traces_.entry("addr", address);
      traces_.text("frames");
      traces_.kept(frames);
      end_event();
      add_segment(address, *event.group, frames);
      address += bytes + between_segments;
    }
  }
  // Adds an event whose only frame says why the report has nothing to show.
  void add_empty_event(const IndexedReport& report, const std::string& why) {
    begin_event("snapshot", 0, start_ns_ / 1000);
    traces_.entry("addr", std::uint64_t{0});
    traces_.text("frames");
    traces_.empty_list();
    add_dictionary(why, words_of_process(*report), 0);
    traces_.append();
    end_event();
  }
  // Puts an event onto the stack; its address and frames are still to be added.
  void begin_event(const char* action, std::uint64_t bytes, std::uint64_t time_us) {
    traces_.empty_dictionary();
    traces_.entry("action", action);
    traces_.entry("size", bytes);
    traces_.entry("stream", std::uint64_t{0});
    traces_.entry("time_us", time_us);
  }
  // Adds the event to the device's list. Its key "frames" and the list of frames lie on the stack.
  void end_event() {
    traces_.set_item();
    traces_.append();
  }

  void add_segment(std::uint64_t address, const model::LeakGroup& group, std::uint32_t frames) {
    const std::uint64_t bytes = *group.bytes;
    segments_.empty_dictionary();
    segments_.entry("device", devices_);
    segments_.entry("address", address);
    for (const char* const size : {"total_size", "allocated_size", "active_size", "requested_size"})
      segments_.entry(size, bytes);
    segments_.entry("stream", std::uint64_t{0});
    segments_.entry("segment_type", "large");
    segments_.text("segment_pool_id");
    segments_.pair(0, 0);
    segments_.set_item();
    segments_.text("is_expandable");
    segments_.boolean(false);
    segments_.set_item();
    add_entry_of_frames(frames);
    segments_.text("blocks");
    segments_.empty_list();
    segments_.empty_dictionary();
    segments_.entry("address", address);
    segments_.entry("size", bytes);
    segments_.entry("requested_size", bytes);
    segments_.entry("state", "active_allocated");
    add_entry_of_frames(frames);
    segments_.append();
    segments_.set_item();
    segments_.append();
  }
  void add_entry_of_frames(std::uint32_t frames) {
    segments_.text("frames");
    segments_.kept(frames);
    segments_.set_item();
  }

  // Puts the list of the group's frames into the traces, and returns the number under which it is
  // kept. A frame in front of the others says what the memory is: memory_viz shows no other words.
  std::uint32_t add_frames(const IndexedReport& report, const model::LeakGroup& group) {
    std::string words = std::to_string(group.count.value_or(0)) + " x " + printable(group.kind);
    if (group.api) words += " by " + printable(*group.api);
    return add_frames(report, group.stack, words + where(group.device));
  }
  std::uint32_t add_frames(const IndexedReport& report, const model::Incident& incident) {
    const std::uint64_t times = std::max<std::uint64_t>(incident.repeats.value_or(0) + 1, 1);
    std::string words = times == 1 ? "" : std::to_string(times) + " x ";
    words += "refused: " + printable(incident.verdict);
    if (incident.api) words += ", " + printable(*incident.api);
    words += ", " + printable(incident.outcome);
    if (!incident.bytes) words += ", size not recorded";
    return add_frames(report, incident.stack, words + where(incident.device));
  }
  static std::string where(model::MaybeId device) {
    return device ? ", on GPU " + std::to_string(*device) : ", on the host";
  }
  std::uint32_t add_frames(const IndexedReport& report, model::MaybeId id,
                           const std::string& words) {
    traces_.empty_list();
    add_dictionary(words, words_of_process(*report), 0);
    traces_.append();
    const model::Stack* const stack = report.stack(id);
    if (stack == nullptr || stack->frames.empty()) {
      add_named_frame(unrecorded_stack);
    } else {
      for (const model::Id frame : stack->frames) add_frame(report, frame);
      if (stack->truncated) add_named_frame(unrecorded_frames);
    }
    traces_.keep(kept_);
    return kept_++;
  }

  void add_named_frame(const char* name) {
    add_dictionary(name, "", 0);
    traces_.append();
  }

  void add_frame(const IndexedReport& report, model::Id id) {
    const auto [found, is_new] = frames_of_report_.try_emplace(id, kept_);
    if (is_new) {
      const model::Frame* const frame = report.frame(id);
      std::string file;
      if (frame != nullptr && frame->file) file = *frame->file;
      if (file.empty() && frame != nullptr) file = report.module_name(frame->module);
      add_dictionary(frame == nullptr ? "unknown code" : function_words(report, *frame),
                     printable(file), frame == nullptr ? 0 : frame->line.value_or(0));
      traces_.keep(kept_++);
    } else {
      traces_.kept(found->second);
    }
    traces_.append();
  }

  void add_dictionary(const std::string& name, const std::string& file, std::uint64_t line) {
    traces_.empty_dictionary();
    traces_.entry("name", name);
    traces_.entry("filename", file);
    traces_.entry("line", line);
  }

  std::uint64_t devices_ = 0;   // devices of all reports so far, which numbers the next one
  std::uint32_t kept_ = 0;      // objects that are kept, which numbers the next one
  std::uint64_t start_ns_ = 0;  // start of the last report's process, in ns since 1970
  // Lists of the devices' events, and segments.
  PickleWriter traces_, segments_;
  // Numbers under which frames of the last report are kept.
  std::unordered_map<model::Id, std::uint32_t> frames_of_report_;
};

}  // namespace

std::unique_ptr<CommonFile> exports::pytorch() { return std::make_unique<Snapshot>(); }

}  // namespace cuwarden
