#include "runtime_hooks/tracking/captures.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/manual_clock.hpp"

namespace cuwarden::tracking {
namespace {

CUstream stream(std::uintptr_t number) { return reinterpret_cast<CUstream>(16 * number); }
constexpr ContextId here{7}, elsewhere{8};

TEST(CapturesTest, a_capture_is_in_progress_from_its_beginning_to_its_end) {
  Captures captures;
  EXPECT_FALSE(captures.any());
  EXPECT_TRUE(captures.begins(stream(1), false, here, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_TRUE(captures.any());
  EXPECT_FALSE(captures.begins(stream(1), false, here, CU_STREAM_CAPTURE_MODE_GLOBAL))
      << "the stream is captured already";
  captures.ended(stream(2), false);
  EXPECT_TRUE(captures.any()) << "another stream's";
  captures.ended(stream(1), false);
  EXPECT_FALSE(captures.any());
  captures.ended(stream(1), false);
  EXPECT_FALSE(captures.any());
}

TEST(CapturesTest, a_capture_ends_with_its_stream_or_context) {
  Captures captures;
  captures.begins(stream(1), false, here, CU_STREAM_CAPTURE_MODE_GLOBAL);
  captures.stream_ends(stream(2));
  EXPECT_TRUE(captures.any());
  captures.stream_ends(stream(1));
  EXPECT_FALSE(captures.any());
  captures.begins(stream(1), false, here, CU_STREAM_CAPTURE_MODE_GLOBAL);
  captures.context_ends(elsewhere);
  EXPECT_TRUE(captures.any());
  captures.context_ends(here);
  EXPECT_FALSE(captures.any());
}

TEST(CapturesTest, captures_beyond_the_tables_limit_also_end) {
  Captures captures;
  for (std::uintptr_t i = 1; i <= 200; ++i)
    EXPECT_TRUE(captures.begins(stream(i), false, here, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (std::uintptr_t i = 1; i <= 199; ++i) {
    captures.ended(stream(i), false);
    EXPECT_TRUE(captures.any()) << i;
  }
  captures.ended(stream(200), false);
  EXPECT_FALSE(captures.any());
}

TEST(CapturesTest, each_thread_has_a_default_stream_of_its_own) {
  Captures captures;
  EXPECT_TRUE(captures.begins(nullptr, true, here, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_FALSE(captures.begins(CU_STREAM_PER_THREAD, false, here, CU_STREAM_CAPTURE_MODE_GLOBAL));
  std::thread([&] {
    EXPECT_TRUE(captures.begins(CU_STREAM_PER_THREAD, false, here, CU_STREAM_CAPTURE_MODE_GLOBAL));
    captures.ended(nullptr, true);
    EXPECT_TRUE(captures.any());
  }).join();
  captures.ended(CU_STREAM_PER_THREAD, false);
  EXPECT_FALSE(captures.any());
  EXPECT_FALSE(captures.begins(nullptr, false, here, CU_STREAM_CAPTURE_MODE_GLOBAL))
      << "the driver captures no legacy stream";
}

// The call passes the driver's check for captures meanwhile, and might return much later.
TEST(CapturesTest, a_capture_waits_a_millisecond_at_most_for_a_call_that_would_end_it) {
  ManualClock clock;
  Captures captures(clock);
  const std::uint64_t begun_ns = clock.now_ns();
  EXPECT_TRUE(captures.begin_wait());
  EXPECT_TRUE(captures.begins(stream(1), false, here, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_EQ(clock.now_ns() - begun_ns, 1'000'000u);
  captures.end_wait();
  EXPECT_FALSE(captures.begin_wait()) << "a capture is in progress";
}

TEST(CapturesTest, a_capture_begins_as_soon_as_the_call_has_returned) {
  ManualClock clock;
  Captures captures(clock);
  EXPECT_TRUE(captures.begin_wait());
  int sleeps = 0;
  clock.while_asleep = [&] {
    if (++sleeps == 3) captures.end_wait();
  };
  EXPECT_TRUE(captures.begins(stream(1), false, here, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_EQ(sleeps, 3);
}

}  // namespace
}  // namespace cuwarden::tracking
