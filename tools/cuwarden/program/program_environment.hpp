// The environment variables of the program that `cuwarden run` starts.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

namespace cuwarden {

// The environment of the program that `cuwarden run` starts: a copy of this command's own, in the
// same order, with some variables set. If a name has several entries, the first one counts, as for
// getenv().
class Environment {
 public:
  // Copies the variables of this process.
  Environment() {
    for (char** entry = environ; *entry != nullptr; ++entry) entries_.emplace_back(*entry);
  }
  // Sets the variable `name` in this copy, and removes further entries of the name. A new variable
  // becomes the last entry.
  void set(const std::string& name, const std::string& value) {
    const auto entry = find(name);
    if (entry == entries_.end()) return entries_.push_back(name + "=" + value);
    *entry = name + "=" + value;
    entries_.erase(
        std::remove_if(entry + 1, entries_.end(),
                       [&](const std::string& other) { return other.starts_with(name + "="); }),
        entries_.end());
  }
  // Sets the variable `name` in this environment, which is that of the program to be started, if it
  // is not set there. A variable with an empty value counts as set.
  void set_if_missing(const std::string& name, const std::string& value) {
    if (find(name) == entries_.end()) set(name, value);
  }
  // Returns the value of the variable `name` in this environment; empty if it is not set.
  std::string get(const std::string& name) {
    const auto entry = find(name);
    return entry == entries_.end() ? std::string() : entry->substr(name.size() + 1);
  }
  // Puts `value` and a colon before the value of the variable `name` in this environment. If the
  // variable is not set or empty, sets it to `value`.
  void prepend(const std::string& name, const std::string& value) {
    const std::string old = get(name);
    set(name, old.empty() ? value : value + ":" + old);
  }
  // Returns all variables in the form NAME=VALUE. An entry of this command's own environment that
  // has no = is kept as it is.
  const std::vector<std::string>& entries() const { return entries_; }

 private:
  // Returns the first entry of the variable `name`; the end of entries_ if it is not set.
  std::vector<std::string>::iterator find(const std::string& name) {
    return std::ranges::find_if(
        entries_, [&](const std::string& entry) { return entry.starts_with(name + "="); });
  }

  // Variables of the environment as NAME=VALUE, in the order of this command's own; new ones last.
  std::vector<std::string> entries_;
};

}  // namespace cuwarden
