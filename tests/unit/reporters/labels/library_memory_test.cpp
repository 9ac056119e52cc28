// Memory that libraries and frameworks keep, in the list of leaks.
#include "reporters/labels/library_memory.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "reporters/text/text_report.hpp"

namespace cuwarden {
namespace {

// A report in which each of several modules asked for memory once, through libcudart.
class LibraryMemoryTest : public testing::Test {
 protected:
  LibraryMemoryTest() {
    report.leaks = {0, 0, 0, 0};
    report.totals = {{}};
    report.totals.front().allocations = 10;
    report.process.end_reason = "exit";
    add_module("/usr/local/cuda/lib64/libcudart.so.13");
  }

  model::Id add_module(std::string path) {
    const auto id = static_cast<model::Id>(report.modules.size() + 1);
    report.modules.push_back({id, std::move(path), {}});
    model::Frame frame;
    frame.id = id;
    frame.module = id;
    frame.function = "function_" + std::to_string(id);
    report.frames.push_back(frame);
    return id;
  }
  // Adds a leak of the module at `path`, of `size_mib` MiB. Returns its row.
  model::LeakGroup& add_leak(const std::string& path, std::uint64_t size_mib) {
    const model::Id module = add_module(path);
    const auto stack = static_cast<model::Id>(report.stacks.size() + 1);
    report.stacks.push_back({stack, {1, module}, false});
    model::LeakGroup row;
    row.stack = stack;
    row.kind = "device";
    row.api = "cudaMalloc";
    row.device = 0;
    row.count = 1;
    row.bytes = size_mib << 20;
    row.module = module;
    row.growth = "one_time";
    row.first_ns = row.last_ns = 1;
    report.leaks.count = report.leaks.count.value_or(0) + 1;
    report.leaks.bytes = report.leaks.bytes.value_or(0) + (size_mib << 20);
    return report.leak_groups.emplace_back(row);
  }
  void add_figures(const char* framework, model::Figure allocated) {
    model::Framework row;
    row.framework = framework;
    row.device = 0;
    row.source = "framework";
    row.reserved_bytes = 1 << 30;
    row.allocated_bytes = allocated;
    report.frameworks.push_back(row);
  }
  LibraryUse use_of(const model::LeakGroup& group) {
    return library_memory(IndexedReport(report), group).use;
  }
  std::string text(bool full_stacks = false) {
    TextOptions options;
    options.full_stacks = full_stacks;
    return text_report(IndexedReport(report), options);
  }

  model::Report report;
};

TEST_F(LibraryMemoryTest, is_not_told_of_the_programs_own_code) {
  EXPECT_EQ(use_of(add_leak("/home/u/app", 1)), LibraryUse::none);
  EXPECT_EQ(use_of(add_leak("/home/u/libvendor_filter.so", 1)), LibraryUse::none);
}

TEST_F(LibraryMemoryTest, is_a_workspace_unless_it_grows_or_is_lost) {
  model::LeakGroup& leak = add_leak("/usr/lib/libcublas.so.13", 32);
  EXPECT_EQ(use_of(leak), LibraryUse::workspace);
  leak.growth = "growing";
  EXPECT_EQ(use_of(leak), LibraryUse::none);
  leak.growth = "one_time";
  leak.lost_count = 1;
  EXPECT_EQ(use_of(leak), LibraryUse::none);
}

TEST_F(LibraryMemoryTest, is_a_cache_if_a_framework_hands_out_pinned_memory) {
  model::LeakGroup& leak = add_leak("/p/torch/lib/libtorch_cuda.so", 4);
  leak.kind = "pinned";
  leak.device = std::nullopt;
  EXPECT_EQ(use_of(leak), LibraryUse::cache);
}

TEST_F(LibraryMemoryTest, is_an_idle_cache_only_if_the_framework_says_that_it_uses_nothing) {
  const model::LeakGroup leak = add_leak("/p/torch/lib/libc10_cuda.so", 64);
  EXPECT_EQ(use_of(leak), LibraryUse::cache) << "nothing is known";
  add_figures("PyTorch", 512);
  EXPECT_EQ(use_of(leak), LibraryUse::cache) << "a part is in use";
  report.frameworks.clear();
  add_figures("PyTorch", 0);
  EXPECT_EQ(use_of(leak), LibraryUse::idle_cache);
  add_figures("PyTorch", std::nullopt);
  EXPECT_EQ(use_of(leak), LibraryUse::cache) << "one of its pools says nothing";
  report.frameworks.clear();
  add_figures("CuPy", 0);
  EXPECT_EQ(use_of(leak), LibraryUse::cache) << "another framework";
}

TEST_F(LibraryMemoryTest, is_listed_last_in_one_line_with_its_sum) {
  add_leak("/usr/lib/libcublas.so.13", 300);
  add_leak("/usr/lib/libnccl.so.2", 400);
  add_leak("/home/u/app", 1);
  add_leak("/p/torch/lib/libc10_cuda.so", 700);
  add_figures("PyTorch", 0);
  const std::string said = text();
  EXPECT_NE(said.find(" 1. 1.0 MiB in 1 allocation"), said.npos) << said;
  EXPECT_NE(said.find("\n  700.0 MiB from 2 stacks: workspaces that libraries took once (NCCL, "
                      "cuBLAS); --full-stacks lists them\n"),
            said.npos)
      << said;
  EXPECT_NE(said.find("\n  700.0 MiB from 1 stack: caches of which the framework uses nothing "
                      "(PyTorch); --full-stacks lists them\n"),
            said.npos)
      << said;
  const std::string full = text(true);
  EXPECT_NE(full.find(" 1.   1.0 MiB in 1 allocation"), full.npos) << full;
  EXPECT_NE(full.find(" 2. 700.0 MiB in 1 allocation"), full.npos) << full;
  EXPECT_EQ(full.find("lists them"), full.npos) << full;
}

TEST_F(LibraryMemoryTest, is_marked_if_a_framework_may_have_handed_it_to_other_lines) {
  add_leak("/p/torch/lib/libc10_cuda.so", 700);
  const std::string said = text();
  EXPECT_NE(said.find(" 1. 700.0 MiB in 1 allocation"), said.npos) << said;
  EXPECT_NE(said.find("       grew the cache of PyTorch, which may hold other lines' memory there "
                      "now\n"),
            said.npos)
      << said;
}

}  // namespace
}  // namespace cuwarden
