#include "tools/cuwarden/program/sanitizers.hpp"

#include <algorithm>

#include "reporters/words/paths.hpp"

namespace cuwarden {
namespace {

struct Runtime {
  std::string_view gcc, clang, sanitizer;
  bool insists_on_being_first;
};
constexpr Runtime runtimes[] = {
    {"libasan.so", "libclang_rt.asan", "AddressSanitizer", true},
    {"libhwasan.so", "libclang_rt.hwasan", "HWAddressSanitizer", false},
    {"liblsan.so", "libclang_rt.lsan", "LeakSanitizer", false},
    {"libtsan.so", "libclang_rt.tsan", "ThreadSanitizer", false},
    {"libubsan.so", "libclang_rt.ubsan", "UndefinedBehaviorSanitizer", false},
};

// Returns the sanitizer whose runtime the library is; null if it is none. `library`: name or path.
const Runtime* runtime_of(std::string_view library) {
  const std::string_view name = file_name(library);
  const auto found = std::ranges::find_if(runtimes, [&](const Runtime& runtime) {
    return name.starts_with(runtime.gcc) || name.starts_with(runtime.clang);
  });
  return found == std::end(runtimes) ? nullptr : found;
}

}  // namespace

std::string_view sanitizer_of(std::string_view library) {
  const Runtime* const runtime = runtime_of(library);
  return runtime == nullptr ? std::string_view() : runtime->sanitizer;
}

bool insists_on_being_first(std::string_view library) {
  const Runtime* const runtime = runtime_of(library);
  return runtime != nullptr && runtime->insists_on_being_first;
}

std::string preloaded_behind_sanitizers(std::string_view user_value, const std::string& preloads) {
  constexpr std::string_view separators = ": ";  // the dynamic linker's
  std::size_t behind = 0;  // offset of the first library that is no sanitizer's runtime
  while (behind < user_value.size()) {
    const std::size_t start = user_value.find_first_not_of(separators, behind);
    if (start == user_value.npos) break;
    const std::size_t end =
        std::min(user_value.find_first_of(separators, start), user_value.size());
    if (runtime_of(user_value.substr(start, end - start)) == nullptr) break;
    behind = end;
  }
  std::string_view rest = user_value.substr(behind);
  rest.remove_prefix(std::min(rest.find_first_not_of(separators), rest.size()));
  std::string value(user_value.substr(0, behind));
  if (!value.empty()) value += ':';
  value += preloads;
  if (!rest.empty()) value.append(":").append(rest);
  return value;
}

std::string options_behind_preloads(std::string user_value) {
  constexpr std::string_view option = "verify_asan_link_order";
  if (user_value.find(option) != user_value.npos) return user_value;
  if (!user_value.empty()) user_value += ':';
  return user_value.append(option).append("=0");
}

}  // namespace cuwarden
