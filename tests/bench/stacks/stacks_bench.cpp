// Measures walks of the stack, beside other ways to do them. This file is compiled with frame
// pointers: following them is the bound that no unwinder reaches. All walks are of the same stacks,
// and end after the same number of frames.
#include <benchmark/benchmark.h>
#include <immintrin.h>

#include <array>
#include <cstdlib>
#include <utility>

#ifdef CUWARDEN_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#endif

#include "tests/bench/stacks/recorded_pair.hpp"
#include "tests/bench/stacks/walks.hpp"

namespace {

using namespace cuwarden::bench;

using Walk = std::size_t (*)(std::uint64_t*, std::size_t);

[[gnu::noinline]] std::size_t by_frame_pointers(std::uint64_t* frames, std::size_t room) {
  const auto* frame = static_cast<const std::uint64_t*>(__builtin_frame_address(0));
  std::size_t count = 0;
  for (; count < room; ++count) {
    frames[count] = frame[1];
    frame = reinterpret_cast<const std::uint64_t*>(frame[0]);
  }
  return count;
}

#ifdef CUWARDEN_LIBUNWIND
[[gnu::noinline]] std::size_t by_libunwind(std::uint64_t* frames, std::size_t room) {
  const int count = unw_backtrace(reinterpret_cast<void**>(frames), static_cast<int>(room));
  asm volatile("" ::: "memory");
  return static_cast<std::size_t>(count);
}
#endif

[[gnu::noinline]] std::size_t nothing(std::uint64_t*, std::size_t) { return 0; }

// Allocates and frees; measures a heap profiler that is preloaded.
[[gnu::noinline]] std::size_t malloc_pair(std::uint64_t*, std::size_t room) {
  void* memory = std::malloc(512);
  benchmark::DoNotOptimize(memory);
  std::free(memory);
  return room;
}

// Four hundred functions that call one another in any order: a path is a sequence of them.
struct Descent;
using Level = void (*)(Descent&);
struct Descent {
  const std::uint16_t* path;
  std::size_t left;
  void (*at_the_end)(void*);
  void* argument;
};
constexpr std::size_t functions = 400;
extern const std::array<Level, functions> levels;

template <std::size_t number>
[[gnu::noinline]] void level(Descent& descent) {
  volatile char room[16 + 16 * (number % 7)];
  room[0] = static_cast<char>(number);
  if (descent.left == 0) {
    descent.at_the_end(descent.argument);
  } else {
    --descent.left;
    levels[*descent.path++](descent);
  }
  room[1] = room[0];
}

template <std::size_t... numbers>
constexpr std::array<Level, functions> all_levels(std::index_sequence<numbers...>) {
  return {level<numbers>...};
}
const std::array<Level, functions> levels = all_levels(std::make_index_sequence<functions>());

constexpr std::size_t deepest = 64;
struct Path {
  std::uint16_t levels[deepest];
};
Path path_number(std::uint64_t seed) {
  Path path;
  for (std::uint16_t& level : path.levels) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    level = static_cast<std::uint16_t>((seed >> 33) % functions);
  }
  return path;
}

template <class Work>
void descend(const Path& path, std::size_t depth, Work& work) {
  Descent descent{path.levels, depth, [](void* argument) { (*static_cast<Work*>(argument))(); },
                  &work};
  level<0>(descent);
}

// Walks one stack again and again.
void one_stack(benchmark::State& state, Walk walk) {
  const auto depth = static_cast<std::size_t>(state.range(0));
  std::uint64_t frames[deepest];
  auto work = [&] {
    for (auto _ : state) {
      benchmark::DoNotOptimize(walk(frames, depth));
      benchmark::ClobberMemory();
    }
  };
  descend(path_number(7), depth, work);
}

// Walks one stack again and again, each walk by itself: it begins when the last one is over, and is
// over when all words that it read have arrived. Programs are like that, because an allocation lies
// between two walks; in a bare loop the processor works on several short walks at once.
void one_stack_alone(benchmark::State& state, Walk walk) {
  const auto depth = static_cast<std::size_t>(state.range(0));
  std::uint64_t frames[deepest];
  auto work = [&] {
    for (auto _ : state) {
      benchmark::DoNotOptimize(walk(frames, depth));
      benchmark::ClobberMemory();
      _mm_lfence();
    }
  };
  descend(path_number(7), depth, work);
}

// Walks hundreds of stacks in turn. The time of the descents alone is measured with a walk that
// does nothing.
void alternating_stacks(benchmark::State& state, Walk walk) {
  const auto depth = static_cast<std::size_t>(state.range(0));
  std::uint64_t frames[deepest];
  std::array<Path, 256> paths;
  for (std::size_t i = 0; i < paths.size(); ++i) paths[i] = path_number(i * 977 + 1);
  std::size_t next = 0;
  auto work = [&] {
    benchmark::DoNotOptimize(walk(frames, depth));
    benchmark::ClobberMemory();
  };
  for (auto _ : state) descend(paths[next++ % paths.size()], depth, work);
}

#define WALK(walk)                                                           \
  BENCHMARK_CAPTURE(one_stack, walk, walk)->Arg(10)->Arg(30)->Arg(60);       \
  BENCHMARK_CAPTURE(one_stack_alone, walk, walk)->Arg(10)->Arg(30)->Arg(60); \
  BENCHMARK_CAPTURE(alternating_stacks, walk, walk)->Arg(10)->Arg(30)->Arg(60)

WALK(nothing);       // To be subtracted from the times of this program's walks and of libunwind's.
WALK(walk_nothing);  // To be subtracted from the times of the shared object's walks.
WALK(by_frame_pointers);
WALK(walk_by_rules);
WALK(walk_and_remember);
WALK(recognise_or_walk);
#ifdef CUWARDEN_LIBUNWIND
WALK(by_libunwind);
#endif
WALK(walk_by_libgcc);
WALK(record_pair);
WALK(malloc_pair);

}  // namespace
