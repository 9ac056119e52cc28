// Preloaded beside the shim: time passes for the shim only while it sleeps, or while the program
// says so by let_time_pass(), and a sleep takes none of the test's. So the shim's waits are the
// same on a machine that does other work. A reading takes a microsecond, or
// DRIVEN_CLOCK_READING_NS, so that a loop that only reads comes to an end, too.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "../replaced_imports.hpp"

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
std::atomic<std::int64_t> now_ns{0};
std::atomic<std::int64_t> reading_ns{1000};

int time_of(clockid_t clock, timespec* time) {
  if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE)
    return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  const std::int64_t now = now_ns.fetch_add(reading_ns);
  *time = {.tv_sec = now / second_ns, .tv_nsec = now % second_ns};
  return 0;
}

int sleep_on(clockid_t, int, const timespec* length, timespec*) {
  now_ns.fetch_add(length->tv_sec * second_ns + length->tv_nsec);
  return 0;
}

[[gnu::constructor]] void take_over() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  now_ns = now.tv_sec * second_ns + now.tv_nsec;
  if (const char* given = std::getenv("DRIVEN_CLOCK_READING_NS"))
    reading_ns = std::strtoll(given, nullptr, 10);
  replace_import_of_shim("clock_gettime", reinterpret_cast<void*>(time_of));
  replace_import_of_shim("clock_nanosleep", reinterpret_cast<void*>(sleep_on));
}

}  // namespace

// Lets that many nanoseconds pass for the shim; see let_time_pass().
extern "C" void pass_driven_time(std::int64_t nanoseconds) { now_ns.fetch_add(nanoseconds); }
// From now on, a reading takes that many nanoseconds; see let_readings_take().
extern "C" void set_driven_reading(std::int64_t nanoseconds) { reading_ns = nanoseconds; }
// Returns the driven clock's time in nanoseconds; see present_time_ns().
extern "C" std::int64_t driven_time_ns() { return now_ns; }
// Reads the driven clock as clock_gettime() does, for driven_device.cpp.
extern "C" int read_driven_clock(clockid_t clock, timespec* time) { return time_of(clock, time); }
