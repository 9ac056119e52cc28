// The headline of a report: which of several events it is about, and what it says of it.
#include "reporters/text/headline/headline.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <utility>

#include "reporters/words/wall_clock.hpp"
#include "tests/unit/reporters/text/has.hpp"
#include "tests/unit/reporters/units.hpp"

namespace cuwarden {
namespace {

using test::has;
using test::mib;
using test::second_ns;

// A report about a process that ran for 20 s and ended by itself.
class HeadlineTest : public testing::Test {
 protected:
  HeadlineTest() {
    report.process.start = "2026-11-20T08:00:00.000000000Z";
    report.process.end_ns = 20 * second_ns;
    report.process.end_reason = "exit";
    report.process.exit_status = 0;
    report.totals.push_back({.kind = "device",
                             .device = 0,
                             .allocations = 10,
                             .allocated_bytes = {},
                             .frees = {},
                             .failures = {},
                             .live_count = {},
                             .live_bytes = {},
                             .peak_count = {},
                             .peak_bytes = {},
                             .peak_time_ns = {}});
    report.leaks = {0, 0, 0, 0};
  }

  // Adds a stack of one frame. Returns its id.
  model::Id add_stack(const char* file, std::uint64_t line, const char* function) {
    const auto id = static_cast<model::Id>(report.stacks.size() + 1);
    model::Frame frame;
    frame.id = id;
    frame.file = file;
    frame.line = line;
    frame.function = function;
    report.frames.push_back(std::move(frame));
    report.stacks.push_back({id, {id}, false});
    return id;
  }

  // Adds a group of live allocations, of 1 MiB each, that were made in `function`.
  model::LeakGroup& add_leak(const char* kind, std::uint64_t count, const char* function) {
    model::LeakGroup row;
    row.stack = add_stack("/src/cache.cpp", 41, function);
    row.kind = kind;
    if (std::string(kind) == "device") row.device = 0;
    row.api = "cudaMalloc";
    row.count = count;
    row.bytes = count * mib;
    row.growth = "one_time";
    report.leaks.count = *report.leaks.count + count;
    report.leaks.bytes = *report.leaks.bytes + count * mib;
    return report.leak_groups.emplace_back(std::move(row));
  }

  // Adds a request that failed `since_start` seconds into the run.
  model::Incident& add_incident(std::uint64_t since_start, const char* function) {
    model::Incident row;
    row.id = static_cast<model::Id>(report.incidents.size() + 1);
    row.time_ns = row.last_ns = since_start * second_ns;
    row.api = "cudaMalloc";
    row.kind = "device";
    row.bytes = 8 * mib;
    row.device = 0;
    row.stack = add_stack("/src/solver.cpp", 7, function);
    row.result = "CUDA_ERROR_OUT_OF_MEMORY";
    row.outcome = "failed";
    row.verdict = "device_full_own";
    row.repeats = 0;
    row.failed_count = 1;
    row.advice = "this process holds it: free or shrink something";
    return report.incidents.emplace_back(std::move(row));
  }

  void kill(std::uint64_t signal) {
    report.process.end_reason = "signal";
    report.process.exit_status.reset();
    report.process.signal = signal;
  }

  Headline headline() const { return headline_of(IndexedReport(report), Style(false)); }
  std::string clock(std::uint64_t since_start) const {
    return time_of_day(*parse_iso_8601(report.process.start) +
                       static_cast<std::int64_t>(since_start * second_ns));
  }

