// The leaks of reports, summed by fingerprint.
#include "reporters/comparison/leaks_by_fingerprint.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace cuwarden {
namespace {

model::Frame frame(model::Id id, model::MaybeId module, std::string function) {
  model::Frame row;
  row.id = id;
  row.module = module;
  row.function = std::move(function);
  return row;
}

model::LeakGroup group(std::string fingerprint, model::Id stack, std::uint64_t bytes) {
  model::LeakGroup row;
  row.fingerprint = std::move(fingerprint);
  row.stack = stack;
  row.kind = "device";
  row.api = "cudaMalloc";
  row.count = 1;
  row.bytes = bytes;
  return row;
}

// A report with a stack of libcache.so and one of PyTorch's allocator.
model::Report report() {
  model::Report made;
  made.modules = {{1, "/opt/libcache.so.2", {}}, {2, "/p/torch/lib/libc10_cuda.so", {}}};
  made.frames = {frame(1, 1, "Cache::insert(Key const&)"), frame(2, 2, "")};
  made.frames[0].file = "/src/cache.cpp";
  made.frames[0].line = 41;
  made.frames[1].library = "PyTorch";
  made.stacks = {{1, {1}, false}, {2, {2}, false}};
  made.leak_groups = {group("aa", 1, 100), group("aa", 1, 20), group("bb", 2, 7)};
  made.leak_groups[2].module = 2;
  return made;
}

LeaksByFingerprint leaks_of(const model::Report& given, const std::string& module = "") {
  LeaksByFingerprint leaks;
  add_leaks_of(IndexedReport(given), module, Style(false), leaks);
  return leaks;
}

TEST(LeaksByFingerprints, tell_how_far_their_sum_is) {
  model::Report many = report();
  many.leak_groups.assign(5000, many.leak_groups[0]);
  LeaksByFingerprint leaks;
  std::vector<std::size_t> told;
  add_leaks_of(IndexedReport(many), "", Style(false), leaks,
               [&](std::size_t rows, std::size_t all) {
                 told.push_back(rows);
                 EXPECT_EQ(all, 5000u);
               });
  EXPECT_FALSE(told.empty());
  EXPECT_TRUE(std::ranges::is_sorted(told));
}

TEST(LeaksByFingerprints, are_summed_and_named) {
  const LeaksByFingerprint leaks = leaks_of(report());
  ASSERT_EQ(leaks.size(), 2u);
  const FingerprintedLeak& leak = leaks.at("aa");
  EXPECT_EQ(leak.count, 2u);
  EXPECT_EQ(leak.bytes, 120u);
  EXPECT_EQ(leak.caller, "Cache::insert in libcache.so.2");
  EXPECT_EQ(leak.where, "cache.cpp:41 in Cache::insert(Key const&)");
  EXPECT_EQ(leak.stack, "       src/cache.cpp:41  Cache::insert(Key const&)\n");
}

TEST(LeaksByFingerprints, have_the_path_of_the_source_file_in_its_shortest_form) {
  const auto file_of = [](const char* file) {
    model::Report given = report();
    given.frames[0].file = file;
    return leaks_of(given).at("aa").file;
  };
  EXPECT_EQ(file_of("/home/u/app/build/../src/./cache.cpp"), "/home/u/app/src/cache.cpp");
  EXPECT_EQ(file_of("/tmp/b/../../home//u/cache.cpp"), "/home/u/cache.cpp");
  EXPECT_EQ(file_of("build/../src/cache.cpp"), "src/cache.cpp");
  EXPECT_EQ(file_of("../src/cache.cpp"), "../src/cache.cpp");
  EXPECT_EQ(file_of("<string>"), "<string>");
  EXPECT_EQ(leaks_of(report()).at("bb").file, "");
}

TEST(LeaksByFingerprints, are_added_up_over_several_reports) {
  LeaksByFingerprint leaks = leaks_of(report());
  add_leaks_of(IndexedReport(report()), "", Style(false), leaks);
  EXPECT_EQ(leaks.at("aa").bytes, 240u);
}

TEST(LeaksByFingerprints, leave_out_what_was_suppressed_or_released_or_is_of_another_module) {
  model::Report given = report();
  given.leak_groups[0].suppressed = true;
  given.leak_groups[1].released_by = "context";
  EXPECT_EQ(leaks_of(given).size(), 1u);
  EXPECT_EQ(leaks_of(report(), "libcache").size(), 1u);
}

TEST(LeaksByFingerprints, are_those_of_tensors_in_place_of_the_segments_in_which_they_lie) {
  model::Report given = report();
  model::FrameworkSite site;
  site.framework = "PyTorch";
  site.fingerprint = "cc";
  site.stack = 1;
  site.count = 3;
  site.bytes = 6;
  given.framework_sites = {site};
  const LeaksByFingerprint leaks = leaks_of(given);
  EXPECT_FALSE(leaks.contains("bb"));
  EXPECT_EQ(leaks.at("cc").bytes, 6u);
  EXPECT_EQ(leaks.at("cc").kind, "framework_block");
}

}  // namespace
}  // namespace cuwarden
