// Suppressions: rules by which a user excludes known leaks, in the syntax of LeakSanitizer.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reporters/owners/named_frame.hpp"

namespace cuwarden {

// Largest size, in bytes, of a file of suppressions that is read.
inline constexpr std::size_t most_suppression_bytes = std::size_t{1} << 20;

// Reads the text of a file of suppressions, with a rule in each line: "leak:PATTERN". Blank lines,
// lines that begin with '#', and comments behind a blank and '#' are ignored. Returns the patterns
// of the rules. A pattern of nothing but '*', '^' and '$' makes no rule. For each of the first five
// lines that are no rule, adds a line with the path and the line's number to `errors`. One more
// line counts the others. `path`: path of the file.
std::vector<std::string> parse_suppressions(std::string_view text, const std::string& path,
                                            std::vector<std::string>& errors);

// True if the pattern occurs anywhere in the text. A star in the pattern stands for any number of
// any characters. '^' at its beginning means the beginning of the text, '$' at its end the end of
// the text.
bool occurs(std::string_view pattern, std::string_view text) noexcept;

// Finds the rule of the user's (suppression) that excludes leaks with a call stack. Keeps results
// for texts that occur again.
class Suppressions {
 public:
  // `patterns`: result of parse_suppressions().
  explicit Suppressions(std::vector<std::string> patterns) : patterns_(std::move(patterns)) {}

  // Returns the index of the first pattern that occurs in the function, the source file or the
  // module's path of any frame; null: no pattern does. Functions are looked at with and without
  // their template arguments and parameters, and those in anonymous namespaces also by the last
  // part of their names. `frames`: a call stack; its texts must live as long as this object.
  std::optional<std::size_t> rule_for(std::span<const NamedFrame> frames);

  // Returns the patterns that the constructor was given.
  const std::vector<std::string>& patterns() const { return patterns_; }

 private:
  // Returns the index of the first pattern that occurs in the text; the number of patterns if none
  // does.
  std::size_t first_in(std::string_view text);
  // Returns the name of the frame's function without template arguments and parameters
  // (name_alone()); empty for Python functions.
  std::string_view bare_name(const NamedFrame&);

  std::vector<std::string> patterns_;
  // Results of first_in() so far, which are indexes in `patterns_`, by text. The texts are not
  // owned.
  std::unordered_map<std::string_view, std::size_t> known_;
  // Results of bare_name() so far, by name of function. The names that are keys are not owned.
  std::unordered_map<std::string_view, std::string> bare_names_;
};

}  // namespace cuwarden
