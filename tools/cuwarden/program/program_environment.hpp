// The environment variables of the program that `cuwarden run` starts.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

namespace cuwarden {

// The program's environment: this command's own, in its order, with some variables set. Like
// getenv(), the functions mean the first entry of a name.
class Environment {
 public:
  // Begins with the variables of this process.
  Environment() {
    for (char** entry = environ; *entry != nullptr; ++entry) entries_.emplace_back(*entry);
  }
  // Sets the variable. A variable that was not set comes last among the entries.
  void set(const std::string& name, const std::string& value) {
    const auto entry = find(name);
    if (entry == entries_.end()) return entries_.push_back(name + "=" + value);
    *entry = name + "=" + value;
    entries_.erase(
        std::remove_if(entry + 1, entries_.end(),
                       [&](const std::string& other) { return other.starts_with(name + "="); }),
        entries_.end());
  }
  // Sets the variable unless it has a value, which may be empty.
  void set_if_missing(const std::string& name, const std::string& value) {
    if (find(name) == entries_.end()) set(name, value);
  }
  // Returns the variable's value; empty if it is not set.
  std::string get(const std::string& name) {
    const auto entry = find(name);
    return entry == entries_.end() ? std::string() : entry->substr(name.size() + 1);
  }
  // Puts `value` and a colon before the variable's value; sets it to `value` if it is empty.
  void prepend(const std::string& name, const std::string& value) {
    const std::string old = get(name);
    set(name, old.empty() ? value : value + ":" + old);
  }
  // Returns all entries, in the form NAME=VALUE. An entry that this command was given in another
  // form is kept as it is.
  const std::vector<std::string>& entries() const { return entries_; }

 private:
  std::vector<std::string>::iterator find(const std::string& name) {
    return std::ranges::find_if(
        entries_, [&](const std::string& entry) { return entry.starts_with(name + "="); });
  }

  std::vector<std::string> entries_;
};

}  // namespace cuwarden
