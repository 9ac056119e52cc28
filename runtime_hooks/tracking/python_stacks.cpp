#include "runtime_hooks/tracking/python_stacks.hpp"

#include "runtime_hooks/core/atomic_field.hpp"
#include "runtime_hooks/ledger/write/stacks/python_table.hpp"

namespace cuwarden::tracking {
namespace {

namespace python = stacks::python;

}  // namespace

PythonStacks::PythonStacks(ledger::Writer& ledger, HostProcess* process) noexcept
    : ledger_(ledger), process_(process) {
  PythonSymbols symbols;
  if (process == nullptr || !process->find_python(symbols)) return;
  if (const python::Layout* const layout = python::layout_of(symbols))
    python_.emplace(symbols, *layout);
  else
    process->python_not_read(python::version_of(symbols));
}

bool PythonStacks::read(std::uint64_t state, python::FrameChain& chain) noexcept {
  if (python_->read(state, chain)) return true;
  if (python_->is_implausible() && !was_told_.load(relaxed) && !was_told_.exchange(true))
    process_->python_not_read(python_->layout().version);
  return false;
}

python::Merged PythonStacks::merge(const python::NativeStack& native,
                                   const python::FrameChain& chain,
                                   std::span<std::uint64_t> frames) noexcept {
  const python::Interpreter& interpreter = *python_;
  std::uint64_t stored[python::FrameChain::most_frames];
  python::CodeContents contents;
  for (std::uint32_t i = 0; i < chain.count; ++i) {
    const python::PythonFrame& frame = chain.frames[i];
    stored[i] = 0;
    // Recursion: the function of the frame before is known.
    const bool is_same = i != 0 && frame.code == chain.frames[i - 1].code && stored[i - 1] != 0;
    std::uint32_t row = is_same ? ledger::python_row_of(stored[i - 1]) : 0;
    if (!is_same && interpreter.read_code(frame.code, contents))
      row =
          ledger_.python.intern({contents.file, contents.name, contents.first_line, contents.lines,
                                 static_cast<std::uint32_t>(interpreter.layout().lines)});
    if (row != 0) stored[i] = ledger::python_frame(row, frame.instruction);
  }
  return python::merge(native, chain, {stored, chain.count}, interpreter.symbols(), frames);
}

}  // namespace cuwarden::tracking
