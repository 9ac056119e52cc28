#include "reporters/name_completion.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>
#include <unordered_map>

#include "reporters/leak_groups.hpp"

namespace cuwarden {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

template <class Json>
std::string text_in(const Json& row, const char* name) {
  const auto value = row.find(name);
  return value == row.end() || !value->is_string() ? std::string()
                                                   : value->template get<std::string>();
}
template <class Json>
std::uint64_t number_in(const Json& row, const char* name) {
  const auto value = row.find(name);
  return value == row.end() || !value->is_number_unsigned() ? 0
                                                            : value->template get<std::uint64_t>();
}

// Files of another machine, or of a report without a start, cannot be told from later ones by time.
template <class Json>
std::optional<std::int64_t> start_of(const Json& report) {
  const Json& process = report.at("process");
  utsname system{};
  tm start{};
  if (uname(&system) != 0 || text_in(process, "host") != system.nodename ||
      strptime(text_in(process, "start").c_str(), "%Y-%m-%dT%H:%M:%S", &start) == nullptr)
    return std::nullopt;
  return timegm(&start) * second_ns;
}

// The frames of a report that lack a file, each at a place of its own.
template <class Json>
class NamelessFrames {
 public:
  explicit NamelessFrames(Json& report) : report_(report) {
    Json& frames = report["frames"];
    for (std::size_t row = 0; row < frames.size(); ++row) {
      const Json& frame = frames[row];
      next_id_ = std::max(next_id_, number_in(frame, "id") + 1);
      if (!frame.at("module").is_number_unsigned() || !frame.at("offset").is_number_unsigned() ||
          !frame.at("file").is_null() || frame.at("inlined") == true)
        continue;
      places_[number_in(frame, "module")][number_in(frame, "offset")] = row;
    }
  }

  // `is_whole`: the report says that it lacks none. True if a frame has changed.
  bool name_all(Naming& naming, bool is_whole) {
    bool changed = false;
    for (const Json& module : report_.at("modules")) {
      const auto places = places_.find(number_in(module, "id"));
      if (places == places_.end()) continue;
      std::vector<std::uint64_t> offsets;
      bool all_have_functions = true;
      for (const auto& [offset, row] : places->second) {
        offsets.push_back(offset);
        all_have_functions =
            all_have_functions && report_["frames"][row].at("function").is_string();
      }
      const Symbolised named =
          naming.name(text_in(module, "path"), text_in(module, "build_id"), offsets,
                      is_whole             ? Naming::Missed::nothing
                      : all_have_functions ? Naming::Missed::lines
                                           : Naming::Missed::functions);
      std::size_t at = 0;
      for (const auto& [offset, row] : places->second) {
        changed = replace(row, named.frames[at]) || changed;
        ++at;
      }
    }
    if (!inlined_.empty()) insert_inlined();
    return changed;
  }

 private:
  // The frame becomes the outermost of those found; the inlined ones get rows of their own.
  bool replace(std::size_t row, const std::vector<SymbolisedFrame>& found) {
    if (found.empty() || found.back().function.empty()) return false;
    Json& frames = report_["frames"];
    const bool is_more = frames[row].at("function").is_null() || !found.back().file.empty();
    if (!is_more) return false;
    set(frames[row], found.back());
    const std::uint64_t id = number_in(frames[row], "id");
    for (std::size_t i = 0; i + 1 < found.size(); ++i) {
      Json inlined = frames[row];
      inlined["id"] = next_id_;
      set(inlined, found[i]);
      frames.push_back(std::move(inlined));
      inlined_[id].push_back(next_id_++);
    }
    return true;
  }

  static void set(Json& frame, const SymbolisedFrame& found) {
    const auto text = [](const std::string& known) { return known.empty() ? Json() : Json(known); };
    frame["function"] = text(found.function);
    frame["file"] = text(found.file);
    frame["line"] = found.line > 0 ? Json(static_cast<std::uint64_t>(found.line)) : Json();
    frame["inlined"] = found.inlined;
  }

