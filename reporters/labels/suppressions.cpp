#include "reporters/labels/suppressions.hpp"

#include <algorithm>

#include "reporters/owners/short_names.hpp"

namespace cuwarden {
namespace {

// Most wrong lines of a file that are named.
constexpr std::size_t most_named = 5;

constexpr std::string_view rule_word = "leak:", blanks = " \t\r";

std::string_view trimmed(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
  return line.substr(0, line.find_last_not_of(blanks) + 1);
}

// True if the text begins with the pattern, in which a star stands for any characters. `whole`: the
// text must also end with it.
bool begins_with(std::string_view pattern, std::string_view text, bool whole) noexcept {
  // Position behind the last star, and the text's position at which the rest of the pattern was
  // last tried.
  std::size_t after_star = pattern.npos, tried = 0, at = 0, next = 0;
  for (;;) {
    if (next == pattern.size()) {
      if (!whole || at == text.size()) return true;
    } else if (pattern[next] == '*') {
      after_star = ++next;
      tried = at;
      continue;
    } else if (at < text.size() && pattern[next] == text[at]) {
      ++next;
      ++at;
      continue;
    }
    if (after_star == pattern.npos || tried >= text.size()) return false;
    next = after_star;
    at = ++tried;
  }
}

}  // namespace

std::vector<std::string> parse_suppressions(std::string_view text, const std::string& path,
                                            std::vector<std::string>& errors) {
  std::vector<std::string> patterns;
  std::size_t wrong = 0;
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(whole.size() + 1, text.size()));
    const std::string_view line = trimmed(whole.substr(0, whole.find(" #")));
    if (line.empty() || line.front() == '#') continue;
    const std::string_view pattern =
        line.starts_with(rule_word) ? trimmed(line.substr(rule_word.size())) : std::string_view();
    // A pattern without a letter would suppress every leak.
    if (pattern.find_first_not_of("*^$") != pattern.npos) {
      patterns.emplace_back(pattern);
    } else if (++wrong <= most_named) {
      errors.push_back(path + ":" + std::to_string(number) +
                       ": a suppression is leak:PATTERN, not '" + std::string(line.substr(0, 80)) +
                       "'");
    }
  }
  if (wrong > most_named)
    errors.push_back(path + ": " + std::to_string(wrong - most_named) +
                     " further lines are no suppressions");
  return patterns;
}

bool occurs(std::string_view pattern, std::string_view text) noexcept {
  const bool at_begin = pattern.starts_with('^'), at_end = pattern.ends_with('$');
  if (at_begin) pattern.remove_prefix(1);
  if (at_end && !pattern.empty()) pattern.remove_suffix(1);
  if (at_begin) return begins_with(pattern, text, at_end);
  for (std::size_t from = 0; from <= text.size(); ++from) {
    if (begins_with(pattern, text.substr(from), at_end)) return true;
    // A star at the beginning has tried each position already.
    if (pattern.starts_with('*')) return false;
  }
  return false;
}

std::size_t Suppressions::first_in(std::string_view text) {
  const auto [known, is_new] = known_.try_emplace(text, patterns_.size());
  if (is_new && !text.empty())
    known->second = static_cast<std::size_t>(
        std::ranges::find_if(patterns_,
                             [&](const std::string& pattern) { return occurs(pattern, text); }) -
        patterns_.begin());
  return known->second;
}

std::string_view Suppressions::bare_name(const NamedFrame& frame) {
  if (frame.is_python || frame.function.empty()) return {};
  const auto [known, is_new] = bare_names_.try_emplace(frame.function);
  if (is_new) known->second = name_alone(frame.function);
  return known->second;
}

std::optional<std::size_t> Suppressions::rule_for(std::span<const NamedFrame> frames) {
  if (patterns_.empty()) return std::nullopt;
  std::size_t first = patterns_.size();
  for (const NamedFrame& frame : frames) {
    const std::string_view bare = bare_name(frame);
    for (const std::string_view text :
         {frame.function, bare, last_part_of_nameless(bare), frame.file, frame.path})
      first = std::min(first, first_in(text));
  }
  return first == patterns_.size() ? std::nullopt : std::optional(first);
}

}  // namespace cuwarden
