// The environment, read once at the first CUDA call into one immutable struct.
#pragma once

#include <string>
#include <string_view>

#include "reporters/words/setting_kinds.hpp"
#include "runtime_hooks/core/function_ref.hpp"

namespace cuwarden::shim {

using setting_kinds::path_limit;

// The values of all settings. They are zero until read_settings() has filled them.
struct Settings {
#define SETTING(member, kind, ...) setting_kinds::kind::Value member{};
#include "reporters/words/settings.def"
  // File of `cuwarden run` to which the paths of reports are added; empty: none. Not for users.
  setting_kinds::AnyPath::Value report_list{};
};

// Takes one line about a bad or unknown setting: what, where, what is accepted.
using Complain = void (*)(std::string_view line);

// Fills `settings` from the environment. A setting that is not there or has a bad value has its
// default.
void read_settings(Settings& settings, Complain complain);

// Calls `take` with the variable and the value of each setting for users.
void each_setting(const Settings& settings,
                  FunctionRef<void(std::string_view variable, const std::string& value)> take);

// Return CUWARDEN_ENABLED and CUWARDEN_DEEPBIND (true for `drop`) from the environment, for code
// that runs before the settings are read.
bool enabled_by_environment();
bool drops_deepbind_by_environment();

}  // namespace cuwarden::shim
