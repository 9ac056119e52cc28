#include "reporters/labels/fingerprint.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>

#include "reporters/owners/short_names.hpp"
#include "reporters/words/paths.hpp"

namespace cuwarden {
namespace {

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// True if the text is a number in hexadecimal of at least eight digits, as build systems add it to
// names.
bool is_hash(std::string_view text) {
  return text.size() >= 8 && std::ranges::all_of(text, [](char letter) {
           return std::isxdigit(static_cast<unsigned char>(letter)) != 0;
         });
}

// Returns the name of the module's file without its version, the version of Python, and the hash
// that Python's wheels add: "libfoo.so" of "/opt/libfoo-1a2b3c4d.so.2".
std::string stable_module_name(std::string_view path) {
  const std::string_view name = file_name(path);
  const std::size_t ending = name.find(".so");
  if (ending == name.npos) return std::string(name);
  std::string_view stem = name.substr(0, ending);
  stem = stem.substr(0, stem.find(".cpython-"));
  stem = stem.substr(0, stem.find(".abi3"));
  const std::size_t dash = stem.rfind('-');
  if (dash != stem.npos && is_hash(stem.substr(dash + 1))) stem = stem.substr(0, dash);
  return std::string(stem) + ".so";
}

// Returns the sign of the last operator that the name has: "()" of "Less::operator()(int) const".
std::string_view sign_of_operator(std::string_view function) {
  constexpr std::string_view word = "operator";
  const std::size_t at = function.rfind(word);
  if (at == function.npos) return {};
  const std::string_view rest = function.substr(at + word.size());
  if (rest.starts_with("()")) return "()";
  return rest.substr(0, rest.find('('));
}

// Removes the numbers by which compilers tell lambdas and unnamed types of one function apart:
// "f::{lambda#2}" and Clang's "f::$_1" become "f::{lambda}".
std::string without_numbers_of_lambdas(std::string_view name) {
  std::string result;
  for (std::size_t at = 0; at < name.size(); ++at) {
    std::size_t end = at + 1;
    if (name[at] == '#') {
      while (end < name.size() && is_digit(name[end])) ++end;
      if (end < name.size() && name[end] == '}') {
        at = end - 1;
        continue;
      }
    }
    if (name.substr(at).starts_with("$_")) {
      result += "{lambda}";
      end = at + 2;
      while (end < name.size() && is_digit(name[end])) ++end;
      at = end - 1;
      continue;
    }
    result += name[at];
  }
  return result;
}

// Returns the name without the endings by which compilers name copies and parts of a function:
// "fill" of "fill.constprop.0" and of "fill.cold".
std::string_view without_endings_of_copies(std::string_view name) {
  for (const std::string_view ending :
       {".constprop.", ".isra.", ".part.", ".cold", ".lto_priv.", ".llvm.", ".localalias"})
    if (const std::size_t at = name.find(ending); at != name.npos && at != 0)
      name = name.substr(0, at);
  // Parts that are run in parallel are numbered: "main._omp_fn.0".
  const std::size_t last = name.find_last_not_of("0123456789");
  if (last != name.npos && last + 1 < name.size() && name[last] == '.') name = name.substr(0, last);
  return name;
}

// Returns the qualified name of a function without what a compiler adds to it. Functions in
// anonymous namespaces have no qualified name.
std::string stable_function_name(std::string_view function) {
  std::string name = name_alone(function);
  if (const std::string_view last = last_part_of_nameless(name); !last.empty())
    name = std::string(last);
  // The operators of a class are different functions.
  if (const std::size_t at = name.rfind("operator"); at != name.npos && name.size() == at + 8)
    name += sign_of_operator(function);
  name = without_endings_of_copies(name);
  // Rust adds a hash of the crate: "cache::insert::h0123456789abcdef".
  const std::size_t last = name.rfind("::h");
  if (last != name.npos && name.size() - last == 19 && is_hash(name.substr(last + 3)))
    name.resize(last);
  return without_numbers_of_lambdas(name);
}

// Returns the module and the function of the frame; empty if neither is known.
std::string line_of(const NamedFrame& frame) {
  std::string module, function;
  if (frame.is_python) {
    module = file_name(frame.file);
    // Functions of Python 3.10 and older do not know their class.
    function = frame.function;
  } else {
    module = stable_module_name(frame.path);
    function = stable_function_name(frame.function);
  }
  return function.empty() || module.empty() ? module + function : module + ' ' + function;
}

// True if the frame's names are the same in another build and on another machine, and tell one leak
// from another.
bool counts(const NamedFrame& frame) {
  return frame.library != cuda_library && frame.library != system_libraries &&
         frame.library != interpreter_library && frame.library != "libffi" &&
         frame.function != "_start";
}

}  // namespace

const std::string& Fingerprints::line(const NamedFrame& frame) {
  const std::string_view file = frame.is_python ? frame.file : frame.path;
  const auto [known, is_new] = lines_.try_emplace({frame.function.data(), file.data()});
  if (is_new) known->second = line_of(frame);
  return known->second;
}

std::string Fingerprints::identity(std::string_view kind, std::string_view api,
                                   std::span<const NamedFrame> frames) {
  std::string text(kind);
  (text += ' ') += api;
  const bool any_counts = std::ranges::any_of(frames, counts);
  std::string_view last;
  for (const NamedFrame& frame : frames) {
    if (any_counts && !counts(frame)) continue;
    const std::string& next = line(frame);
    if (next.empty() || next == last) continue;
    (text += '\n') += next;
    last = next;
  }
  return text;
}

std::string Fingerprints::of(std::string_view kind, std::string_view api,
                             std::span<const NamedFrame> frames) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : identity(kind, api, frames)) {
    hash ^= static_cast<unsigned char>(letter);
    hash *= 0x100000001b3;
  }
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

}  // namespace cuwarden
