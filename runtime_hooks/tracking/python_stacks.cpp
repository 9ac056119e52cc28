#include "runtime_hooks/tracking/python_stacks.hpp"

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/ledger/write/stacks/python_table.hpp"
#include "runtime_hooks/stacks/cold_part.hpp"
#include "runtime_hooks/stacks/stack_bounds.hpp"

namespace cuwarden::tracking {
namespace {

namespace python = stacks::python;

constexpr std::uint64_t noted_as(std::uint32_t native, std::uint32_t generation) noexcept {
  return std::uint64_t{generation & 0x7fff'ffffu} << 32 | native;
}

}  // namespace

PythonStacks::PythonStacks(ledger::Writer& ledger, HostProcess* process, bool reads_frames) noexcept
    : ledger_(ledger), process_(process) {
  PythonSymbols symbols;
  if (process == nullptr || !process->find_python(symbols)) return;
  is_initialized_ = symbols.is_initialized;
  if (!reads_frames) return;
  const python::Layout* const layout = python::layout_of(symbols);
  if (layout == nullptr) {
    process->python_not_read(python::version_of(symbols));
    return;
  }
  // With CFrames, the native frames that run Python code need not be known.
  if (!layout->has_cframes()) symbols.evaluation_cold = stacks::cold_part_of(symbols.evaluation);
  python_.emplace(symbols, *layout);
}

PythonStacks::Runs PythonStacks::runs(std::uint64_t state, std::uint32_t native,
                                      std::uint32_t generation) const noexcept {
  if (python_->layout().has_cframes()) {
    const stacks::OwnStack& own = stacks::own_stack;
    const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
    return python_->is_run_between(state, here, own.top) ? Runs::yes : Runs::no;
  }
  if (native == 0) return Runs::unknown;
  const std::uint64_t noted = noted_[native % most_noted].load(relaxed);
  if (noted >> 1 != noted_as(native, generation)) return Runs::unknown;
  return (noted & 1) != 0 ? Runs::yes : Runs::no;
}

void PythonStacks::note(std::uint32_t native, std::uint32_t generation, bool is_inside) noexcept {
  if (!python_->layout().has_cframes())
    noted_[native % most_noted].store(noted_as(native, generation) << 1 | (is_inside ? 1 : 0),
                                      relaxed);
}

bool PythonStacks::read(std::uint64_t state, python::FrameChain& chain) noexcept {
  has_run_.store(true, relaxed);
  if (python_->read(state, chain)) return true;
  if (python_->is_implausible() && !was_told_.load(relaxed) && !was_told_.exchange(true))
    process_->python_not_read(python_->layout().version);
  return false;
}

PythonStacks::Stored PythonStacks::merge(const python::NativeStack& native,
                                         const python::FrameChain& chain,
                                         std::span<std::uint64_t> frames) noexcept {
  std::uint64_t stored[python::FrameChain::most_frames];
  python::CodeContents contents;
  bool is_whole = true;
  std::uint32_t row = 0;
  for (std::uint32_t i = 0; i < chain.count; ++i) {
    const python::PythonFrame& frame = chain.frames[i];
    // In a recursion, the function of the frame before is known.
    if (i == 0 || frame.code != chain.frames[i - 1].code)
      row = python_->read_code(frame.code, contents)
                ? ledger_.python.intern(
                      {.file = contents.file,
                       .name = contents.name,
                       .first_line = contents.first_line,
                       .lines = contents.lines,
                       .lines_format = static_cast<std::uint32_t>(python_->layout().lines)})
                : 0;
    stored[i] = ledger::python_frame(row, row != 0 ? python_->instruction_of(frame) : 0);
    is_whole = is_whole && row != 0;
  }
  const python::Merged merged =
      python::merge(native, chain, {stored, chain.count}, python_->symbols(), frames);
  return {.count = merged.count, .truncated = merged.truncated, .is_whole = is_whole};
}

}  // namespace cuwarden::tracking