  model::Report report;
};

TEST_F(HeadlineTest, says_that_nothing_was_leaked_if_nothing_else_happened) {
  EXPECT_EQ(headline().line(), "no leaks: every recorded allocation was freed");
  EXPECT_EQ(headline().gravity, Gravity::fine);
  report.totals.clear();
  EXPECT_EQ(headline().line(), "nothing to judge: no allocation was recorded");
}

TEST_F(HeadlineTest, live_memory_that_is_neither_lost_nor_grows_is_no_alarm) {
  add_leak("device", 3, "load");
  EXPECT_EQ(headline().line(), "NOT FREED: 3.0 MiB in 3 allocations at the end; none of it grows");
  EXPECT_EQ(headline().gravity, Gravity::caution);
  report.leak_groups.front().reachable_count = 3;
  EXPECT_TRUE(
      headline().line().ends_with("; none of it grows, and pointers to all of it are left"));
}

TEST_F(HeadlineTest, does_not_say_that_memory_of_unknown_growth_does_not_grow) {
  add_leak("device", 3, "load");
  model::FrameworkSite& site = report.framework_sites.emplace_back();
  site.framework = "PyTorch";
  site.growth = "one_time";
  EXPECT_TRUE(headline().line().ends_with("; none of it grows")) << headline().line();
  // A framework that lists its blocks itself does not tell when they were made.
  site.growth.reset();
  EXPECT_TRUE(headline().line().ends_with("; none of it is known to grow")) << headline().line();
  report.framework_sites.clear();
  report.leak_groups.front().growth.reset();
  EXPECT_TRUE(headline().line().ends_with("; none of it is known to grow")) << headline().line();
  report.leak_groups.front().suppressed = true;
  EXPECT_TRUE(headline().line().ends_with("; none of it grows, and pointers to all of it are left"))
      << "what is suppressed is no leak: " << headline().line();
}

TEST_F(HeadlineTest, names_the_line_of_lost_memory_before_larger_memory_that_grows) {
  model::LeakGroup& grown = add_leak("device", 50, "collect");
  grown.growth = "growing";
  EXPECT_EQ(headline().line(),
            "GROWING MEMORY: 50.0 MiB in 50 allocations of device memory (GPU 0), made at "
            "cache.cpp:41 in collect, growing");
  model::LeakGroup& lost = add_leak("device", 2, "insert");
  lost.lost_count = 2;
  lost.lost_bytes = 2 * mib;
  EXPECT_EQ(
      headline().line(),
      "LOST MEMORY: 2.0 MiB in 2 allocations of device memory (GPU 0), made at cache.cpp:41 in "
      "insert");
  EXPECT_FALSE(headline().advice.empty());
  report.leak_groups.back().lost_count = 1;
  report.leak_groups.back().lost_bytes = mib;
  EXPECT_TRUE(headline().line().starts_with("LOST MEMORY: 1.0 MiB in 1 of 2 allocations of "))
      << headline().line();
}

TEST_F(HeadlineTest, sums_up_what_one_line_has_lost_by_whatever_stacks) {
  for (int i = 0; i < 3; ++i) {
    model::LeakGroup& lost = add_leak("device", 2, "insert");
    lost.lost_count = 2;
    lost.lost_bytes = 2 * mib;
    lost.allocations = 4;
    // A caller of its own makes each stack look different.
    const model::Id caller = add_stack("/src/main.cpp", 10 + static_cast<unsigned>(i), "main");
    report.stacks[*lost.stack - 1].frames.push_back(caller);
  }
  model::LeakGroup& larger = add_leak("device", 5, "load");
  larger.lost_count = 5;
  larger.lost_bytes = 5 * mib;
  EXPECT_EQ(
      headline().line(),
      "LOST MEMORY: 6.0 MiB in 6 allocations of device memory (GPU 0), made at cache.cpp:41 in "
      "insert, by 3 call stacks");
  EXPECT_EQ(headline().advice,
            "look for the path that skips cudaFree, since 6 of 12 made there were freed");
  // Memory of the line that is not lost is not counted among the lost.
  report.leak_groups.front().lost_count.reset();
  report.leak_groups.front().lost_bytes.reset();
  EXPECT_TRUE(headline().line().starts_with("LOST MEMORY: 5.0 MiB in 5 ")) << headline().line();
}

TEST_F(HeadlineTest, sums_up_only_what_grows_of_a_line_whose_memory_grows) {
  for (int i = 0; i < 3; ++i) {
    model::LeakGroup& row = add_leak("device", 4, "allocate");
    row.growth = i == 2 ? "one_time" : "growing";
    const model::Id caller = add_stack("/src/main.cpp", 10 + static_cast<unsigned>(i), "main");
    report.stacks[*row.stack - 1].frames.push_back(caller);
  }
  EXPECT_EQ(headline().line(),
            "GROWING MEMORY: 8.0 MiB in 8 allocations of device memory (GPU 0), made at "
            "cache.cpp:41 in allocate, by 2 call stacks, growing");
}

TEST_F(HeadlineTest, a_failed_request_has_its_moment_its_line_its_cause_and_the_remedy) {
  add_leak("device", 2, "insert").lost_count = 2;
  add_incident(5, "solve");
  const Headline shown = headline();
  EXPECT_EQ(shown.line(), "OUT OF MEMORY at " + clock(5) +
                              ", 5.0 s into the run: cudaMalloc of 8.0 MiB (GPU 0) failed at "
                              "solver.cpp:7 in solve");
  EXPECT_EQ(shown.cause, "this process holds it (device_full_own)");
  report.incident_facts.push_back({1, "free_bytes", 3 * mib});
  EXPECT_TRUE(headline().line().ends_with(
      " of 8.0 MiB (GPU 0) failed with 3.0 MiB free at solver.cpp:7 in solve"))
      << headline().line();
  report.incident_facts.back().value = 9 * mib;
  report.incidents[0].bytes = 9 * mib;
  EXPECT_TRUE(has(headline().line(), " with 9.0 MiB free (the driver rounds it up by 1.0 MiB) at "))
      << headline().line();
  EXPECT_EQ(shown.advice, "free or shrink something");
  EXPECT_EQ(shown.incident, 1u);
}

TEST_F(HeadlineTest, counts_the_failures_that_the_program_saw) {
  model::Incident& incident = add_incident(5, "solve");
  incident.repeats = 418;
  incident.rescued_count = 198;
  incident.failed_count = 221;
  EXPECT_TRUE(has(headline().line(), " failed 221 times from then on at ")) << headline().line();
  EXPECT_TRUE(headline().line().ends_with("; 198 more were served")) << headline().line();
  incident.rescued_count = 1;
  EXPECT_TRUE(headline().line().ends_with("; 1 more was served")) << headline().line();
}

TEST_F(HeadlineTest, is_about_the_request_that_failed_last) {
  add_incident(15, "late");
  add_incident(5, "early");
  EXPECT_EQ(headline().incident, 1u);
  report.incidents[1].last_ns = 18 * second_ns;
  EXPECT_EQ(headline().incident, 2u);
}

TEST_F(HeadlineTest, names_the_holder_that_grows_before_a_larger_one) {
  add_incident(5, "solve");
  model::IncidentHolder large;
  large.incident = 1;
  large.kind = "device";
  large.count = 1;
  large.bytes = 100 * mib;
  large.stack = add_stack("/src/model.cpp", 3, "load");
  model::IncidentHolder growing = large;
  growing.bytes = 20 * mib;
  growing.growth_bytes_per_minute = mib;
  growing.stack = add_stack("/src/cache.cpp", 41, "insert");
  report.incident_holders = {large};
  EXPECT_TRUE(headline().cause.ends_with(
      "; 1 allocation (100.0 MiB in all), made at model.cpp:3 in load (device_full_own)"));
  report.incident_holders = {large, growing};
  EXPECT_TRUE(
      headline().cause.ends_with("; 1 allocation (20.0 MiB in all), made at cache.cpp:41 in "
                                 "insert, and ever more (device_full_own)"));
}

TEST_F(HeadlineTest, rescued_requests_come_behind_a_leak) {
  model::Incident& incident = add_incident(5, "solve");
  incident.outcome = "rescued";
  incident.rescued_count = 3;
  incident.failed_count = 0;
  EXPECT_EQ(headline().line(),
            "RESCUED: cuwarden served 3 requests that the driver had refused for lack of memory; "
            "the program saw no failure");
  add_leak("device", 1, "insert").lost_count = 1;
  EXPECT_EQ(headline().title, "LOST MEMORY");
}

TEST_F(HeadlineTest, memory_that_grows_comes_before_a_loss_of_a_hundredth) {
  add_leak("device", 200, "collect").growth = "growing";
  model::LeakGroup& lost = add_leak("device", 3, "insert");
  lost.lost_count = 1;
  lost.lost_bytes = mib;
  EXPECT_EQ(headline().title, "LOST MEMORY");
  report.leak_groups.front().bytes = 300 * mib;
  EXPECT_EQ(headline().title, "GROWING MEMORY");
}

TEST_F(HeadlineTest, the_advice_names_the_function_of_the_call_and_counts_what_was_freed) {
  model::LeakGroup& lost = add_leak("device", 3, "insert");
  lost.lost_count = 3;
  lost.allocations = 12;
  EXPECT_EQ(headline().advice,
            "look for the path that skips cudaFree, since 9 of 12 made there were freed");
  // The end of a context has released the others.
  model::LeakGroup released = report.leak_groups.front();
  released.released_by = "context";
  released.count = 9;
  report.leak_groups.push_back(released);
  EXPECT_EQ(headline().advice, "call cudaFree for them, since nothing frees what is made there");
  report.leak_groups.front().api = "cuMemAlloc_v2";
  EXPECT_EQ(headline().advice, "call cuMemFree for them, since nothing frees what is made there");
  report.leak_groups.front().kind = "local_memory";
  EXPECT_EQ(headline().advice, "");
}

TEST_F(HeadlineTest, the_advice_about_one_allocation_speaks_of_one) {
  model::LeakGroup& lost = add_leak("device", 1, "insert");
  lost.lost_count = lost.allocations = 1;
  EXPECT_EQ(headline().advice, "call cudaFree for it, since nothing frees what is made there");
}

TEST_F(HeadlineTest, each_event_says_what_to_do) {
  add_leak("device", 3, "load");
  EXPECT_EQ(headline().advice,
            "nothing, if the program needs the memory until its end; otherwise free it where it is "
            "needed no more");
  report.process.end_reason = "running";
  EXPECT_EQ(headline().advice, "");
  kill(SIGSEGV);
  EXPECT_TRUE(headline().advice.starts_with("run the program in a debugger")) << headline().advice;
  EXPECT_TRUE(headline().advice.ends_with("; no request for memory had failed"));
  kill(SIGABRT);
  const std::string on_abort = headline().advice;
  EXPECT_TRUE(on_abort.starts_with("read what the program printed last")) << on_abort;
  report.process.end_reason = "abort";
  report.process.signal.reset();
  EXPECT_EQ(headline().advice, on_abort);
  report.process.end_reason.reset();
  EXPECT_TRUE(headline().advice.starts_with("look for its exit status")) << headline().advice;
  kill(SIGINT);
  EXPECT_TRUE(headline().advice.starts_with("nothing, if a person")) << headline().advice;
  kill(SIGTERM);
  EXPECT_TRUE(headline().advice.starts_with("find out who sent the signal")) << headline().advice;
}

TEST_F(HeadlineTest, a_rescue_needs_nothing_done_but_names_how_to_need_none) {
  model::Incident& incident = add_incident(5, "solve");
  incident.outcome = "rescued";
  incident.rescued_count = 1;
  EXPECT_EQ(headline().cause, "this process holds it");
  EXPECT_EQ(headline().advice, "nothing; to need no rescue, free or shrink something");
  report.incidents.front().advice.reset();
  EXPECT_EQ(headline().advice, "nothing, since the program got its memory");
}

TEST_F(HeadlineTest, a_kill_long_after_a_failure_is_told_as_a_kill) {
  add_incident(5, "solve");
  kill(SIGTERM);
  EXPECT_EQ(headline().title, "OUT OF MEMORY");
  report.process.end_ns = 2 * 3600 * second_ns;
  EXPECT_EQ(headline().title, "KILLED");
}

TEST_F(HeadlineTest, a_cgroup_far_from_its_limit_was_not_the_reason_of_a_kill) {
  kill(SIGKILL);
  report.memory_cgroup = model::MemoryCgroup{"/sys/fs/cgroup/job", 256 * mib, 100 * mib, 1};
  EXPECT_EQ(headline().title, "KILLED");
}

TEST_F(HeadlineTest, a_killed_process_is_named_by_its_signal_with_what_was_suspicious) {
  kill(SIGSEGV);
  EXPECT_EQ(headline().line(),
            "KILLED by signal 11 (SIGSEGV) at " + clock(20) + ", 20.0 s into the run");
  add_leak("device", 4, "insert").growth = "growing";
  EXPECT_TRUE(headline().line().ends_with(", when 4.0 MiB in 4 allocations were live"));
  EXPECT_TRUE(headline().cause.starts_with("the memory that grew: 4.0 MiB")) << headline().cause;
  report.process.end_reason.reset();
  report.process.signal.reset();
  EXPECT_EQ(headline().title, "ENDED UNSEEN");
}

TEST_F(HeadlineTest, tells_a_kill_for_lack_of_host_memory_from_other_kills) {
  kill(SIGKILL);
  report.memory_cgroup = model::MemoryCgroup{"/sys/fs/cgroup/job", 256 * mib, 256 * mib, 1};
  add_leak("device", 9, "load");
  add_leak("pinned", 4, "stage");
  EXPECT_EQ(headline().line(), "KILLED BY THE OOM KILLER at " + clock(20) +
                                   ", 20.0 s into the run: the cgroup's limit is 256.0 MiB, its "
                                   "peak was 256.0 MiB");
  EXPECT_EQ(headline().cause,
            "the process held 4.0 MiB of pinned host memory, most of it 4.0 MiB in 4 allocations "
            "of pinned host memory, made at cache.cpp:41 in stage");
  report.memory_cgroup->limit_bytes.reset();
  EXPECT_TRUE(
      headline().line().ends_with("the machine ran out of memory, since the cgroup has no limit"));
  report.process.signal = SIGTERM;
  EXPECT_EQ(headline().title, "KILLED");
  report.process.signal = SIGKILL;
  report.memory_cgroup->oom_kills = 0;
  EXPECT_EQ(headline().title, "KILLED");
}

TEST_F(HeadlineTest, has_no_line_feed_and_no_control_characters) {
  add_incident(5, "so\033[31mlve\n");
  report.incidents[0].advice = "one\ntwo: three\033";
  const Headline shown = headline();
  for (const std::string& text : {shown.line(), shown.cause, shown.advice}) {
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_EQ(text.find('\033'), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace cuwarden
