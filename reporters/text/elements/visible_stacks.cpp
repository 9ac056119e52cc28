#include "reporters/text/elements/visible_stacks.hpp"

#include <cstdint>

namespace cuwarden {

std::size_t VisibleStacks::number_of_words(const model::Frame& frame) {
  const auto [known, is_new] = words_by_frame_.try_emplace(frame.id, 0u);
  if (is_new) known->second = number_of_text(frame_line(report_, frame, 0, style_));
  return known->second;
}

std::vector<std::size_t> VisibleStacks::key_of(const model::Stack& stack) {
  StackFrames frames = frames_of(report_, stack);
  // Full stacks show all frames in words.
  const model::Frame* const users =
      style_.shows_full_stacks() ? nullptr : users_frame_of(report_, frames);
  if (!style_.shows_full_stacks()) leave_out_the_known(frames);
  std::vector<DrawnLine> lines = lines_of_frames(frames, style_);
  if (!style_.shows_full_stacks()) {
    std::vector<std::size_t> whole_texts;
    for (const DrawnLine& line : lines)
      whole_texts.push_back(line.has_words()
                                ? number_of_words(*frames[line.first])
                                : number_of_text(counting_line(report_, frames, line, style_)));
    const auto look_alike = [&](std::size_t left, std::size_t right) {
      return whole_texts[left] == whole_texts[right];
    };
    lines = without_repetitions(lines, SIZE_MAX, look_alike);
  }
  std::vector<std::size_t> key;
  for (const DrawnLine& line : lines) {
    const model::Frame& first = *frames[line.first];
    if (line.repeated != 0)
      key.insert(key.end(), {SIZE_MAX, line.repeated, line.times});
    else if (line.has_words())
      key.push_back(number_of_words(first));
    else
      key.push_back(number_of_text("frames of " + text_or(first.library, "")));
  }
  // Frames of a library that share a line may differ, and one of them may be named above the lines.
  key.push_back(users != nullptr ? number_of_text(location_line(report_, *users)) : 0);
  key.push_back(stack.truncated ? number_of_text(why_cut(report_, stack)) : 0);
  return key;
}

std::size_t VisibleStacks::number_of(model::MaybeId id) {
  const auto [known, is_new] = stacks_by_id_.try_emplace(id, 0u);
  if (!is_new) return known->second;
  const model::Stack* const stack = report_.stack(id);
  std::vector<std::size_t> key;
  if (stack != nullptr && !stack->frames.empty()) key = key_of(*stack);
  known->second = stacks_.try_emplace(std::move(key), stacks_.size()).first->second;
  return known->second;
}

}  // namespace cuwarden
