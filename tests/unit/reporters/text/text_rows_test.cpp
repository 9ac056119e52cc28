// Rows of a report's text: processes and call stacks that hold memory, figures, and forecasts.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "reporters/text/elements/text_elements.hpp"
#include "reporters/text/text_accounts.hpp"
#include "reporters/text/text_report.hpp"
#include "tests/unit/reporters/text/has.hpp"
#include "tests/unit/reporters/units.hpp"

namespace cuwarden {
namespace {

using test::has;
using test::mib;

// A report about a process that ran on one device of 100 MiB.
class TextRows : public testing::Test {
 protected:
  TextRows() {
    report.process.start = "2026-01-31T12:00:00.000000000Z";
    report.process.end_ns = 20 * test::second_ns;
    report.process.end_reason = "exit";
    report.leaks = {0, 0, 0, 0};
    model::Device& device = report.devices.emplace_back();
    device.total_bytes = 100 * mib;
    device.used_bytes = 80 * mib;
  }

  // Adds a stack of one frame. Returns its id.
  model::Id add_stack(std::uint64_t line) {
    const auto id = static_cast<model::Id>(report.stacks.size() + 1);
    model::Frame frame;
    frame.id = id;
    frame.file = "/home/u/../u/src/cache.cpp";
    frame.line = line;
    frame.function = "insert";
    report.frames.push_back(std::move(frame));
    report.stacks.push_back({id, {id}, false});
    return id;
  }
  void add_incident(const char* verdict) {
    model::Incident& row = report.incidents.emplace_back();
    row.id = 1;
    row.api = "cudaMalloc";
    row.kind = "device";
    row.bytes = 8 * mib;
    row.device = 0;
    row.outcome = "failed";
    row.verdict = verdict;
    row.repeats = 0;
  }
  void add_total(const char* kind, std::uint64_t live_bytes, std::uint64_t peak_bytes) {
    model::Total& row = report.totals.emplace_back();
    row.kind = kind;
    row.device = 0;
    row.live_count = row.peak_count = row.allocations = 1;
    row.live_bytes = live_bytes;
    row.peak_bytes = peak_bytes;
  }
  std::string text(const TextOptions& options = {}) const {
    return text_report(IndexedReport(report), options);
  }
  // Returns the text with at most `top` rows in each list; 0: all.
  std::string text_of_top(std::size_t top) const {
    TextOptions options;
    options.top = top;
    return text(options);
  }

