// The call stacks of the page. All reports of a page share one table of texts, one of frames, and
// one tree of frames. Stacks with the same outer frames share the tree's nodes of these frames.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reporters/exports/page/page_json.hpp"
#include "reporters/model/indexed_report.hpp"

namespace cuwarden {

// The texts, frames and call stacks of all reports of a page.
class PageStacks {
 public:
  // Adds the rows with number 0: the empty text, the unknown frame, the root of the tree, and the
  // unknown stack.
  PageStacks();
  // Returns the number of the text in the table of texts; 0 for the empty text. Adds the text if
  // the table does not have it.
  std::uint32_t text(std::string_view);
  // Returns the number of the report's frame in the table of frames, from 1. Adds the frame if the
  // table does not have it.
  std::uint32_t frame(const IndexedReport&, const model::Frame&);
  // Returns the number of a stack in the table of stacks; 0 if it has no frames. Adds the stack if
  // the table does not have it. `frames`: numbers of its frames in the table of frames, innermost
  // first. `users`: index in `frames` of the frame that a person would name for the call
  // (users_frame()). `truncated`: true if outer frames were not recorded.
  std::uint32_t stack(const std::vector<std::uint32_t>& frames, std::size_t users, bool truncated);
  // Adds the tables to an object of JSON, as its members `strings`, `frames`, `nodes` and `stacks`.
  void add_to(PageJson&) const;

 private:
  // A row of the table of frames: the numbers of the texts of function, short function, file,
  // module and library; the line, 0 if unknown; and flags. Flag 1: a Python function. Flag 2: an
  // inlined function.
  using Frame = std::array<std::uint32_t, 7>;
  // A row of the table of stacks.
  struct Row {
    std::uint32_t node = 0;  // number of the tree's node for the innermost frame
    // Index in the stack of the frame that a person would name for the call (users_frame()); 0 is
    // the innermost frame.
    std::uint32_t users = 0;
    bool truncated = false;  // true if outer frames were not recorded
    auto operator<=>(const Row&) const = default;
  };
  // Returns the number of the tree's node for a frame whose caller has the node `parent`. Adds the
  // node if the tree does not have it. `frame`: number of the frame in the table of frames.
  std::uint32_t node(std::uint32_t parent, std::uint32_t frame);

  std::vector<std::string> texts_;  // the page's table of texts; the index is a text's number
  std::unordered_map<std::string, std::uint32_t> text_numbers_;  // text → its index in texts_
  std::vector<Frame> frames_;  // the page's table of frames; the index is a frame's number
  std::map<Frame, std::uint32_t> frame_numbers_;  // row of the table of frames → its number
  // For each node of the tree, the number of its parent's node, and the number of its frame. Node 0
  // is the root.
  std::vector<std::uint32_t> parents_, node_frames_;
  // (number of the parent's node, number of the frame) → number of the node
  std::unordered_map<std::uint64_t, std::uint32_t> node_numbers_;
  std::vector<Row> rows_;  // rows of the table of stacks; the index is a stack's number
  std::map<Row, std::uint32_t> row_numbers_;  // row of the table of stacks → its index in rows_
};

// Gives the stacks of one report their numbers in the tables of a page.
class StacksOfReport {
 public:
  // Keeps references to the page's tables and to the report. The caller keeps both alive.
  StacksOfReport(PageStacks& page, const IndexedReport& report) : page_(page), report_(report) {}
  // Returns the number of the report's stack in the page's table of stacks, to which it is added if
  // it is new. 0 if the stack is null or unknown.
  std::uint32_t number_of(model::MaybeId);
  // Returns the tables of the page, which all reports share.
  PageStacks& page() { return page_; }

 private:
  // Adds the stack to the page's table of stacks, and returns its number.
  std::uint32_t added(const model::Stack&);

  PageStacks& page_;             // tables of the page; not owned
  const IndexedReport& report_;  // report that has the stacks; not owned
  // Ids of stacks (numbers_) and of frames (frames_) in the report → their numbers in the page.
  std::unordered_map<model::Id, std::uint32_t> numbers_, frames_;
};

}  // namespace cuwarden
