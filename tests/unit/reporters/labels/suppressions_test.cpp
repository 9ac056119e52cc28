// Suppressions are read and matched as LeakSanitizer does it.
#include "reporters/labels/suppressions.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace cuwarden {
namespace {

TEST(Suppressions, match_a_part_of_a_text_unless_they_are_anchored) {
  struct Case {
    const char *pattern, *text;
    bool matches;
  };
  const Case cases[] = {
      {"insert", "Cache::insert(Key)", true},
      {"Insert", "Cache::insert(Key)", false},
      {"Cache::*Key", "Cache::insert(Key)", true},
      {"Key*Cache", "Cache::insert(Key)", false},
      {"^Cache", "Cache::insert", true},
      {"^insert", "Cache::insert", false},
      {"insert$", "Cache::insert", true},
      {"Cache$", "Cache::insert", false},
      {"^Cache::insert$", "Cache::insert", true},
      {"^Cache$", "Cache::insert", false},
      {"^Cache*insert$", "Cache::insert", true},
      {"^*$", "anything", true},
      {"a*b*c", "xxaxxbxxcxx", true},
      {"a*b*c", "xxaxxcxxbxx", false},
      {"aab", "aaab", true},
      {"^a*ab$", "aaab", true},
      {"a*a", "a", false},
      {"*", "", true},
      {"x", "", false},
      {"$", "x", true},
      {"libcublas*.so", "/usr/lib/libcublasLt.so.13", true},
  };
  for (const Case& one : cases)
    EXPECT_EQ(occurs(one.pattern, one.text), one.matches) << one.pattern << " in " << one.text;
}

TEST(Suppressions, take_no_long_time_if_they_have_many_stars) {
  std::string pattern, text(2000, 'a');
  for (int i = 0; i < 30; ++i) pattern += "a*";
  EXPECT_FALSE(occurs(pattern + "b", text));
}

TEST(Suppressions, are_read_from_lines_with_comments_and_blanks) {
  std::vector<std::string> errors;
  const auto patterns =
      parse_suppressions("# known\n\nleak:Cache::insert\r\n  leak: libfoo.so  \nleak:^main$  # why",
                         "known.supp", errors);
  EXPECT_EQ(patterns, (std::vector<std::string>{"Cache::insert", "libfoo.so", "^main$"}));
  EXPECT_TRUE(errors.empty());
}

TEST(Suppressions, are_named_if_they_are_malformed_and_the_others_count) {
  std::vector<std::string> errors;
  const auto patterns =
      parse_suppressions("leak:\nrace:f\nleak:g\nleak:**\nh", "known.supp", errors);
  EXPECT_EQ(patterns, std::vector<std::string>{"g"});
  EXPECT_EQ(errors,
            (std::vector<std::string>{"known.supp:1: a suppression is leak:PATTERN, not 'leak:'",
                                      "known.supp:2: a suppression is leak:PATTERN, not 'race:f'",
                                      "known.supp:4: a suppression is leak:PATTERN, not 'leak:**'",
                                      "known.supp:5: a suppression is leak:PATTERN, not 'h'"}));
}

TEST(Suppressions, look_at_function_file_and_module_of_each_frame) {
  const std::vector<NamedFrame> frames = {
      {.path = "/lib/libcudart.so.13", .function = "cudaMalloc"},
      {.path = "/opt/libcache.so", .function = "Cache::insert(Key)", .file = "/src/cache.cpp"},
      {.path = "/opt/app", .function = "main"}};
  const auto rule = [&](std::vector<std::string> patterns) {
    return Suppressions(std::move(patterns)).rule_for(frames);
  };
  EXPECT_EQ(rule({"none", "libcache"}), 1u);
  EXPECT_EQ(rule({"src/cache.cpp$", "main"}), 0u);
  EXPECT_EQ(rule({"^main$", "^Cache"}), 0u);
  EXPECT_EQ(rule({"none"}), std::nullopt);
  EXPECT_EQ(rule({}), std::nullopt);
}

TEST(Suppressions, with_bare_names_match_functions_in_anonymous_namespaces) {
  const std::vector<NamedFrame> hidden = {
      {.path = "app", .function = "cache::(anonymous namespace)::process(int)"}};
  const std::vector<NamedFrame> other = {{.path = "app", .function = "cache::process(int)"}};
  EXPECT_EQ(Suppressions({"^process$"}).rule_for(hidden), 0u);
  EXPECT_EQ(Suppressions({"^process$"}).rule_for(other), std::nullopt);
}

// The file that is installed beside the command.
TEST(Suppressions, for_cudas_libraries_are_valid_and_each_matches_its_function) {
  std::ifstream file(LIBRARY_SUPPRESSIONS);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> errors;
  const std::vector<std::string> patterns = parse_suppressions(text, LIBRARY_SUPPRESSIONS, errors);
  EXPECT_TRUE(errors.empty()) << errors.front();
  const std::vector<std::string> functions = {
      "cublasCreate_v2",        "cublasLtCreate",   "cudnnCreate",    "cusolverDnCreate",
      "cusolverSpCreate",       "cusolverMgCreate", "cusparseCreate", "ncclCommInitRank",
      "ncclCommInitRankConfig", "ncclCommInitAll"};
  ASSERT_EQ(patterns.size(), functions.size());
  for (std::size_t line = 0; line < functions.size(); ++line) {
    const std::vector<NamedFrame> frames = {
        {.path = "/opt/libone.so.1"},
        {.path = "/opt/libone.so.1", .function = functions[line]},
        {.path = "/opt/app", .function = "main"}};
    EXPECT_EQ(Suppressions(patterns).rule_for(frames), line) << functions[line];
  }
  const std::vector<NamedFrame> use = {
      {.path = "/opt/libcublas.so.13", .function = "cublasSgemm_v2"}};
  EXPECT_EQ(Suppressions(patterns).rule_for(use), std::nullopt) << "no line hides a whole library";
}

}  // namespace
}  // namespace cuwarden
