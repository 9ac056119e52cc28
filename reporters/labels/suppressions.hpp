// Rules by which a user excludes leaks that are known, in the syntax of LeakSanitizer.
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

// Most bytes of a file of suppressions.
inline constexpr std::size_t most_suppression_bytes = std::size_t{1} << 20;

// Reads the text of a file of suppressions, a rule in each line: "leak:PATTERN". Blank lines, lines
// that begin with '#', and what follows a blank and '#' are ignored. Returns the patterns; adds a
// line with the path and the number to `errors` for each line that is no rule; for the sixth and
// all later ones a line together. `path`: path of the file, for these lines.
std::vector<std::string> parse_suppressions(std::string_view text, const std::string& path,
                                            std::vector<std::string>& errors);

// True if the pattern occurs in the text. A star stands for any characters. '^' at the beginning of
// the pattern means the beginning of the text, and '$' at its end the end of the text.
bool occurs(std::string_view pattern, std::string_view text) noexcept;

// Finds the rule that suppresses a call stack.
class Suppressions {
 public:
  // `patterns`: those of parse_suppressions().
  explicit Suppressions(std::vector<std::string> patterns) : patterns_(std::move(patterns)) {}

  // Returns the index of the first pattern that occurs in the function, the source file or the
  // module of a frame of the stack; null: no pattern does. A function is looked at with and without
  // its template arguments and parameters. The texts of the frames must live as long as this
  // object.
  std::optional<std::size_t> rule_for(std::span<const NamedFrame> frames);

  // Returns the patterns.
  const std::vector<std::string>& patterns() const { return patterns_; }

 private:
  // Returns the index of the first pattern that occurs in the text; the number of patterns if none
  // does.
  std::size_t first_in(std::string_view text);
  // Returns the function's name without template arguments and parameters (name_alone()).
  std::string_view bare_name(const NamedFrame&);

  std::vector<std::string> patterns_;
  std::unordered_map<std::string_view, std::size_t> known_;       // results of first_in()
  std::unordered_map<std::string_view, std::string> bare_names_;  // results of bare_name()
};

}  // namespace cuwarden
