// Call stacks that the text report draws alike, and rows that are shown as one for that.
#include "reporters/text/elements/visible_stacks.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reporters/text/elements/merged_rows.hpp"
#include "reporters/text/elements/text_stacks.hpp"
#include "tests/unit/reporters/text/has.hpp"
#include "tests/unit/reporters/units.hpp"

namespace cuwarden {
namespace {

using test::has;
using test::mib;

// A report with frames of the program, of CUDA and of libraries, and stacks of these frames.
class VisibleStacksTest : public testing::Test {
 protected:
  // Adds a frame at line `id` of a file. `library`: name of its library; null: the program's own.
  model::Id add_frame(const char* function, const char* library = nullptr) {
    model::Frame frame;
    frame.id = static_cast<model::Id>(report.frames.size() + 1);
    frame.file = "/src/code.cpp";
    frame.line = frame.id;
    frame.function = function;
    if (library != nullptr) frame.library = library;
    report.frames.push_back(frame);
    return frame.id;
  }
  model::Id add_stack(std::vector<model::Id> frames, bool truncated = false) {
    const auto id = static_cast<model::Id>(report.stacks.size() + 1);
    report.stacks.push_back({id, std::move(frames), truncated});
    return id;
  }
  void add_leak(model::Id stack) {
    model::LeakGroup row;
    row.stack = stack;
    row.kind = "device";
    row.device = 0;
    row.api = "cudaMalloc";
    row.count = 1;
    row.bytes = mib;
    report.leak_groups.push_back(std::move(row));
  }
  bool look_alike(model::Id left, model::Id right, const Style& style = Style(false)) const {
    const IndexedReport indexed(report);
    VisibleStacks stacks(indexed, style);
    return stacks.number_of(left) == stacks.number_of(right);
  }
  std::string drawn(model::Id stack, std::size_t most_lines = 24,
                    const Style& style = Style(false)) const {
    std::string text;
    cuwarden::add_stack(IndexedReport(report), stack, most_lines, style, text);
    return text;
  }

