// The settings of cuwarden (environment variables CUWARDEN_*), read once at the first CUDA call.
#pragma once

#include <string>
#include <string_view>

#include "reporters/words/setting_kinds.hpp"
#include "runtime_hooks/core/function_ref.hpp"
#include "runtime_hooks/core/settings/settings.hpp"

namespace cuwarden::shim {

// Callback that takes one message for the user about a setting that is unknown, has a bad value or
// has no effect. Also takes messages about bad lines in the file of suppressions, which name the
// file instead of the variable. `line`: the message, which has no line feed at its end; valid
// during the call only.
using Complain = void (*)(std::string_view line);

// Fills all members of `settings` from the environment. A setting that is not set or has a bad
// value gets its default value. Calls complain(line) for each setting that the user should correct.
// May throw std::bad_alloc.
void read_settings(Settings& settings, Complain complain);

// Calls take(variable, value) for each setting that is meant for users. `variable`: name of its
// environment variable, such as "CUWARDEN_POOL". `value`: the value in force as text, such as
// "rescue", set by the user or the default.
void each_setting(const Settings& settings,
                  FunctionRef<void(std::string_view variable, const std::string& value)> take);

// True unless CUWARDEN_ENABLED turns recording off. False also in a program that runs with more
// rights than its caller (setuid). Reads the environment, for code that runs before
// read_settings().
bool enabled_by_environment();
// Stores the value of CUWARDEN_STEP_RANGE in `name`: the name of the NVTX ranges that mark steps,
// or its beginning and a star. Returns false, and leaves `name` as it is, if the variable is not
// set or has a bad value. Reads the environment, for code that runs before read_settings().
bool step_range_of_environment(setting_types::RangeName& name);
// True unless CUWARDEN_DEEPBIND is `keep`: RTLD_DEEPBIND is then removed from the flags of dlopen.
// Reads the environment, for code that runs before read_settings().
bool drops_deepbind_by_environment();

}  // namespace cuwarden::shim
