// Frames of all shapes that compilers make. Built once for each of many ways to compile, because
// the compiler's unwind tables are under test.
#include <alloca.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <mutex>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/contract/stacks/comparing.hpp"
#include "tests/repetitions.hpp"

namespace {

#define NOINLINE __attribute__((noinline))
// Keeps the call before it from becoming a jump, which would leave no frame.
#define AFTERWARDS asm volatile("" ::: "memory")

using Next = const std::function<void()>&;

NOINLINE void small_frame(Next next) {
  next();
  AFTERWARDS;
}

NOINLINE void large_frame(Next next) {
  volatile char room[20000];
  room[0] = 1;
  next();
  room[19999] = room[0];
}

NOINLINE void many_registers(Next next, long a = 1, long b = 2, long c = 3, long d = 4) {
  long e = a * b, f = c * d, g = a + c, h = b - d;
  asm volatile("" : "+r"(e), "+r"(f), "+r"(g), "+r"(h));
  next();
  asm volatile("" ::"r"(a + e), "r"(b + f), "r"(c + g), "r"(d + h));
}

NOINLINE void sized_at_run_time(Next next, std::size_t size) {
  auto* const room = static_cast<volatile char*>(alloca(size));
  room[0] = 1;
  next();
  room[size - 1] = room[0];
}

// Functions with a realigned frame: GCC describes such frames by expressions.
NOINLINE void aligned_to_32(Next next) {
  alignas(32) volatile double values[4] = {1, 2, 3, 4};
  next();
  values[0] = values[1];
}
NOINLINE void aligned_to_64_and_sized_at_run_time(Next next, std::size_t size) {
  alignas(64) volatile double values[8] = {1, 2, 3, 4};
  auto* const room = static_cast<volatile char*>(alloca(size));
  room[0] = 1;
  next();
  values[0] = values[1];
  room[size - 1] = room[0];
}
__attribute__((noinline, target("avx"))) void aligned_for_avx(Next next, double a, double b) {
  typedef double Vector __attribute__((vector_size(32)));
  Vector vector = {a, b, a + b, a - b};
  asm volatile("" : "+m"(vector));
  next();
  asm volatile("" : "+m"(vector));
}
NOINLINE void stack_arguments(Next next, int, int, int, int, int, int, long last, long more) {
  alignas(32) volatile long values[4] = {last, more};
  next();
  values[2] = values[0] + values[1];
}

NOINLINE void tail_calls(Next next) { return next(); }

NOINLINE void catches(Next next) {
  try {
    next();
    throw std::runtime_error("thrown");
  } catch (const std::exception&) {
    compared();
  }
}

struct ComparesWhenDestroyed {
  ~ComparesWhenDestroyed() { compared(); }
};
NOINLINE void throws_through(Next next) {
  const ComparesWhenDestroyed destroyed;
  next();
  throw std::runtime_error("on its way");
}
NOINLINE void unwinds(Next next) {
  try {
    throws_through(next);
  } catch (...) {
    try {
      compared();
      throw;
    } catch (const std::runtime_error&) {
      compared();
    }
  }
}

thread_local const std::function<void()>* in_callback;
int in_comparison(const void* left, const void* right) {
  if (in_callback != nullptr) {
    const auto& work = *in_callback;
    in_callback = nullptr;
    work();
  }
  return *static_cast<const int*>(left) - *static_cast<const int*>(right);
}
NOINLINE void sorts(Next next) {
  int numbers[] = {3, 1, 2, 7, 5};
  in_callback = &next;
  qsort(numbers, 5, sizeof *numbers, in_comparison);
  AFTERWARDS;
}
NOINLINE void searches(Next next) {
  const int numbers[] = {1, 2, 3, 5, 7};
  in_callback = &next;
  AFTERWARDS;
  EXPECT_NE(bsearch(&numbers[3], numbers, 5, sizeof *numbers, in_comparison), nullptr);
}
NOINLINE void once(Next next) {
  static thread_local const std::function<void()>* work;
  const auto* const before = work;
  work = &next;
  pthread_once_t control = PTHREAD_ONCE_INIT;
  pthread_once(&control, [] { (*work)(); });
  work = before;
}

const std::vector<std::function<void(Next)>>& shapes() {
  static const std::vector<std::function<void(Next)>> all = {
      small_frame,
      large_frame,
      [](Next next) { many_registers(next); },
      [](Next next) { sized_at_run_time(next, 100); },
      [](Next next) { sized_at_run_time(next, 5000); },
      aligned_to_32,
      [](Next next) { aligned_to_64_and_sized_at_run_time(next, 300); },
      [](Next next) {
        if (__builtin_cpu_supports("avx"))
          aligned_for_avx(next, 1, 2);
        else
          next();
      },
      [](Next next) { stack_arguments(next, 1, 2, 3, 4, 5, 6, 7, 8); },
      tail_calls,
      catches,
      unwinds,
      sorts,
      searches,
      once,
  };
  return all;
}

void call_in_order(const std::vector<std::size_t>& order, std::size_t at) {
  if (at == order.size()) {
    compared();
    return;
  }
  try {
    shapes()[order[at]]([&] { call_in_order(order, at + 1); });
  } catch (...) {
    compared();
  }
}

TEST(CallShapes, EachShapeAloneGivesTheStackThatLibgccGives) {
  Comparing all;
  for (std::size_t shape = 0; shape < shapes().size(); ++shape)
    for (int again = 0; again < 2; ++again) call_in_order({shape}, 0);
  EXPECT_GE(all.compared(), 2 * shapes().size());
}

TEST(CallShapes, ShapesInAnyOrderGiveTheStackThatLibgccGives) {
  Comparing all;
  std::mt19937 random(4711);
  const std::uint64_t wanted = cuwarden::test::repetitions(5'000, 1'000'000);
  while (all.compared() < wanted) {
    std::vector<std::size_t> order(random() % 20);
    for (std::size_t& shape : order) shape = random() % shapes().size();
    call_in_order(order, 0);
    if (random() % 4 == 0) call_in_order(order, 0);
    ASSERT_EQ(all.different(), 0u) << last_difference();
  }
  EXPECT_GT(all.recognised(), wanted / 100);
  EXPECT_GT(stacks_seen().deepest, 40u);
}

TEST(CallShapes, RulesCanExpressEveryShape) {
  Comparing all;
  for (std::size_t shape = 0; shape < shapes().size(); ++shape) call_in_order({shape, shape}, 0);
  EXPECT_EQ(all.not_expressible(), 0u);
}

TEST(CallShapes, AStackDeeperThanTheRoomIsCutWhereLibgccCutsIt) {
  for (std::size_t room : {1u, 2u, 3u, 5u, 8u, 100u})
    call_in_order({0, 1, 2, 5}, 0), small_frame([&] { EXPECT_NE(compare_stacks_up_to(room), -1); });
  EXPECT_EQ(stacks_seen().different, 0u) << last_difference();
}

NOINLINE int recurse(int depth) {
  if (depth == 0) return compared();
  const int result = recurse(depth - 1);
  AFTERWARDS;
  return result;
}

TEST(CallShapes, AnUnchangedStackIsRecognisedAndAChangedOneIsNot) {
  probe_modules_changed();  // Makes room, which stacks of other tests take.
  Comparing all;
  for (int i = times(10); i > 0; --i) recurse(40);
  EXPECT_EQ(all.recognised(), 9u);
  for (int depth = 41; depth < times(60); ++depth) recurse(depth);
  EXPECT_EQ(all.recognised(), 9u);
}

}  // namespace
