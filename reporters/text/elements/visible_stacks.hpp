// Numbers the call stacks of a report by what the text report shows of them.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "reporters/model/indexed_report.hpp"
#include "reporters/text/elements/stack_lines.hpp"
#include "reporters/text/elements/text_elements.hpp"

namespace cuwarden {

// Numbers the stacks of a report. Two stacks get one number if the text report draws them alike
// (add_stack()). The number of lines that it draws has no effect, and neither has the number of
// frames in a line about frames of a library.
class VisibleStacks {
 public:
  // Keeps a reference to the report, which the caller keeps alive. `style`: look of the stacks; if
  // it shows full stacks, all frames must have equal texts.
  VisibleStacks(const IndexedReport& report, const Style& style) : report_(report), style_(style) {}
  // Returns the number of the report's stack with this id; stacks that look alike in the text
  // report have one number. All null and unknown ids, and stacks without frames, have one number.
  std::size_t number_of(model::MaybeId stack);

 private:
  // Returns the key of the stack in stacks_.
  std::vector<std::size_t> key_of(const model::Stack&);
  // Returns the number of the text, at least 1.
  std::size_t number_of_text(std::string text) {
    return texts_.try_emplace(std::move(text), texts_.size() + 1).first->second;
  }
  // Returns the number of the text that shows the frame in words.
  std::size_t number_of_words(const model::Frame&);

  const IndexedReport& report_;               // report whose stacks are numbered; not owned
  const Style style_;                         // look of the stacks
  std::map<std::string, std::size_t> texts_;  // text in lines about stacks → number of the text
  std::unordered_map<model::Id, std::size_t> words_by_frame_;  // frame's id → number of its text
  // Key of a stack → the stack's number. The key has the number of each line's text, innermost
  // first; a line about frames of a library has the number of the library's name. A line that
  // repeats others has three figures. Two more end the key: the number of the text about the
  // program's own code, and of that about missing frames. Each is 0 if the stack lacks it. The key
  // is empty for an unknown stack.
  std::map<std::vector<std::size_t>, std::size_t> stacks_;
  std::map<model::MaybeId, std::size_t> stacks_by_id_;  // stack's id → the stack's number
};

}  // namespace cuwarden
