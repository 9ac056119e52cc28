// A line for each call stack that holds memory at the end: its frames, the outermost first, and the
// live bytes. Brendan Gregg's flame graphs and many other programs read such lines.
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "reporters/exports/exports.hpp"
#include "reporters/exports/frame_words.hpp"
#include "reporters/words/paths.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/replace_all.hpp"

namespace cuwarden {
namespace {

// Collects the stacks as numbers of frames, so that they take no more memory than in the reports.
class CollapsedStacks final : public CommonFile {
 public:
  void add(const IndexedReport& report, const std::string&, Told told) override {
    ++reports_;
    std::unordered_map<model::Id, char32_t> known;  // numbers by id of the frame
    const auto number_of = [&](model::Id id) {
      const auto [found, is_new] = known.try_emplace(id, 0);
      const model::Frame* const frame = report.frame(id);
      if (is_new)
        found->second =
            number_of_name(frame == nullptr ? "unknown code" : frame_words(report, *frame));
      return found->second;
    };
    const std::string program(file_name(report->process.program.value_or("")));
    const char32_t root = number_of_name(program.empty() ? "unknown program" : printable(program));
    RowProgress done(report->leak_groups.size(), 1, told);
    for (const model::LeakGroup& group : report->leak_groups) {
      done();
      if (group.released_by || group.bytes.value_or(0) == 0) continue;
      const model::Stack* const stack = report.stack(group.stack);
      std::u32string frames{root};
      if (stack == nullptr || stack->frames.empty()) {
        frames += number_of_name(unrecorded_stack);
      } else {
        if (stack->truncated) frames += number_of_name(unrecorded_frames);
        for (auto id = stack->frames.rbegin(); id != stack->frames.rend(); ++id)
          frames += number_of(*id);
      }
      add_bytes(std::move(frames), *group.bytes);
    }
  }

  void write(Output& output, Told) override {
    for (const auto* const line : lines_) {
      // The program tells reports apart. A single report does not need it.
      const std::size_t first = reports_ > 1 ? 0 : 1;
      for (std::size_t i = first; i < line->first.size(); ++i) {
        if (i > first) output.write(";");
        output.write(*names_[line->first[i]]);
      }
      output.write(" " + std::to_string(line->second) + "\n");
    }
  }

 private:
  using Bytes = std::unordered_map<std::u32string, std::uint64_t>;

  // Returns the number of a name, in which semicolons, which part frames, become commas.
  char32_t number_of_name(std::string name) {
    replace_all(name, ";", ",");
    const auto [found, is_new] =
        numbers_.try_emplace(std::move(name), static_cast<char32_t>(names_.size()));
    if (is_new) names_.push_back(&found->first);
    return found->second;
  }

  void add_bytes(std::u32string frames, std::uint64_t bytes) {
    const auto [found, is_new] = bytes_.try_emplace(std::move(frames), 0);
    if (is_new) lines_.push_back(&*found);
    found->second += bytes;
  }

  std::size_t reports_ = 0;                            // number of reports that were added
  std::unordered_map<std::string, char32_t> numbers_;  // number of each name
  std::vector<const std::string*> names_;              // names by number; owned by numbers_
  Bytes bytes_;                                        // live bytes by numbers of the frames
  std::vector<const Bytes::value_type*> lines_;  // rows of bytes_, in the order of the reports
};

}  // namespace

std::unique_ptr<CommonFile> exports::collapsed() { return std::make_unique<CollapsedStacks>(); }

}  // namespace cuwarden
