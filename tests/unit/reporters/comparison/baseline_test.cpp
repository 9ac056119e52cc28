// A baseline is read as it was written, and what is wrong with one is told in one line.
#include "reporters/comparison/baseline.hpp"

#include <gtest/gtest.h>

namespace cuwarden {
namespace {

LeaksByFingerprint two_leaks() {
  LeaksByFingerprint leaks;
  leaks["00000000000000ab"] = {.kind = "device",
                               .api = "cudaMalloc",
                               .count = 3,
                               .bytes = 3 << 20,
                               .caller = "Cache::insert in libcache.so",
                               .where = "cache.cpp:41 in Cache::insert(Key const&)"};
  leaks["ff000000000000cd"] = {.kind = "pinned", .count = 1, .bytes = 4096};
  return leaks;
}

std::string error_of(const std::string& text) {
  std::string error;
  EXPECT_FALSE(parse_baseline(text, "known.txt", error));
  return error;
}

TEST(Baseline, has_a_line_for_each_leak_without_path_and_line) {
  const std::string text = baseline_text(two_leaks());
  EXPECT_EQ(text.substr(text.find('\n') + 1),
            "00000000000000ab count=3 bytes=3145728  # device cudaMalloc: Cache::insert in "
            "libcache.so\n"
            "ff000000000000cd count=1 bytes=4096  # pinned\n");
}

TEST(Baseline, is_read_as_it_was_written) {
  std::string error;
  const auto read = parse_baseline(baseline_text(two_leaks()), "known.txt", error);
  ASSERT_TRUE(read) << error;
  ASSERT_EQ(read->size(), 2u);
  const FingerprintedLeak& leak = read->at("00000000000000ab");
  EXPECT_EQ(leak.count, 3u);
  EXPECT_EQ(leak.bytes, 3u << 20);
  EXPECT_EQ(leak.where, "device cudaMalloc: Cache::insert in libcache.so");
}

TEST(Baseline, may_have_blank_lines_comments_and_the_ends_of_lines_of_windows) {
  std::string error;
  const auto read = parse_baseline(
      "# cuwarden baseline 1\r\n\r\n  # a note\r\n00000000000000ab count=3 bytes=5\r\n"
      "00000000000000ac count=1 bytes=2 #without a blank",
      "known.txt", error);
  ASSERT_TRUE(read) << error;
  EXPECT_EQ(read->size(), 2u);
  EXPECT_EQ(read->at("00000000000000ac").where, "without a blank");
}

// Two branches have each written a leak, and both lines were kept.
TEST(Baseline, counts_the_larger_figures_of_a_fingerprint_that_occurs_twice) {
  std::string error;
  const auto read = parse_baseline(
      "# cuwarden baseline 1\n00000000000000ab count=3 bytes=5\n00000000000000ab count=2 bytes=9\n",
      "known.txt", error);
  ASSERT_TRUE(read) << error;
  EXPECT_EQ(read->at("00000000000000ab").count, 3u);
  EXPECT_EQ(read->at("00000000000000ab").bytes, 9u);
}

TEST(Baseline, is_told_from_other_kinds_of_files) {
  for (const char* text :
       {"", "{\"schema\": \"cuwarden.report/1\"}", "leak:Cache", "\n", "# cuwarden baseline 12\n"})
    EXPECT_EQ(error_of(text),
              "known.txt: not a baseline: its first line does not begin with '# cuwarden baseline "
              "1'; --write-baseline writes one");
}

TEST(Baseline, with_a_malformed_line_is_refused_and_the_line_named) {
  for (const char* line :
       {"00000000000000ab", "00000000000000ab count=3", "00000000000000ab count= bytes=3",
        "00000000000000ab count=3 bytes=-1", "00000000000000ab count=3 bytes=3x",
        "00000000000000AB count=3 bytes=3", "0ab count=3 bytes=3", "<<<<<<< HEAD",
        "00000000000000ab bytes=3 count=3", "00000000000000ab count=3 bytes=3 more",
        "00000000000000ab count=3 bytes=99999999999999999999"}) {
    const std::string error = error_of("# cuwarden baseline 1\n\n" + std::string(line) + "\n");
    EXPECT_EQ(error,
              "known.txt:3: a line of a baseline is FINGERPRINT count=N bytes=N # COMMENT, "
              "not '" +
                  std::string(line) + "'");
  }
}

}  // namespace
}  // namespace cuwarden
