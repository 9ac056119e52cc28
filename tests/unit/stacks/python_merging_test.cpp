// Native stacks with Python frames in them: the order of the frames, and stacks that are
// recognised.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "runtime_hooks/stacks/python/code_object.hpp"
#include "runtime_hooks/stacks/python/known_chains.hpp"
#include "runtime_hooks/stacks/python/merging.hpp"

namespace cuwarden::stacks::python {
namespace {

// The interpreter's code lies from 1000 to 1999, the function that runs Python code from 1500 on.
constexpr PythonSymbols only_interpreter{
    .file = {1000, 2000}, .evaluation = {1500, 1600}, .has_interpreter_alone = true};

class PythonMerging : public testing::Test {
 protected:
  PythonMerging() {
    chain->count = chain->groups = 0;
    chain->truncated = false;
  }
  // Adds a group of `count` frames, which are numbered from 1 on in all.
  void add_group(unsigned count, std::uint64_t inside) {
    for (unsigned i = 0; i < count; ++i) chain->add({chain->count + 1u, 0, 0});
    chain->end_group(inside);
  }
  // Merges the frames of the chain, as numbers, into a native stack whose frames have 100 bytes
  // each, from 10000 on.
  std::vector<std::uint64_t> merged(std::vector<std::uint64_t> native, std::size_t room = 100,
                                    const PythonSymbols& symbols = only_interpreter) {
    std::vector<std::uint64_t> pointers, python, frames(room);
    for (std::size_t i = 0; i < native.size(); ++i) pointers.push_back(10'000 + 100 * i);
    for (std::uint32_t i = 0; i < chain->count; ++i) python.push_back(chain->frames[i].code);
    const std::uint64_t end = 10'000 + 100 * native.size();
    const Merged result = merge({native, pointers, end, false}, *chain, python, symbols, frames);
    truncated = result.truncated;
    frames.resize(result.count);
    return frames;
  }

  using Frames = std::vector<std::uint64_t>;
  const std::unique_ptr<FrameChain> chain = std::make_unique<FrameChain>();
  bool truncated = false;
};

TEST_F(PythonMerging, each_group_takes_the_place_of_the_function_that_runs_it) {
  add_group(2, 10'150);
  add_group(1, 10'450);
  EXPECT_EQ(merged({5000, 1510, 1700, 6000, 1510, 7000}), (Frames{5000, 1, 2, 6000, 3, 7000}));
  EXPECT_FALSE(truncated);
}

TEST_F(PythonMerging, the_interpreters_frames_stay_where_its_file_has_other_code) {
  PythonSymbols embedded = only_interpreter;
  embedded.has_interpreter_alone = false;
  add_group(1, 10'150);
  EXPECT_EQ(merged({5000, 1510, 1700, 7000}, 100, embedded), (Frames{5000, 1, 1700, 7000}));
}

TEST_F(PythonMerging, groups_without_an_address_take_the_functions_that_run_python_in_turn) {
  add_group(1, 0);
  add_group(1, 0);
  EXPECT_EQ(merged({5000, 1510, 6000, 1599, 7000}), (Frames{5000, 1, 6000, 2, 7000}));
}

TEST_F(PythonMerging, groups_beyond_the_native_stack_follow_it) {
  add_group(1, 10'150);
  add_group(2, 99'000);
  EXPECT_EQ(merged({5000, 1510}), (Frames{5000, 1, 2, 3}));
}

TEST_F(PythonMerging, outer_frames_are_cut_off_after_merging) {
  add_group(3, 10'150);
  EXPECT_EQ(merged({5000, 1510, 6000}, 3), (Frames{5000, 1, 2}));
  EXPECT_TRUE(truncated);
}

class PythonChains : public PythonMerging {
 protected:
  std::uint32_t find(std::uint32_t native, std::uint32_t generation = 0) {
    return known.find(thread, native, *chain, generation);
  }
  KnownChains known;
  const ThreadSlot thread{.number = 3, .tenancy = 1};
};

TEST_F(PythonChains, a_stack_is_recognised_by_all_of_its_python_frames_and_its_native_stack) {
  add_group(5, 1);
  EXPECT_EQ(find(7), 0u);
  known.keep(thread, 7, *chain, 0, 42);
  EXPECT_EQ(find(7), 42u);
  EXPECT_EQ(find(8), 0u);
  EXPECT_EQ(find(7, 1), 0u) << "names of another generation";
  for (std::uint32_t i = 0; i < 5; ++i)
    for (std::uint64_t PythonFrame::*part :
         {&PythonFrame::code, &PythonFrame::position, &PythonFrame::stamp}) {
      ++(chain->frames[i].*part);
      EXPECT_EQ(find(7), 0u) << i;
      --(chain->frames[i].*part);
    }
  EXPECT_EQ(find(7), 42u);
}

TEST_F(PythonChains, the_frames_that_were_last_found_on_a_native_stack_are_remembered) {
  add_group(5, 1);
  known.keep(thread, 7, *chain, 0, 42);
  EXPECT_TRUE(known.last_found(thread, 7, 0).frames.empty());
  find(7);
  add_group(1, 1);
  known.keep(thread, 7, *chain, 0, 43);
  KnownChains::Known last = known.last_found(thread, 7, 0);
  EXPECT_EQ(last.name, 42u);
  ASSERT_EQ(last.frames.size(), 5u);
  EXPECT_EQ(last.frames[4], chain->frames[4]);
  find(7);
  last = known.last_found(thread, 7, 0);
  EXPECT_EQ(last.name, 43u);
  EXPECT_EQ(last.frames.size(), 6u);
  EXPECT_TRUE(known.last_found(thread, 8, 0).frames.empty()) << "another native stack";
  EXPECT_TRUE(known.last_found(thread, 7, 1).frames.empty()) << "another generation";
  const ThreadSlot later{.number = 3, .tenancy = 2};
  EXPECT_TRUE(known.last_found(later, 7, 0).frames.empty()) << "another thread";
}

TEST_F(PythonChains, a_later_thread_with_the_same_number_knows_nothing) {
  add_group(2, 1);
  known.keep(thread, 7, *chain, 0, 42);
  const ThreadSlot later{.number = 3, .tenancy = 2};
  EXPECT_EQ(known.find(later, 7, *chain, 0), 0u);
  known.keep(later, 9, *chain, 0, 43);
  EXPECT_EQ(known.find(later, 9, *chain, 0), 43u);
  EXPECT_EQ(known.find(later, 7, *chain, 0), 0u);
}

TEST_F(PythonChains, many_stacks_push_each_other_out_but_are_never_mistaken) {
  add_group(3, 1);
  for (std::uint32_t native = 1; native < 5000; ++native) {
    known.keep(thread, native, *chain, 0, native + 1);
    EXPECT_EQ(find(native), native + 1);
  }
  std::uint32_t left = 0;
  for (std::uint32_t native = 1; native < 5000; ++native)
    if (const std::uint32_t name = find(native)) {
      EXPECT_EQ(name, native + 1);
      ++left;
    }
  EXPECT_GT(left, 100u);
}

TEST_F(PythonChains, chains_of_the_greatest_depth_are_recognised) {
  add_group(FrameChain::most_frames + 1, 1);
  EXPECT_TRUE(chain->truncated);
  known.keep(thread, 7, *chain, 0, 42);
  EXPECT_EQ(find(7), 42u);
}

TEST(CodeContents, are_told_apart_by_each_of_their_bytes_and_by_their_number) {
  constexpr std::size_t head = 8, most = 48;
  std::vector<std::uint8_t> memory(head + most, 7);
  const auto start = reinterpret_cast<std::uint64_t>(memory.data() + head);
  for (std::size_t bytes = 0; bytes <= most; ++bytes) {
    const std::uint64_t hash = hash_of_contents(start, bytes);
    EXPECT_EQ(hash, hash_of_contents(start, bytes));
    if (bytes != 0) {
      EXPECT_NE(hash, hash_of_contents(start, bytes - 1));
    }
    for (std::size_t i = 0; i < memory.size(); ++i) {
      memory[i] ^= 0x80;
      const bool is_content = i >= head && i < head + bytes;
      EXPECT_EQ(hash != hash_of_contents(start, bytes), is_content) << bytes << ", " << i;
      memory[i] ^= 0x80;
    }
  }
}

}  // namespace
}  // namespace cuwarden::stacks::python
