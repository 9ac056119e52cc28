// Cancellation of threads that are inside an Uncancelled, or were.
#include "runtime_hooks/core/uncancelled.hpp"

#include <gtest/gtest.h>

#include "tests/repetitions.hpp"

namespace cuwarden {
namespace {

struct Steps {
  bool after_scopes = false, after_restoring = false, at_end = false;
};

// Cancels itself inside two scopes, one within the other.
void* cancel_self(void* to) {
  auto& steps = *static_cast<Steps*>(to);
  {
    const Uncancelled outer;
    const Uncancelled inner;
    pthread_cancel(pthread_self());
    pthread_testcancel();
  }
  steps.after_scopes = true;
  Uncancelled::restore_type();
  steps.after_restoring = true;
  pthread_testcancel();
  steps.at_end = true;
  return nullptr;
}

void* cancel_self_at_once(void* to) {
  int before = 0;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
  return cancel_self(to);
}

// Runs a thread to its end. Returns true if it was cancelled.
bool is_cancelled(void* (*work)(void*), Steps& steps) {
  pthread_t thread{};
  void* result = nullptr;
  return pthread_create(&thread, nullptr, work, &steps) == 0 &&
         pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED;
}

TEST(Uncancelled, a_request_in_a_scope_acts_at_the_next_cancellation_point) {
  if (test::is_sanitized)
    GTEST_SKIP() << "AddressSanitizer does not see a cancellation's unwinding";
  Steps steps;
  EXPECT_TRUE(is_cancelled(cancel_self, steps));
  EXPECT_TRUE(steps.after_restoring);
  EXPECT_FALSE(steps.at_end);
}

TEST(Uncancelled, a_request_for_a_thread_of_asynchronous_type_acts_once_the_type_is_restored) {
  if (test::is_sanitized)
    GTEST_SKIP() << "AddressSanitizer does not see a cancellation's unwinding";
  Steps steps;
  EXPECT_TRUE(is_cancelled(cancel_self_at_once, steps));
  EXPECT_TRUE(steps.after_scopes);
  EXPECT_FALSE(steps.after_restoring);
}

TEST(Uncancelled, the_asynchronous_type_comes_back_without_a_request) {
  int type = 0;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
  { const Uncancelled scope; }
  Uncancelled::restore_type();
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
  EXPECT_EQ(type, PTHREAD_CANCEL_ASYNCHRONOUS);
}

}  // namespace
}  // namespace cuwarden
