// NVTX ranges that mark the program's steps (CUWARDEN_STEP_RANGE). NVTX is a header of the program,
// which loads the library that NVTX_INJECTION64_PATH names at its first call, and has it fill in
// functions for the calls. The structs are those of NVTX 2 and 3.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime_hooks/core/errno_guard.hpp"
#include "shim/exports/steps.hpp"
#include "shim/process/process.hpp"
#include "shim/support/settings.hpp"

namespace cuwarden::shim {
namespace {

// nvtxEventAttributes_t: the name and the looks of a range.
struct EventAttributes {
  std::uint16_t version, size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type, reserved;
  std::uint64_t payload;
  std::int32_t message_type;  // kind of the text to which `message` points; 1: char
  const char* message;
};
constexpr std::int32_t message_is_ascii = 1, message_is_registered = 3;

// The name of the ranges that mark steps; a star at its end stands for any further text. Its
// address is the handle of registered names that mark steps.
setting_types::RangeName step_range;
// Each library with the header of NVTX asks for functions anew. step_range is filled once.
enum class Filled : std::uint32_t { no, under_way, yes };
constinit std::atomic<Filled> filled{Filled::no};

// Fills step_range once. Returns false if the user has chosen no range, or if another thread that
// fills it does not end within a second: a signal handler may have interrupted that thread.
bool read_step_range() noexcept {
  Filled seen = Filled::no;
  if (filled.compare_exchange_strong(seen, Filled::under_way)) {
    step_range_of_environment(step_range);
    filled.store(Filled::yes);
  }
  constexpr int most_waits = 1'000;
  constexpr timespec a_millisecond{.tv_sec = 0, .tv_nsec = 1'000'000};
  for (int i = 0; filled.load() != Filled::yes; ++i) {
    if (i == most_waits) return false;
    syscall(SYS_nanosleep, &a_millisecond, nullptr);  // glibc's is a cancellation point
  }
  return step_range[0] != '\0';
}
bool is_step(std::string_view name) noexcept {
  std::string_view wanted = step_range;
  if (!wanted.ends_with('*')) return name == wanted;
  wanted.remove_suffix(1);
  return name.starts_with(wanted);
}
void note(const char* name) noexcept {
  if (name != nullptr && is_step(name)) begin_step();
}
void note(const EventAttributes* range) noexcept {
  if (range == nullptr) return;
  if (range->message_type == message_is_ascii) note(range->message);
  if (range->message_type == message_is_registered && range->message == step_range) begin_step();
}
// Returns the handle of the name: null, as without a tool, unless it marks steps.
const char* register_name(void*, const char* name) noexcept {
  return name != nullptr && is_step(name) ? step_range : nullptr;
}

// Results of a range's begin if no tool keeps ranges: NVTX_NO_PUSH_POP_TRACKING, and no id.
constexpr int not_tracked = -2;
constexpr std::uint64_t no_id = 0;

int push_name(const char* name) noexcept {
  note(name);
  return not_tracked;
}
int push(const EventAttributes* range) noexcept {
  note(range);
  return not_tracked;
}
int push_in_domain(void*, const EventAttributes* range) noexcept { return push(range); }
std::uint64_t start_name(const char* name) noexcept {
  note(name);
  return no_id;
}
std::uint64_t start(const EventAttributes* range) noexcept {
  note(range);
  return no_id;
}
std::uint64_t start_in_domain(void*, const EventAttributes* range) noexcept { return start(range); }

// NvtxExportTableCallbacks: gives the table of a module's functions, each a pointer to the pointer
// that the program calls.
using AnyFunction = void (*)();
struct Callbacks {
  std::size_t struct_bytes;
  int (*functions_of)(int module, AnyFunction*** table, unsigned* size);
};
constexpr std::uint32_t callbacks_id = 1;          // NVTX_ETID_CALLBACKS
constexpr int core_module = 1, domain_module = 5;  // NVTX_CB_MODULE_CORE, _CORE2

template <class Function>
void replace(AnyFunction** table, unsigned size, unsigned index, Function* by) noexcept {
  if (index < size && table[index] != nullptr) *table[index] = reinterpret_cast<AnyFunction>(by);
}

}  // namespace
}  // namespace cuwarden::shim

// Is called by NVTX in the program, at its first call. `get_table`: returns a table by its id.
// Returns 1 if NVTX is to call the functions that were filled in, 0 if there are none.
extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtx2(
    const void* (*get_table)(std::uint32_t)) noexcept {
  using namespace cuwarden::shim;
  const cuwarden::ErrnoGuard keep;
  if (get_table == nullptr || !Process::get().enabled() || !read_step_range()) return 0;
  const auto* const callbacks = static_cast<const Callbacks*>(get_table(callbacks_id));
  if (callbacks == nullptr || callbacks->functions_of == nullptr) return 0;
  AnyFunction** table = nullptr;
  unsigned size = 0;
  if (callbacks->functions_of(core_module, &table, &size) == 0 || table == nullptr) return 0;
  replace(table, size, 4, start);       // NVTX_CBID_CORE_RangeStartEx
  replace(table, size, 5, start_name);  // _RangeStartA
  replace(table, size, 8, push);        // _RangePushEx
  replace(table, size, 9, push_name);   // _RangePushA
  if (callbacks->functions_of(domain_module, &table, &size) != 0 && table != nullptr) {
    replace(table, size, 2, start_in_domain);  // NVTX_CBID_CORE2_DomainRangeStartEx
    replace(table, size, 4, push_in_domain);   // _DomainRangePushEx
    replace(table, size, 10, register_name);   // _DomainRegisterStringA
  }
  return 1;
}