  model::Report report;
  const model::Id own = add_frame("step"), outer = add_frame("main");
  const model::Id one = add_frame("one", "NCCL"), two = add_frame("two", "NCCL"),
                  three = add_frame("three", "NCCL"), cuda = add_frame("cuMemAlloc", "CUDA"),
                  python = add_frame("call", "Python");
};

TEST_F(VisibleStacksTest, folded_frames_of_a_library_do_not_tell_stacks_apart) {
  const model::Id first = add_stack({one, two, own, outer}),
                  second = add_stack({three, two, one, own, outer});
  EXPECT_TRUE(look_alike(first, second));
  EXPECT_FALSE(look_alike(first, second, Style(false, true))) << "full stacks show all frames";
  EXPECT_FALSE(look_alike(first, add_stack({python, python, own, outer}))) << "another library";
  EXPECT_FALSE(look_alike(first, add_stack({one, own, outer}))) << "a single frame is not folded";
  EXPECT_FALSE(look_alike(first, add_stack({one, two, outer}))) << "other frames of the program";
  EXPECT_FALSE(look_alike(first, add_stack({one, two, own, outer}, true))) << "a truncated stack";
}

TEST_F(VisibleStacksTest, frames_that_are_left_out_do_not_tell_stacks_apart) {
  const model::Id start = add_frame("_start"), with = add_stack({cuda, own, outer, start}),
                  without = add_stack({own, outer});
  EXPECT_TRUE(look_alike(with, without));
  EXPECT_EQ(drawn(with), drawn(without));
  EXPECT_FALSE(look_alike(with, without, Style(false, true)));
}

TEST_F(VisibleStacksTest, a_frame_of_a_library_that_is_named_beside_the_lines_tells_stacks_apart) {
  const model::Id forward = add_frame("torch::autograd::AddBackward", "PyTorch"),
                  other = add_frame("torch::autograd::MulBackward", "PyTorch"),
                  engine = add_frame("run", "PyTorch");
  const model::Id left = add_stack({engine, forward, engine}),
                  right = add_stack({engine, other, engine});
  EXPECT_NE(drawn(left), drawn(right));
  EXPECT_FALSE(look_alike(left, right));
}

TEST_F(VisibleStacksTest, a_recursion_that_is_drawn_otherwise_tells_stacks_apart) {
  const model::Id even = add_stack({own, one, two, own, one, two, own, one, two, outer}),
                  odd = add_stack({own, one, two, own, one, two, three, own, one, two, outer});
  EXPECT_TRUE(has(drawn(even), "2 more times")) << drawn(even);
  EXPECT_FALSE(has(drawn(odd), "more times")) << drawn(odd);
  EXPECT_FALSE(look_alike(even, odd));
}

TEST_F(VisibleStacksTest, leaks_with_stacks_that_look_alike_are_one_row_with_their_sums) {
  add_leak(add_stack({one, two, own, outer}));
  add_leak(add_stack({three, two, one, own, outer}));
  add_leak(add_stack({outer}));
  const IndexedReport indexed(report);
  const std::vector<model::LeakGroup> leaks = merged_leaks(indexed, Style(false));
  ASSERT_EQ(leaks.size(), 2u);
  EXPECT_EQ(leaks[0].bytes, 2 * mib);
  EXPECT_EQ(leaks[0].count, 2u);
  EXPECT_TRUE(has(drawn(*leaks[0].stack), "… 2 frames of NCCL\n")) << "the number of the first";
  EXPECT_EQ(merged_leaks(indexed, Style(false, true)).size(), 3u);
}

TEST_F(VisibleStacksTest, leaks_for_which_other_modules_of_a_library_asked_stay_apart) {
  const auto add_module = [&](model::Id frame, const char* path) {
    model::Module& module = report.modules.emplace_back();
    module.id = static_cast<model::Id>(report.modules.size());
    module.path = path;
    report.frames[frame - 1].module = module.id;
    report.frames[frame - 1].library = "PyTorch";
  };
  add_module(one, "/torch/lib/libc10_cuda.so");
  add_module(two, "/torch/lib/libtorch_cuda.so");
  const model::Id cached = add_stack({one, two, own}), direct = add_stack({two, two, own});
  ASSERT_TRUE(look_alike(cached, direct));
  add_leak(cached);
  add_leak(direct);
  EXPECT_EQ(merged_leaks(IndexedReport(report), Style(false)).size(), 2u)
      << "one of them grew the cache of PyTorch";
}

TEST_F(VisibleStacksTest, few_allocations_that_a_library_keeps_do_not_count_with_its_many_others) {
  model::Module& module = report.modules.emplace_back();
  module.id = 1;
  module.path = "/usr/lib/libnccl.so.2";
  for (const model::Id frame : {one, two, three}) report.frames[frame - 1].module = module.id;
  for (const auto& frames : {std::vector{one, two, own}, {two, three, own}, {three, one, own}})
    add_leak(add_stack(frames));
  for (model::LeakGroup& row : report.leak_groups) row.growth = "one_time";
  report.leak_groups[1].count = report.leak_groups[2].count = 40;
  const std::vector<model::LeakGroup> leaks = merged_leaks(IndexedReport(report), Style(false));
  ASSERT_EQ(leaks.size(), 2u);
  EXPECT_EQ(leaks[0].count, 80u);
  EXPECT_EQ(leaks[1].count, 1u);
}

TEST_F(VisibleStacksTest, the_programs_own_frame_is_named_first_if_libraries_come_before_it) {
  EXPECT_EQ(drawn(add_stack({one, two, own, outer})),
            "       at code.cpp:1 in step\n"
            "       … 2 frames of NCCL\n"
            "       src/code.cpp:1  step\n"
            "       src/code.cpp:2  main\n");
  EXPECT_EQ(drawn(add_stack({own, outer})),
            "       src/code.cpp:1  step\n"
            "       src/code.cpp:2  main\n");
}

}  // namespace
}  // namespace cuwarden
