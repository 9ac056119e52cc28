#include "reporters/owners/short_names.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "reporters/words/replace_all.hpp"

namespace cuwarden {
namespace {

constexpr std::string_view operator_word = "operator";

// Returns the length of the operator's name at `at`, such as that of "operator<<" or "operator()";
// 0 if none begins there. Its brackets begin no list.
std::size_t operator_at(std::string_view name, std::size_t at) {
  const auto is_letter = [](char letter) {
    return letter == '_' || std::isalnum(static_cast<unsigned char>(letter)) != 0;
  };
  if (name.substr(at, operator_word.size()) != operator_word) return 0;
  if (at > 0 && is_letter(name[at - 1])) return 0;
  const std::string_view sign = name.substr(at + operator_word.size());
  if (!sign.empty() && is_letter(sign.front())) return 0;
  for (const std::string_view known :
       {"()", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">"})
    if (sign.starts_with(known)) return operator_word.size() + known.size();
  return operator_word.size();
}

// Returns the position behind the list that begins with the bracket at `at`; npos if it has no end.
std::size_t end_of_list(std::string_view name, std::size_t at) {
  int depth = 0;
  for (std::size_t i = at; i < name.size(); ++i) {
    if (const std::size_t skipped = operator_at(name, i)) {
      i += skipped - 1;
      continue;
    }
    if (name[i] == '<' || name[i] == '(') ++depth;
    // "->" stands in the types of results, and closes nothing.
    const bool is_arrow = name[i] == '>' && i > 0 && name[i - 1] == '-';
    if ((name[i] == '>' && !is_arrow) || name[i] == ')') --depth;
    if (depth == 0) return i + 1;
  }
  return name.npos;
}

constexpr std::string_view nameless = "(anonymous namespace)";

// Copies the name; for each outermost list in angle or round brackets, adds what `shown` returns.
template <class Shown>
std::string with_lists(std::string_view name, const Shown& shown) {
  std::string result;
  for (std::size_t at = 0; at < name.size();) {
    std::size_t whole = operator_at(name, at);
    if (name.substr(at).starts_with(nameless)) whole = nameless.size();
    if (whole == 0 && (name[at] == '<' || name[at] == '(')) {
      const std::size_t end = end_of_list(name, at);
      if (end == name.npos) return result.append(name.substr(at));
      result += shown(name.substr(at, end - at));
      at = end;
      continue;
    }
    if (whole == 0) whole = 1;
    result += name.substr(at, whole);
    at += whole;
  }
  return result;
}

}  // namespace

std::string short_name(std::string_view function) {
  constexpr std::size_t longest_arguments = 24, longest_parameters = 40;
  std::string named(function);
  replace_all(named, std::string(nameless) + "::", "");
  return with_lists(named, [&](std::string_view list) -> std::string {
    const bool are_arguments = list.front() == '<';
    if (list.size() <= (are_arguments ? longest_arguments : longest_parameters))
      return std::string(list);
    return are_arguments ? "<…>" : "(…)";
  });
}

std::string name_alone(std::string_view function) {
  std::string bare = with_lists(function, [](std::string_view) { return ""; });
  // Parts of names that have spaces: "f() const::{lambda(int)#1}", "{unnamed type#1}".
  for (const std::string_view words : {" const::", " volatile::", " &&::", " &::"})
    replace_all(bare, words, "::");
  replace_all(bare, nameless, "{nameless}");
  int depth = 0;
  for (char& letter : bare) {
    depth += (letter == '{') - (letter == '}');
    if (letter == ' ' && depth > 0) letter = '_';
  }
  std::string_view name(bare);
  name = name.substr(0, name.find(" [clone"));
  name = name.substr(0, name.find(" requires "));
  for (const std::string_view end : {" &&", " &", " volatile", " const"})
    if (name.ends_with(end)) name.remove_suffix(end.size());
  // The name of an operator may have spaces: "Buffer::operator std::vector".
  for (std::size_t at = 0; at < name.size(); ++at)
    if (const std::size_t length = operator_at(name, at)) {
      name = name.substr(0, at + std::min(length, operator_word.size()));
      break;
    }
  // The result's type comes first.
  return std::string(name.substr(name.rfind(' ') + 1));
}

std::string_view last_part_of_nameless(std::string_view name) {
  if (name.find("{nameless}::") == name.npos) return {};
  return name.substr(name.rfind("::") + 2);
}

}  // namespace cuwarden
