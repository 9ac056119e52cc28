// Functions by which cuwarden's Python module stores the figures that frameworks give of their
// memory.
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime_hooks/core/errno_guard.hpp"
#include "runtime_hooks/core/uncancelled.hpp"
#include "runtime_hooks/ledger/write/frameworks.hpp"
#include "runtime_hooks/ledger/write/stacks/python_table.hpp"
#include "runtime_hooks/ledger/write/stacks/stack_table.hpp"
#include "shim/process/process.hpp"
#include "shim/python/interpreter_calls.hpp"

namespace cuwarden::shim {
namespace {

// Takes the text up to the next `end` from `rest`; all of it if there is none.
std::string_view take_until(char end, std::string_view& rest) noexcept {
  const std::size_t at = rest.find(end);
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(at == rest.npos ? rest.size() : at + 1);
  return taken;
}

std::uint32_t number_in(std::string_view digits) noexcept {
  std::uint64_t number = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9' || number > UINT32_MAX) return 0;
    number = number * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  return number > UINT32_MAX ? 0 : static_cast<std::uint32_t>(number);
}

// Returns the ledger's stack of Python lines; 0 if there is no line, or no room. `lines`: innermost
// first, each "FUNCTION<tab>LINE<tab>FILE<line feed>".
StackId stack_of(ledger::Writer& ledger, std::string_view lines) noexcept {
  constexpr std::size_t most_lines = 128;
  std::array<std::uint64_t, most_lines> frames{};
  std::size_t count = 0;
  while (!lines.empty() && count < most_lines) {
    std::string_view line = take_until('\n', lines);
    const std::string_view function = take_until('\t', line);
    const std::uint32_t number = number_in(take_until('\t', line));
    // Without a table of its instructions, the function has one line.
    const std::uint32_t row =
        ledger.python.intern({.file = line, .name = function, .first_line = number, .lines = {}});
    frames[count++] = ledger::python_frame(row, 0);
  }
  return count == 0 ? StackId{}
                    : ledger.stacks.intern(std::span(frames).first(count), !lines.empty());
}

}  // namespace
}  // namespace cuwarden::shim

extern "C" {

// Stores the figures of a framework's pool on a device. `incident`: number of the refused request
// for which cuwarden asked; 0: none. `figures`: bytes taken from CUDA, bytes handed out, most bytes
// handed out so far, number and bytes of the holes, bytes of the largest free block; UINT64_MAX:
// unknown.
[[gnu::visibility("default")]] void cuwarden_1_framework_figures(
    const char* framework, const char* pool, int device, unsigned incident,
    const std::uint64_t* figures) noexcept {
  using namespace cuwarden;
  ledger::Writer* const ledger = shim::Process::get().ledger();
  if (ledger == nullptr) return;
  const ErrnoGuard keep;
  const Uncancelled whole;
  ledger->frameworks.store({.framework = framework,
                            .framework_pool = pool,
                            .device = DeviceOrdinal{device},
                            .incident = IncidentId{incident}},
                           {.reserved_bytes = figures[0],
                            .allocated_bytes = figures[1],
                            .peak_allocated_bytes = figures[2],
                            .hole_count = figures[3],
                            .hole_bytes = figures[4],
                            .largest_free_bytes = figures[5]});
}

// Stores the number and bytes of the blocks that Python lines have got from a framework on a
// device. `lines`: innermost first, each "FUNCTION<tab>LINE<tab>FILE<line feed>".
[[gnu::visibility("default")]] void cuwarden_1_framework_site(const char* framework, int device,
                                                              std::uint64_t count,
                                                              std::uint64_t bytes,
                                                              const char* lines) noexcept {
  using namespace cuwarden;
  ledger::Writer* const ledger = shim::Process::get().ledger();
  if (ledger == nullptr) return;
  const ErrnoGuard keep;
  const Uncancelled whole;
  const StackId stack = shim::stack_of(*ledger, lines);
  if (stack.value == 0) return;
  ledger->frameworks.store(
      {.framework = framework, .device = DeviceOrdinal{device}, .stack = stack},
      {.allocated_bytes = bytes, .allocated_count = count});
}

// Has cuwarden's Python module asked for figures from now on, as CUWARDEN_FRAMEWORKS=on does.
[[gnu::visibility("default")]] void cuwarden_1_ask_frameworks() noexcept {
  using namespace cuwarden::shim;
  interpreter_calls.turn_on();
  if (Process::get().has_records()) interpreter_calls.ask({});
}

}  // extern "C"
