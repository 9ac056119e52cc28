#include "reporters/comparison/baseline.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "reporters/words/printable.hpp"

namespace cuwarden {
namespace {

// Beginning of each baseline. The number is the version of the fingerprints.
constexpr std::string_view heading = "# cuwarden baseline 1";

constexpr std::string_view explanation =
    ": leaks that are known, by fingerprint. `cuwarden report FILE --write-baseline` writes it\n";

constexpr std::string_view blanks = " \t\r";

// Takes the next word off the text; empty at its end.
std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(blanks));
  text.remove_prefix(word.size());
  return word;
}

bool is_fingerprint(std::string_view word) {
  return word.size() == 16 && word.find_first_not_of("0123456789abcdef") == word.npos;
}

// Returns the number in a word such as "count=3"; null if the word is none.
std::optional<std::uint64_t> number_in(std::string_view word, std::string_view name) {
  if (!word.starts_with(name)) return std::nullopt;
  word.remove_prefix(name.size());
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || word.empty()) return std::nullopt;
  return value;
}

// Reads a line with a leak into `leaks`. Returns false if the line is malformed.
bool read_leak(std::string_view line, LeaksByFingerprint& leaks) {
  const std::string_view fingerprint = next_word(line);
  const auto count = number_in(next_word(line), "count=");
  const auto bytes = number_in(next_word(line), "bytes=");
  const std::string_view sign = next_word(line);
  if (!is_fingerprint(fingerprint) || !count || !bytes || (!sign.empty() && sign.front() != '#'))
    return false;
  std::string comment(sign.empty() ? sign : sign.substr(1));
  comment += line;
  comment.erase(0, std::min(comment.find_first_not_of(blanks), comment.size()));
  FingerprintedLeak& leak = leaks[std::string(fingerprint)];
  leak.count = std::max(leak.count, *count);
  leak.bytes = std::max(leak.bytes, *bytes);
  leak.where = leak.caller = printable(comment);
  return true;
}

}  // namespace

std::string baseline_text(const LeaksByFingerprint& leaks) {
  std::string text;
  (text += heading) += explanation;
  for (const auto& [fingerprint, leak] : leaks) {
    text += fingerprint + " count=" + std::to_string(leak.count) +
            " bytes=" + std::to_string(leak.bytes);
    std::string comment = leak.kind;
    if (!leak.api.empty()) comment += (comment.empty() ? "" : " ") + leak.api;
    if (!leak.caller.empty()) comment += (comment.empty() ? "" : ": ") + leak.caller;
    if (!comment.empty()) text += "  # " + comment;
    text += '\n';
  }
  return text;
}

std::optional<LeaksByFingerprint> parse_baseline(std::string_view text, const std::string& path,
                                                 std::string& error) {
  const std::string_view version =
      text.substr(0, text.find_first_not_of("0123456789", heading.size()));
  if (!text.starts_with(heading) || version.size() != heading.size()) {
    error = path + ": not a baseline: its first line does not begin with '" + std::string(heading) +
            "'; --write-baseline writes one";
    return std::nullopt;
  }
  LeaksByFingerprint leaks;
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t begin = line.find_first_not_of(blanks);
    if (begin == line.npos || line[begin] == '#' || read_leak(line, leaks)) continue;
    error = path + ":" + std::to_string(number) +
            ": a line of a baseline is FINGERPRINT count=N bytes=N # COMMENT, not '" +
            std::string(line.substr(0, 80)) + "'";
    return std::nullopt;
  }
  return leaks;
}

}  // namespace cuwarden
