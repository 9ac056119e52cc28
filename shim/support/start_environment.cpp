#include "shim/support/start_environment.hpp"

#include <cstddef>
#include <cstring>

namespace cuwarden::shim {
namespace {

constinit char kept[std::size_t{16} << 10]{};
constinit std::size_t kept_bytes = 0;

}  // namespace

void keep_start_environment() noexcept {
  each_setting_text([](std::string_view text) {
    if (text.size() >= sizeof kept - kept_bytes) return;
    std::memcpy(kept + kept_bytes, text.data(), text.size());
    kept_bytes += text.size() + 1;
  });
}

std::string_view detail::kept_settings() noexcept { return {kept, kept_bytes}; }

}  // namespace cuwarden::shim
