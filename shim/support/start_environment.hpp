// CUWARDEN_* as the process was started with them. A program may take its whole environment away
// (clearenv) before its first CUDA call, and does not mean the settings.
#pragma once

#include <string_view>

namespace cuwarden::shim {

inline constexpr std::string_view setting_prefix = "CUWARDEN_";

// Copies the settings in the environment, as many as fit in 16 KiB; to be called by the shim's
// constructor.
void keep_start_environment() noexcept;

// Calls what("CUWARDEN_X=value") for each setting of the environment. If the program has removed
// all of them, calls it for each setting that was kept at the start. The text is valid until the
// environment changes.
template <class What>
void each_setting_text(const What& what);

namespace detail {
// Returns the copied texts, such as CUWARDEN_POOL=on, each with a null byte behind it.
std::string_view kept_settings() noexcept;
}  // namespace detail

}  // namespace cuwarden::shim

extern char** environ;

template <class What>
void cuwarden::shim::each_setting_text(const What& what) {
  bool any = false;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with(setting_prefix)) continue;
    any = true;
    what(text);
  }
  if (any) return;
  for (std::string_view kept = detail::kept_settings(); !kept.empty();) {
    const std::string_view text = kept.substr(0, kept.find('\0'));
    what(text);
    kept.remove_prefix(text.size() + 1);
  }
}
