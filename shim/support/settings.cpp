// Parses CUWARDEN_*. No stdio and no exceptions: this runs inside the first CUDA call.
#include "shim/support/settings.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reporters/files/plain_file.hpp"
#include "reporters/labels/suppressions.hpp"
#include "reporters/words/near_names.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"
#include "runtime_hooks/stacks/captured.hpp"
#include "shim/support/log.hpp"
#include "shim/support/start_environment.hpp"

namespace cuwarden::shim {
namespace {

// Deeper stacks than the ledger's format allows would be refused by readers.
static_assert(stacks::depth_limit == ledger::deepest_stack);

struct KnownSetting {
  std::string_view name;
  bool (*read)(Settings&, std::string_view);
  std::string_view accepted;
  std::string_view fallback;           // as in the environment; empty: fallback_in_words
  std::string_view fallback_in_words;  // default in words, for a setting without a default value
};

template <class Kind, auto member>
bool read_as(Settings& settings, std::string_view text) {
  return Kind::read(settings.*member, text);
}

constexpr KnownSetting known_settings[] = {
#define SETTING(member, kind, variable, default_text, in_words, ...) \
  {.name = variable,                                                 \
   .read = read_as<setting_kinds::kind, &Settings::member>,          \
   .accepted = setting_kinds::kind::accepted,                        \
   .fallback = default_text,                                         \
   .fallback_in_words = in_words},
#include "runtime_hooks/core/settings/settings.def"
    // `cuwarden run` sets this one for the shim; it is not for users.
    {.name = "CUWARDEN_REPORT_LIST",
     .read = read_as<setting_kinds::AnyPath, &Settings::report_list>,
     .accepted = setting_kinds::AnyPath::accepted,
     .fallback = "",
     .fallback_in_words = "none"},
};

// Returns the setting that may have been meant: one that begins with `name`, or differs from it in
// two letters (in fewer if the name is short). Empty: no setting is like it.
std::string_view nearest(std::string_view name) {
  std::string_view best;
  std::size_t least = std::min<std::size_t>(3, (name.size() - setting_prefix.size() + 1) / 2);
  for (const KnownSetting& candidate : known_settings) {
    const bool is_beginning =
        name.size() > setting_prefix.size() + 2 && candidate.name.starts_with(name);
    const std::size_t edits = is_beginning ? 1 : edits_between(name, candidate.name);
    if (edits >= least) continue;
    least = edits;
    best = candidate.name;
  }
  return best;
}

void read_one(Settings& settings, std::string_view name, std::string_view value,
              Complain complain) {
  if (name.starts_with("CUWARDEN_SIM_")) return;  // a setting of the simulated GPU
  for (const KnownSetting& setting : known_settings) {
    if (setting.name != name) continue;
    if (!setting.read(settings, value))
      complain(formatted("{}={}: not accepted; use {}. Going on with {}.", name, value,
                         setting.accepted,
                         setting.fallback.empty() ? setting.fallback_in_words : setting.fallback));
    return;
  }
  const std::string_view meant = nearest(name);
  complain(formatted("{}={}: no such setting{} Ignored.", name, value,
                     meant.empty() ? "." : formatted("; did you mean {}?", meant)));
}

// Returns the setting's text in the environment; empty if it is not set.
std::string_view setting_text(std::string_view name) {
  std::string_view value;
  each_setting_text([&](std::string_view text) {
    if (text.starts_with(name) && text.substr(name.size()).starts_with('='))
      value = text.substr(name.size() + 1);
  });
  return value;
}

// Complains about the file of suppressions, if it cannot be read or has lines that are no rules.
void check_suppressions(const char* path, Complain complain) {
  if (*path == '\0') return;
  std::string text;
  if (const std::string error = read_plain_file(path, most_suppression_bytes, text);
      !error.empty()) {
    complain(formatted("CUWARDEN_SUPPRESSIONS={}: {}. No leak is suppressed.", path, error));
    return;
  }
  std::vector<std::string> errors;
  parse_suppressions(text, path, errors);
  for (const std::string& line : errors) complain(line + ". The line is ignored.");
}

}  // namespace

void read_settings(Settings& settings, Complain complain) {
  settings = Settings{};
  for (const KnownSetting& setting : known_settings)
    if (!setting.fallback.empty()) setting.read(settings, setting.fallback);
  each_setting_text([&](std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      read_one(settings, text.substr(0, equals), text.substr(equals + 1), complain);
  });
  check_suppressions(settings.suppressions, complain);
  if (settings.pool == PoolMode::off && (settings.spill.bytes != 0 || settings.spill.percent != 0))
    complain(
        "CUWARDEN_SPILL has no effect with CUWARDEN_POOL=off: refused requests are not spilled");
  if (settings.pool == PoolMode::off && settings.wait_ns != 0)
    complain(
        "CUWARDEN_WAIT has no effect with CUWARDEN_POOL=off: refused requests are not retried");
}

void each_setting(const Settings& settings,
                  FunctionRef<void(std::string_view variable, const std::string& value)> take) {
#define SETTING(member, kind, variable, ...) \
  take(variable, setting_kinds::kind::text(settings.member));
#include "runtime_hooks/core/settings/settings.def"
}

// A program that runs with more rights than its caller is left alone: the environment that says
// where to write files is the caller's. (The loader preloads nothing there either, unless the
// system's own configuration says so.)
bool enabled_by_environment() {
  if (getauxval(AT_SECURE) != 0) return false;
  bool enabled = true;
  setting_kinds::ZeroOrOne::read(enabled, setting_text("CUWARDEN_ENABLED"));
  return enabled;
}

bool step_range_of_environment(setting_types::RangeName& name) {
  return setting_kinds::RangeName::read(name, setting_text("CUWARDEN_STEP_RANGE"));
}

bool drops_deepbind_by_environment() {
  bool drops = true;
  setting_kinds::DropOrKeep::read(drops, setting_text("CUWARDEN_DEEPBIND"));
  return drops;
}

}  // namespace cuwarden::shim
