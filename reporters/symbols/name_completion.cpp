#include "reporters/symbols/name_completion.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <unordered_map>

#include "reporters/labels/report_frames.hpp"

namespace cuwarden {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

// Returns the process's start. Null if the report is of another machine or has no start: then it is
// not known if files were changed after the start.
std::optional<std::int64_t> start_of(const model::Process& process) {
  utsname system{};
  tm start{};
  if (uname(&system) != 0 || process.host.value_or("") != system.nodename ||
      strptime(process.start.c_str(), "%Y-%m-%dT%H:%M:%S", &start) == nullptr)
    return std::nullopt;
  return timegm(&start) * second_ns;
}

// Frames of a report without a source file. Each has an offset of its own in its module.
class NamelessFrames {
 public:
  explicit NamelessFrames(model::Report& report) : report_(report) {
    for (std::size_t row = 0; row < report.frames.size(); ++row) {
      const model::Frame& frame = report.frames[row];
      next_id_ = std::max(next_id_, frame.id + 1);
      if (frame.module && frame.offset && !frame.file && !frame.inlined)
        rows_[*frame.module][*frame.offset] = row;
    }
  }

  // Names the frames. `is_whole`: the report says that no names are missing. `done`: is told the
  // number of modules that were looked at, and that of all. Returns true if a frame has changed.
  bool name_all(Naming& naming, bool is_whole, FunctionRef<void(std::size_t, std::size_t)> done) {
    bool changed = false;
    std::size_t looked_at = 0;
    for (const model::Module& module : report_.modules) {
      const auto rows = rows_.find(module.id);
      if (rows == rows_.end()) continue;
      done(looked_at++, rows_.size());
      std::vector<std::uint64_t> offsets;
      bool all_have_functions = true;
      for (const auto& [offset, row] : rows->second) {
        offsets.push_back(offset);
        all_have_functions = all_have_functions && report_.frames[row].function;
      }
      const Symbolised named = naming.name(module.path, module.build_id.value_or(""), offsets,
                                           is_whole             ? Naming::Missed::nothing
                                           : all_have_functions ? Naming::Missed::lines
                                                                : Naming::Missed::functions);
      std::size_t at = 0;
      for (const auto& [offset, row] : rows->second) {
        changed = replace(row, named.frames[at]) || changed;
        ++at;
      }
    }
    if (!inlined_.empty()) insert_inlined();
    return changed;
  }

 private:
  // Replaces the frame by the outermost one of those found; the inlined ones get rows of their
  // own.
  bool replace(std::size_t row, const std::vector<SymbolisedFrame>& found) {
    if (found.empty() || found.back().function.empty()) return false;
    std::vector<model::Frame>& frames = report_.frames;
    const bool is_more = !frames[row].function || !found.back().file.empty();
    if (!is_more) return false;
    set(frames[row], found.back());
    for (std::size_t i = 0; i + 1 < found.size(); ++i) {
      model::Frame inlined = frames[row];
      inlined.id = next_id_;
      set(inlined, found[i]);
      inlined_[frames[row].id].push_back(next_id_++);
      frames.push_back(std::move(inlined));
    }
    return true;
  }

  static void set(model::Frame& frame, const SymbolisedFrame& found) {
    frame.function = model::text_or_null(found.function);
    frame.file = model::text_or_null(found.file);
    frame.line = found.line > 0 ? model::Figure(found.line) : std::nullopt;
    frame.inlined = found.inlined;
  }

  void insert_inlined() {
    for (model::Stack& stack : report_.stacks) {
      std::vector<model::Id> frames;
      for (const model::Id id : stack.frames) {
        if (const auto inner = inlined_.find(id); inner != inlined_.end())
          frames.insert(frames.end(), inner->second.begin(), inner->second.end());
        frames.push_back(id);
      }
      stack.frames = std::move(frames);
    }
  }

  model::Report& report_;
  model::Id next_id_ = 1;
  // Row of a frame, by module and offset.
  std::map<model::Id, std::map<std::uint64_t, std::size_t>> rows_;
  std::unordered_map<model::Id, std::vector<model::Id>> inlined_;  // inlined frames of a frame
};

}  // namespace

bool lacks_names(const model::Report& report) {
  if (report.names) return !report.names->complete;
  return std::ranges::any_of(report.frames,
                             [](const auto& frame) { return !frame.function && frame.module; });
}

bool complete_names(model::Report& report, Naming& naming,
                    FunctionRef<void(std::size_t, std::size_t)> done) {
  const bool was_whole = !lacks_names(report);
  naming.trust_only_unchanged_since(start_of(report.process));
  const bool changed = NamelessFrames(report).name_all(naming, was_whole, done);
  if (changed) label_report(report);
  const std::vector<std::string> now = naming.take_reasons();
  const std::vector<std::string> before =
      report.names ? report.names->reasons : std::vector<std::string>();
  if (!report.names || now == before) return changed;
  std::vector<std::string> all = report.tool.reasons;
  std::erase_if(all, [&](const std::string& reason) {
    return std::ranges::find(before, reason) != before.end();
  });
  all.insert(all.end(), now.begin(), now.end());
  report.names = model::completeness(now);
  report.tool.complete = all.empty();
  report.tool.reasons = std::move(all);
  return true;
}

}  // namespace cuwarden