  void insert_inlined() {
    for (Json& stack : report_["stacks"]) {
      Json frames = Json::array();
      for (const Json& id : stack.at("frames")) {
        const auto inner = inlined_.find(id.template get<std::uint64_t>());
        if (inner != inlined_.end())
          for (const std::uint64_t inlined : inner->second) frames.push_back(inlined);
        frames.push_back(id);
      }
      stack["frames"] = std::move(frames);
    }
  }

  Json& report_;
  std::uint64_t next_id_ = 1;
  // By module and offset: the frame's row.
  std::map<std::uint64_t, std::map<std::uint64_t, std::size_t>> places_;
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> inlined_;  // by frame
};

// A group's call and module follow from the names of its frames.
template <class Json>
void label_groups(Json& report) {
  std::unordered_map<std::uint64_t, const Json*> stacks;
  std::unordered_map<std::uint64_t, std::string> paths;
  struct Names {
    std::uint32_t module = 0;
    std::string function;
  };
  std::unordered_map<std::uint64_t, Names> frames;
  for (const Json& stack : report.at("stacks")) stacks[number_in(stack, "id")] = &stack;
  for (const Json& module : report.at("modules"))
    paths[number_in(module, "id")] = text_in(module, "path");
  for (const Json& frame : report.at("frames")) {
    frames[number_in(frame, "id")] = {static_cast<std::uint32_t>(number_in(frame, "module")),
                                      text_in(frame, "function")};
  }
  for (Json& group : report["leak_groups"]) {
    const auto stack = stacks.find(number_in(group, "stack"));
    if (!group.at("stack").is_number_unsigned() || stack == stacks.end()) continue;
    std::vector<NamedFrame> named;
    for (const Json& id : stack->second->at("frames")) {
      const auto frame = frames.find(id.template get<std::uint64_t>());
      if (frame == frames.end()) continue;
      const Names& names = frame->second;
      named.push_back({names.module, paths[names.module], names.function});
    }
    const GroupLabel label = label_group(text_in(group, "api"), named);
    if (!label.api.empty()) group["api"] = label.api;
    if (label.module != 0) group["module"] = label.module;
  }
}

template <class Json>
std::vector<std::string> reasons_in(const Json& report, const char* part) {
  const auto found = report.find(part);
  return found == report.end() ? std::vector<std::string>()
                               : found->at("reasons").template get<std::vector<std::string>>();
}

template <class Json>
void set_reasons(Json& report, const char* part, const std::vector<std::string>& reasons) {
  report[part]["complete"] = reasons.empty();
  report[part]["reasons"] = reasons;
}

}  // namespace

template <class Json>
bool lacks_names(const Json& report) {
  const auto names = report.find("names");
  if (names != report.end()) return names->at("complete") != true;
  return std::ranges::any_of(report.at("frames"), [](const Json& frame) {
    return frame.at("function").is_null() && frame.at("module").is_number_unsigned();
  });
}

template <class Json>
bool complete_names(Json& report, Naming& naming) {
  const bool was_whole = !lacks_names(report);
  naming.trust_only_unchanged_since(start_of(report));
  bool changed = NamelessFrames<Json>(report).name_all(naming, was_whole);
  if (changed) label_groups(report);
  const std::vector<std::string> now = naming.take_reasons();
  const std::vector<std::string> before = reasons_in(report, "names");
  if (report.find("names") == report.end() || now == before) return changed;
  std::vector<std::string> all = reasons_in(report, "tool");
  std::erase_if(all, [&](const std::string& reason) {
    return std::ranges::find(before, reason) != before.end();
  });
  all.insert(all.end(), now.begin(), now.end());
  set_reasons(report, "names", now);
  set_reasons(report, "tool", all);
  return true;
}

template bool lacks_names(const nlohmann::json&);
template bool lacks_names(const nlohmann::ordered_json&);
template bool complete_names(nlohmann::json&, Naming&);
template bool complete_names(nlohmann::ordered_json&, Naming&);

}  // namespace cuwarden