  model::Report report;
};

TEST_F(TextRows, unexplained_memory_may_be_managed_memory) {
  report.accounts = {{0, std::nullopt, "live_device", 40 * mib},
                     {0, std::nullopt, "unexplained", 40 * mib}};
  EXPECT_FALSE(has(text(), "managed")) << text();
  add_total("managed", 48 * mib, 48 * mib);
  EXPECT_TRUE(has(text(),
                  "  the part of managed memory that lies on the GPU is in \"contexts and "
                  "others\"; 48.0 MiB are managed in all\n"))
      << text();
  report.accounts.push_back({0, std::nullopt, "context", 1 * mib});
  report.totals[0].live_bytes = 0;
  EXPECT_TRUE(has(text(),
                  "  memory that the driver keeps for managed memory is in \"unexplained\"; "
                  "none of it is live\n"))
      << text();
  report.accounts[1].bytes = 1 * mib;
  EXPECT_FALSE(has(text(), "is in \"unexplained\"")) << "too little: " << text();
}

TEST_F(TextRows, holders_of_the_device_are_told_with_what_is_known_of_them) {
  add_incident("held_by_other_processes");
  model::DeviceProcess old;
  old.incident = 1;
  old.device = 0;
  old.pid = 41;
  model::DeviceProcess process = old;
  process.pid = 42;
  process.used_bytes = 1 << 30;
  process.program = "/opt/py\033[31mthon";
  process.user = "alice";
  process.start = "2026-01-31T12:00:00.123456789Z";
  process.job = "4711";
  process.container = "feed";
  process.state = "zombie";
  process.parent = 7;
  process.parent_program = "/bin/bash";
  model::DeviceProcess opened = old;
  opened.pid = 43;
  opened.seen_by = "device_file";
  opened.state = "stuck";
  opened.unit = "x.service";
  report.device_processes = {old, process, opened};
  setenv("TZ", "EST5", 1);
  tzset();
  const std::string shown = text();
  unsetenv("TZ");
  tzset();
  EXPECT_TRUE(has(shown, "    pid 41 held unknown bytes\n")) << shown;
  EXPECT_TRUE(has(shown,
                  "    pid 42 (py?[31mthon, user alice) held 1.0 GiB · Slurm job 4711 · container "
                  "feed · started 2026-01-31 07:00:00 · a zombie, whose parent is pid 7 (bash)\n"))
      << shown;
  EXPECT_TRUE(has(shown, ", started 2026-01-31 07:00:00\n")) << "one clock for all: " << shown;
  EXPECT_TRUE(
      has(shown, "    pid 43 had the device's file open · x.service · stuck in the kernel\n"))
      << shown;
}

TEST_F(TextRows, call_stacks_that_are_left_out_at_a_refusal_are_counted) {
  add_incident("device_full_own");
  for (std::uint64_t i = 1; i <= 5; ++i) {
    model::IncidentHolder& holder = report.incident_holders.emplace_back();
    holder.incident = 1;
    holder.kind = "device";
    holder.count = 1;
    holder.bytes = i * mib;
    holder.stack = add_stack(i);
  }
  const std::string shown = text();
  EXPECT_TRUE(has(shown, "cache.cpp:3  insert\n")) << shown;
  EXPECT_FALSE(has(shown, "cache.cpp:2  insert\n")) << shown;
  EXPECT_TRUE(has(shown, "    … 2 more holders, 3.0 MiB (--top 0 shows all)\n")) << shown;
  EXPECT_TRUE(has(text_of_top(1), "    … 4 more holders, 10.0 MiB (--top 0 shows all)\n"));
  const std::string whole = text_of_top(0);
  EXPECT_TRUE(has(whole, "cache.cpp:1  insert\n")) << whole;
  EXPECT_FALSE(has(whole, "more holder")) << whole;
}

TEST_F(TextRows, holders_that_are_objects_are_named_once) {
  add_incident("implicit_memory");
  model::IncidentHolder holder;
  holder.incident = 1;
  holder.kind = "module";
  holder.count = 1;
  holder.bytes = 8 * mib;
  report.incident_holders = {holder};
  EXPECT_TRUE(has(text(), "    8.0 MiB in 1 module\n")) << text();
  report.incident_holders[0].kind = "device";
  EXPECT_TRUE(has(text(), "    8.0 MiB in 1 allocation · device memory\n")) << text();
}

TEST_F(TextRows, call_stacks_that_are_left_out_at_slabs_are_counted) {
  model::Fragmentation& row = report.fragmentation.emplace_back();
  row.slab_locked_bytes = 40 * mib;
  row.slab_count = 20;
  for (std::uint64_t i = 1; i <= 4; ++i) {
    model::SlabHolder& holder = report.slab_holders.emplace_back();
    holder.count = 1;
    holder.bytes = mib;
    holder.locked_bytes = i * mib;
    holder.stack = add_stack(i);
  }
  EXPECT_TRUE(has(text(), "    … 1 more holder, 1.0 MiB (--top 0 shows all)\n")) << text();
  EXPECT_FALSE(has(text_of_top(0), "more holder"));
}

TEST_F(TextRows, numbers_of_the_memory_stand_flush_right) {
  add_total("device", 758 * mib + mib / 2, 758 * mib + mib / 2);
  add_total("vmm", 2048 * mib, 3 * 1024 * mib);
  add_total("pinned", 0, 4 * mib);
  report.totals.back().live_count = 0;
  report.pool.emplace();
  report.pool->served_count = 3;
  report.pool->held_bytes = 4 * mib;
  const std::string shown = text();
  EXPECT_TRUE(has(shown,
                  "MEMORY                         live at the end   peak\n"
                  "  device memory (GPU 0)        758.5 MiB in 1    758.5 MiB in 1\n"
                  "  virtual memory (GPU 0)         2.0 GiB in 1      3.0 GiB in 1\n"
                  "  pinned host memory (GPU 0)     nothing           4.0 MiB in 1\n"
                  "  held by the pool in all        4.0 MiB         3 allocations "))
      << shown;
}

TEST_F(TextRows, amounts_of_the_leaks_stand_flush_right) {
  for (std::uint64_t i = 0; i < 101; ++i) {
    model::LeakGroup& row = report.leak_groups.emplace_back();
    row.kind = "device";
    row.device = 0;
    row.count = 1;
    row.bytes = i == 0 ? 16 * mib : 2 * mib;
    row.stack = add_stack(i + 1);
  }
  report.leaks = {101, 216 * mib, 0, 0};
  const std::string ten = text();
  EXPECT_TRUE(has(ten, "\n 1. 16.0 MiB in 1 allocation ")) << ten;
  EXPECT_TRUE(has(ten, "\n 9.  2.0 MiB in 1 allocation ")) << ten;
  EXPECT_TRUE(has(ten, "\n10.  2.0 MiB in 1 allocation ")) << ten;
  const std::string all = text_of_top(0);
  EXPECT_TRUE(has(all, "\n  1. 16.0 MiB in 1 allocation ")) << all;
  EXPECT_TRUE(has(all, "\n101.  2.0 MiB in 1 allocation ")) << all;
  EXPECT_TRUE(has(text_of_top(1), "\n 1. 16.0 MiB in 1 allocation ")) << text_of_top(1);
}

TEST_F(TextRows, a_row_of_the_memory_fits_into_a_line_of_a_file) {
  add_total("stream_ordered", 2400 * mib, 15'800 * mib);
  model::Total& row = report.totals.back();
  row.live_count = 412;
  row.peak_count = 1250;
  row.peak_time_ns = 723'000'000'000;
  row.allocations = 98'123;
  const std::string shown = text();
  const std::size_t start = shown.find("  stream-ordered"), end = shown.find('\n', start);
  ASSERT_NE(start, std::string::npos) << shown;
  const std::string line = shown.substr(start, end - start);
  EXPECT_TRUE(has(line, "98,123 made")) << line;
  EXPECT_LE(line.size(), 100u) << line;
}

TEST_F(TextRows, frames_of_a_recursion_are_one_line_with_their_number) {
  add_incident("device_full_own");
  const model::Id deep = add_stack(28), other = add_stack(9);
  report.incidents[0].stack = deep;
  report.stacks[deep - 1].frames = {deep, deep, deep, deep, other, other};
  const std::string shown = text();
  EXPECT_TRUE(has(shown,
                  "       src/cache.cpp:28  insert\n"
                  "       … 3 more of insert\n"
                  "       src/cache.cpp:9   insert\n"
                  "       src/cache.cpp:9   insert\n"))
      << shown;
  TextOptions full;
  full.full_stacks = true;
  const std::string whole = text(full);
  EXPECT_FALSE(has(whole, "more of insert")) << whole;
}

TEST_F(TextRows, frames_of_functions_that_call_each_other_are_folded_from_the_third_time_on) {
  add_incident("device_full_own");
  const model::Id one = add_stack(28), two = add_stack(9), outer = add_stack(50);
  report.incidents[0].stack = one;
  std::vector<model::Id>& frames = report.stacks[one - 1].frames;
  frames = {one, two, one, two, one, two, one, outer};
  const std::string shown = text();
  EXPECT_TRUE(has(shown,
                  "       src/cache.cpp:28  insert\n"
                  "       src/cache.cpp:9   insert\n"
                  "       … 4 more frames: these 2 lines 2 more times\n"
                  "       src/cache.cpp:28  insert\n"
                  "       src/cache.cpp:50  insert\n"))
      << shown;
  frames = {one, two, one, two, outer};
  EXPECT_FALSE(has(text(), "more times")) << "two times are not folded";
}

TEST_F(TextRows, a_recursion_through_a_library_and_one_of_four_functions_are_folded) {
  add_incident("device_full_own");
  const model::Id own = add_stack(1), library = add_stack(2), other = add_stack(3);
  const model::Id last = add_stack(4), outer = add_stack(50);
  report.frames[library - 1].library = "Foo";
  report.incidents[0].stack = own;
  std::vector<model::Id>& frames = report.stacks[own - 1].frames;
  for (int i = 0; i < 6; ++i) frames.insert(frames.end(), {library, library, own});
  const std::string through_library = text();
  EXPECT_TRUE(has(through_library,
                  "       src/cache.cpp:1  insert\n"
                  "       … 2 frames of Foo\n"
                  "       … 15 more frames: these 2 lines 5 more times\n"
                  "       src/cache.cpp:1  insert\n"))
      << through_library;
  report.frames[library - 1].library.reset();
  frames.clear();
  for (int i = 0; i < 3; ++i) frames.insert(frames.end(), {own, library, other, last});
  frames.push_back(outer);
  const std::string of_four = text();
  EXPECT_TRUE(has(of_four,
                  "       src/cache.cpp:4   insert\n"
                  "       … 8 more frames: these 4 lines 2 more times\n"
                  "       src/cache.cpp:50  insert\n"))
      << of_four;
  TextOptions full;
  full.full_stacks = true;
  EXPECT_FALSE(has(text(full), "more times"));
}

TEST_F(TextRows, the_account_of_a_device_has_the_names_of_other_sections) {
  constexpr std::size_t column = 22;
  const std::string end = " memory";
  for (const char* const kind :
       {"device", "managed", "stream_ordered", "vmm", "array", "imported", "graph"}) {
    const std::string words = account_item_words("live_" + std::string(kind));
    const std::string whole = "live " + memory_name(kind, std::nullopt);
    EXPECT_LE(words.size(), column) << words;
    EXPECT_EQ(words, whole.size() > column ? whole.substr(0, whole.size() - end.size()) : whole);
  }
  EXPECT_EQ(account_item_words("live_stream_ordered"), "live stream-ordered");
  EXPECT_EQ(account_item_words("slab_waste"), "locked in slabs");
}

TEST_F(TextRows, leaks_say_what_is_known_of_a_part_of_them) {
  model::LeakGroup& leak = report.leak_groups.emplace_back();
  leak.kind = "device";
  leak.device = 0;
  leak.count = leak.allocations = 66;
  leak.bytes = 66 * mib;
  leak.growth = "burst";
  leak.survivors = 66;
  leak.reachable_count = 63;
  leak.unknown_count = 3;
  EXPECT_TRUE(has(text(), "burst: 66 at one moment, then none · 63 of 66 reachable\n")) << text();
  leak.survivors = 15;
  leak.reachable_count = 66;
  EXPECT_TRUE(has(text(), "burst: 15 at one moment, then 51 younger ones · reachable\n")) << text();
}

TEST_F(TextRows, requests_of_further_stacks_are_counted_without_that_of_the_headline) {
  for (model::Id i = 0; i < 7; ++i) {
    add_incident("device_full_own");
    report.incidents.back().id = i + 1;
    report.incidents.back().last_ns = i == 6 ? 2 : 1;
  }
  EXPECT_TRUE(has(text(), "requests from 1 more call stack failed")) << text();
}

TEST_F(TextRows, a_forecast_names_the_line_without_its_folders) {
  model::Forecast& row = report.forecasts.emplace_back();
  row.free_bytes = 20 * mib;
  row.growth_bytes_per_step = mib;
  row.steps_left = 20;
  row.stack = add_stack(41);
  row.where = "/home/u/../u/src/cache.cpp:41 in insert";
  EXPECT_TRUE(has(text(), "\n  grew fastest at cache.cpp:41 in insert\n")) << text();
}

}  // namespace
}  // namespace cuwarden
