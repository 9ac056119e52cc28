#include "reporters/exports/frame_words.hpp"

#include "reporters/words/paths.hpp"
#include "reporters/words/printable.hpp"
#include "reporters/words/quantities.hpp"

namespace cuwarden {

std::string function_words(const IndexedReport& report, const model::Frame& frame) {
  if (frame.function && !frame.function->empty()) return printable(*frame.function);
  const std::string module = report.module_name(frame.module);
  if (!module.empty()) return printable(module) + "+" + address_text(frame.offset.value_or(0));
  return frame.address ? printable(*frame.address) : "unknown code";
}

std::string frame_words(const IndexedReport& report, const model::Frame& frame) {
  std::string words = function_words(report, frame);
  if (!frame.file || frame.file->empty()) return words;
  words += " (" + printable(std::string(file_name(*frame.file)));
  if (frame.line.value_or(0) != 0) words += ":" + std::to_string(*frame.line);
  return words + ")";
}

std::string stack_words(const IndexedReport& report, model::MaybeId id) {
  const model::Stack* const stack = report.stack(id);
  if (stack == nullptr || stack->frames.empty()) return unrecorded_stack;
  std::string words;
  for (const model::Id each : stack->frames) {
    if (const model::Frame* const frame = report.frame(each))
      words += (words.empty() ? "" : "\n") + frame_words(report, *frame);
  }
  if (stack->truncated) words += std::string("\n") + unrecorded_frames;
  return words;
}

std::string words_of_process(const model::Report& report) {
  const model::Process& process = report.process;
  std::string words(file_name(process.program.value_or("")));
  if (words.empty()) words = "unknown program";
  if (report.job.rank) words += ", rank " + std::to_string(*report.job.rank);
  if (process.pid) words += ", pid " + std::to_string(*process.pid);
  if (process.host) words += " on " + *process.host;
  return printable(std::move(words));
}

}  // namespace cuwarden
