// Reads PTX text token by token: entries, their .local declarations and calls of malloc.
#include "tools/simulated_gpu/device/ptx.hpp"

#include <cctype>
#include <cstdlib>
#include <string_view>

namespace cuwarden::simulated_gpu {
namespace {

bool part_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}

// Splits text into tokens: names, directives, and single other characters. Comments and spaces are
// skipped.
class Tokens {
 public:
  explicit Tokens(const char* text) : at_(text) {}

  // Returns the next token; an empty one at the end of the text.
  std::string_view next() {
    skip_blanks();
    const char* const start = at_;
    if (*at_ == '\0') return {};
    if (*at_ == '.' || part_of_name(*at_)) {
      do ++at_;
      while (part_of_name(*at_) || *at_ == '.');
    } else {
      ++at_;
    }
    return {start, static_cast<std::size_t>(at_ - start)};
  }

 private:
  void skip_blanks() {
    for (;;) {
      if (std::isspace(static_cast<unsigned char>(*at_)) != 0) {
        ++at_;
      } else if (at_[0] == '/' && at_[1] == '/') {
        while (*at_ != '\0' && *at_ != '\n') ++at_;
      } else if (at_[0] == '/' && at_[1] == '*') {
        at_ += 2;
        while (*at_ != '\0' && !(at_[0] == '*' && at_[1] == '/')) ++at_;
        if (*at_ != '\0') at_ += 2;
      } else {
        return;
      }
    }
  }

  const char* at_;
};

std::size_t number(std::string_view token) {
  return static_cast<std::size_t>(std::strtoull(std::string(token).c_str(), nullptr, 0));
}

// Returns the bytes of a type such as `.b8`, `.u32`, `.f64`, whose name has its bits; 0 for other
// tokens.
std::size_t size_of_type(std::string_view token) {
  const std::size_t digits = token.find_first_of("0123456789");
  if (digits != 2 || std::string_view("bsuf").find(token[1]) == std::string_view::npos) return 0;
  return number(token.substr(digits)) / 8;
}

// Returns the bytes of a declaration such as `.align 16 .b8 name[16384], other[8];`, after
// `.local`.
std::size_t declared_bytes(Tokens& tokens) {
  std::size_t sum = 0, type = 0, elements = 1, vector = 1;
  bool named = false;
  for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
    if (token == "," || token == ";") {
      if (named) sum += type * vector * elements;
      elements = 1;
      named = false;
      if (token == ";") break;
    } else if (token == ".align") {
      tokens.next();
    } else if (token == ".v2" || token == ".v4") {
      vector = number(token.substr(2));
    } else if (token == "[") {
      elements *= number(tokens.next());
    } else if (const std::size_t size = size_of_type(token)) {
      type = size;
    } else if (token[0] != '.' && part_of_name(token[0])) {
      named = true;
    }
  }
  return sum;
}

PtxKernel read_body(Tokens& tokens) {
  PtxKernel kernel;
  int depth = 0;
  for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
    if (token == "{") {
      ++depth;
    } else if (token == "}") {
      if (--depth == 0) break;
    } else if (token == ".local") {
      kernel.local_bytes += declared_bytes(tokens);
    } else if (token == "malloc") {
      kernel.uses_heap = true;
    } else if (token == ";" && depth == 0) {
      break;  // A declaration has no instructions.
    }
  }
  return kernel;
}

}  // namespace

std::optional<PtxCode> read_ptx(const void* image) {
  Tokens tokens(static_cast<const char*>(image));
  if (tokens.next() != ".version") return std::nullopt;
  PtxCode code;
  for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
    if (token == ".global") code.global_bytes += declared_bytes(tokens);
    if (token != ".entry") continue;
    const std::string name(tokens.next());
    code.kernels[name] = read_body(tokens);
  }
  return code;
}

}  // namespace cuwarden::simulated_gpu
