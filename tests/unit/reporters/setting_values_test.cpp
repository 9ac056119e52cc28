#include "reporters/words/setting_values.hpp"

#include <gtest/gtest.h>

#include <string>

#include "reporters/words/setting_kinds.hpp"

namespace cuwarden {
namespace {

TEST(SettingValues, each_default_is_a_value_that_its_setting_accepts) {
  std::size_t count = 0;
#define SETTING(member, kind, variable, fallback, in_words, ...)                     \
  {                                                                                  \
    setting_kinds::kind::Value value{};                                              \
    const std::string text = fallback;                                               \
    EXPECT_NE(text.empty(), std::string(in_words).empty()) << variable;              \
    EXPECT_TRUE(text.empty() || setting_kinds::kind::read(value, text)) << variable; \
    ++count;                                                                         \
  }
#include "runtime_hooks/core/settings/settings.def"
  EXPECT_GT(count, 10u);
}

TEST(SettingValues, a_report_in_a_folder_has_the_default_name) {
  std::string by_default;
#define SETTING(member, kind, variable, fallback, ...) \
  if (std::string(variable) == "CUWARDEN_REPORT") {    \
    by_default = fallback;                             \
  }
#include "runtime_hooks/core/settings/settings.def"
  EXPECT_EQ(by_default, default_report_name);
}

TEST(SettingValues, a_text_that_is_not_accepted_leaves_the_value_as_it_was) {
  setting_kinds::LogTarget::Value log;
  EXPECT_TRUE(setting_kinds::LogTarget::read(log, "debug:there"));
  for (const char* bad : {"", "loud", "info:", ":there"})
    EXPECT_FALSE(setting_kinds::LogTarget::read(log, bad)) << bad;
  EXPECT_EQ(log.level, LogLevel::debug);
  EXPECT_STREQ(log.file, "there");
  EXPECT_EQ(setting_kinds::LogTarget::text(log), "debug:there");
}

TEST(SettingValues, the_text_of_a_value_reads_as_the_same_value) {
  for (const char* text : {"0", "1KiB", "25%", "25%:visible", "1536B"}) {
    SpillAmount spill;
    ASSERT_TRUE(setting_kinds::Spill::read(spill, text)) << text;
    EXPECT_EQ(setting_kinds::Spill::text(spill), text);
  }
  for (const char* text : {"debug", "warn:/tmp/log"}) {
    setting_kinds::LogTarget::Value log;
    ASSERT_TRUE(setting_kinds::LogTarget::read(log, text)) << text;
    EXPECT_EQ(setting_kinds::LogTarget::text(log), text);
  }
}

TEST(SettingValues, times_have_units) {
  EXPECT_EQ(parse_duration_ns("500ms"), 500'000'000u);
  EXPECT_EQ(parse_duration_ns("30s"), 30'000'000'000u);
  EXPECT_EQ(parse_duration_ns("2m"), 120'000'000'000u);
  EXPECT_EQ(parse_duration_ns("1h"), 3'600'000'000'000u);
  EXPECT_EQ(parse_duration_ns("0"), 0u);
  for (const char* bad :
       {"", "s", "5", "-5s", "5 s", "1.5s", "5sec", "99999999999h", "99999999999999999999s"})
    EXPECT_EQ(parse_duration_ns(bad), std::nullopt) << bad;
}

TEST(SettingValues, the_limit_of_spilling_is_a_size_or_a_share) {
  const auto bytes = [](const char* text) { return parse_spill(text).value().bytes; };
  EXPECT_EQ(bytes("8GiB"), std::uint64_t{8} << 30);
  EXPECT_EQ(bytes("8GB"), 8'000'000'000u);
  EXPECT_EQ(bytes("1.5GB"), 1'500'000'000u);
  EXPECT_EQ(bytes("64 MiB"), 64u << 20);
  EXPECT_EQ(bytes("0"), 0u);
  EXPECT_EQ(parse_spill("25%").value().percent, 25u);
  EXPECT_FALSE(parse_spill("25%").value().is_visible);
  EXPECT_TRUE(parse_spill("25%:visible").value().is_visible);
  EXPECT_TRUE(parse_spill("8GB:visible").value().is_visible);
  for (const char* bad :
       {"", "8", "%", "101%", "-1%", "2.5%", "8gib", "8GiB:", "8GiB:hidden", ":visible", "lots",
        "99999999TiB", "8 ", "8.", "0.5", ".5", "0GiB", "8 :visible", "0.1B"})
    EXPECT_EQ(parse_spill(bad).has_value(), false) << bad;
  EXPECT_FALSE(parse_spill("1." + std::string(400, '1') + "GiB").has_value());
}

TEST(SettingValues, settings_that_are_words_take_known_words_only) {
  for (std::size_t i = 0; i < std::size(pool_mode_names); ++i)
    EXPECT_EQ(parse_pool_mode(pool_mode_names[i]), static_cast<PoolMode>(i));
  for (std::size_t i = 0; i < std::size(log_level_names); ++i)
    EXPECT_EQ(parse_log_level(log_level_names[i]), static_cast<LogLevel>(i));
  EXPECT_EQ(parse_mesh_mode("on"), MeshMode{});
  EXPECT_EQ(parse_mesh_mode("off"), MeshMode{.moves = false});
  EXPECT_EQ(parse_mesh_mode("verify"), MeshMode{.verifies = true});
  EXPECT_EQ(parse_mesh_mode("on:visible"), MeshMode{.is_visible = true});
  EXPECT_EQ(parse_mesh_mode("on:kernel"), MeshMode{.by_kernel = true});
  EXPECT_EQ(parse_mesh_mode("on:kernel:visible"),
            (MeshMode{.is_visible = true, .by_kernel = true}));
  EXPECT_EQ(parse_mesh_mode("on:visible:kernel"), std::nullopt);
  EXPECT_EQ(parse_mesh_mode("off:kernel"), std::nullopt);
  EXPECT_EQ(parse_mesh_mode("verify:visible"), (MeshMode{.verifies = true, .is_visible = true}));
  for (const char* bad :
       {"", "On", "1", "automatic", "warning", "off:visible", ":visible", "on:verify"}) {
    EXPECT_EQ(parse_pool_mode(bad), std::nullopt);
    EXPECT_EQ(parse_log_level(bad), std::nullopt);
    EXPECT_EQ(parse_mesh_mode(bad), std::nullopt);
  }
}

TEST(SettingValues, numbers_are_whole_and_bounded) {
  EXPECT_EQ(parse_number("1024", 1024), 1024u);
  for (const char* bad : {"", "1025", "-1", "1.0", "12frames", "99999999999999999999"})
    EXPECT_EQ(parse_number(bad, 1024), std::nullopt) << bad;
}

TEST(SettingValues, patterns_of_files_match_some_files_and_not_all) {
  for (const char* good : {"/mylib/", "libmylib*", "libmylib", "libmylib.so", "/a/b,libc*,d.py"})
    EXPECT_TRUE(are_file_patterns(good)) << good;
  for (const char* bad :
       {"", ",", "a,", "a,,b", "/", "*", "//", "/*", "/mylib/*", "lib*x", "a, b", " a"})
    EXPECT_FALSE(are_file_patterns(bad)) << bad;
}

TEST(SettingValues, paths_of_reports_have_known_parts_only) {
  for (const char* good : {"report.json", "/a/%e-%h-%p-%j-%r.json", "100%%"})
    EXPECT_TRUE(is_report_path(good)) << good;
  for (const char* bad : {"", "report-%q.json", "report%"})
    EXPECT_FALSE(is_report_path(bad)) << bad;
}

}  // namespace
}  // namespace cuwarden
