// Copies of the environment variables CUWARDEN_* from the start of the process. So the settings
// hold even if the program clears its whole environment (clearenv) before its first CUDA call.
#pragma once

#include <string_view>

namespace cuwarden::shim {

// Beginning of the names of all environment variables that are settings of cuwarden.
inline constexpr std::string_view setting_prefix = "CUWARDEN_";

// Copies the variables CUWARDEN_* of the environment, so that each_setting_text() can use the
// copies. Copies 16 KiB at most; leaves a variable out if no room is left for it. To be called
// once, by the shim's constructor.
void keep_start_environment() noexcept;

// Calls visit(text) for each environment variable whose name begins with CUWARDEN_. `text`: a
// std::string_view such as "CUWARDEN_POOL=on", valid until the environment changes. If the
// environment has no such variable, because the program has cleared it, uses the copies that
// keep_start_environment() made at the start.
template <class Visit>
void each_setting_text(const Visit& visit);

namespace detail {
// Returns the texts that keep_start_environment() copied, such as CUWARDEN_POOL=on, one after the
// other, each with a null byte behind it. Empty if nothing was copied.
std::string_view kept_settings() noexcept;
}  // namespace detail

}  // namespace cuwarden::shim

extern char** environ;

template <class Visit>
void cuwarden::shim::each_setting_text(const Visit& visit) {
  bool any = false;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with(setting_prefix)) continue;
    any = true;
    visit(text);
  }
  if (any) return;
  for (std::string_view kept = detail::kept_settings(); !kept.empty();) {
    const std::string_view text = kept.substr(0, kept.find('\0'));
    visit(text);
    kept.remove_prefix(text.size() + 1);
  }
}
