// Parses CUWARDEN_*. No stdio and no exceptions: this runs inside the first CUDA call.
#include "shim/support/settings.hpp"

#include <fmt/format.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "reporters/words/near_names.hpp"
#include "runtime_hooks/ledger/format/layout.hpp"
#include "runtime_hooks/stacks/captured.hpp"
#include "shim/support/start_environment.hpp"

namespace cuwarden::shim {
namespace {

std::optional<bool> parse_switch(std::string_view text) {
  if (text == "1") return true;
  if (text == "0") return false;
  return std::nullopt;
}

std::optional<bool> parse_deepbind(std::string_view text) {
  if (text == "drop") return true;
  if (text == "keep") return false;
  return std::nullopt;
}

bool copy(char (&to)[path_limit], std::string_view from) {
  if (from.empty() || from.size() >= path_limit) return false;
  std::memcpy(to, from.data(), from.size());
  to[from.size()] = '\0';
  return true;
}

// False, and as it was, where there is none.
template <class Value>
bool assign(Value& to, const std::optional<Value>& value) {
  if (value) to = *value;
  return value.has_value();
}

bool read_enabled(Settings& settings, std::string_view text) {
  return assign(settings.enabled, parse_switch(text));
}

bool read_report(Settings& settings, std::string_view text) {
  return is_report_path(text) && copy(settings.report, text);
}

bool read_report_if(Settings& settings, std::string_view text) {
  return assign(settings.report_if, parse_report_if(text));
}
bool read_report_keep(Settings& settings, std::string_view text) {
  return assign(settings.report_keep, parse_report_keep(text));
}

static_assert(stacks::depth_limit <= ledger::deepest_stack);  // readers refuse deeper ones
bool read_stack_depth(Settings& settings, std::string_view text) {
  return assign(settings.stack_depth, parse_number(text, stacks::depth_limit));
}

bool read_ledger_folder(Settings& settings, std::string_view text) {
  return copy(settings.ledger_folder, text);
}

bool read_log(Settings& settings, std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto level = parse_log_level(text.substr(0, colon));
  if (!level) return false;
  if (colon != std::string_view::npos && !copy(settings.log_file, text.substr(colon + 1)))
    return false;
  settings.log_level = *level;
  return true;
}

bool read_deepbind(Settings& settings, std::string_view text) {
  return assign(settings.drop_deepbind, parse_deepbind(text));
}

bool read_pool(Settings& settings, std::string_view text) {
  return assign(settings.pool, parse_pool_mode(text));
}
bool read_wait(Settings& settings, std::string_view text) {
  return assign(settings.wait_ns, parse_duration_ns(text));
}
bool read_sync_timeout(Settings& settings, std::string_view text) {
  return assign(settings.sync_timeout_ns, parse_duration_ns(text));
}
bool read_spill(Settings& settings, std::string_view text) {
  return assign(settings.spill, parse_spill(text));
}
bool read_mesh(Settings& settings, std::string_view text) {
  return assign(settings.meshes, parse_on_off(text));
}
bool read_mesh_pause(Settings& settings, std::string_view text) {
  return assign(settings.mesh_pause_ns, parse_duration_ns(text));
}
bool read_symbol_time(Settings& settings, std::string_view text) {
  return assign(settings.symbol_time_ns, parse_duration_ns(text));
}

// Written by `cuwarden run` for the shim; not for users.
bool read_report_list(Settings& settings, std::string_view text) {
  return copy(settings.report_list, text);
}

struct Known {
  std::string_view name;
  bool (*read)(Settings&, std::string_view);
  std::string_view accepted;
  std::string_view fallback;
};
constexpr Known known[] = {
#define SETTING(name, read, accepted, fallback, meaning) {name, read, accepted, fallback},
#include "shim/support/settings.def"
#undef SETTING
};

// Returns the setting that may have been meant: one that begins with `name`, or differs from it in
// two letters (in fewer if the name is short). Empty: no setting is like it.
std::string_view nearest(std::string_view name) {
  std::string_view best;
  std::size_t least = std::min<std::size_t>(3, (name.size() - setting_prefix.size() + 1) / 2);
  for (const Known& candidate : known) {
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
  if (name.starts_with("CUWARDEN_SIM_")) return;  // the simulated GPU's own
  for (const Known& setting : known) {
    if (setting.name != name) continue;
    if (!setting.read(settings, value))
      complain(fmt::format("{}={}: not accepted; use {}. Going on with {}.", name, value,
                           setting.accepted, setting.fallback));
    return;
  }
  const std::string_view meant = nearest(name);
  complain(fmt::format("{}={}: no such setting{} Ignored.", name, value,
                       meant.empty() ? "." : fmt::format("; did you mean {}?", meant)));
}

// Empty where there is none.
std::string_view setting_text(std::string_view name) {
  std::string_view value;
  each_setting_text([&](std::string_view text) {
    if (text.starts_with(name) && text.substr(name.size()).starts_with('='))
      value = text.substr(name.size() + 1);
  });
  return value;
}

}  // namespace

void read_settings(Settings& settings, Complain complain) {
  each_setting_text([&](std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      read_one(settings, text.substr(0, equals), text.substr(equals + 1), complain);
  });
  if (settings.pool == PoolMode::off && (settings.spill.bytes != 0 || settings.spill.percent != 0))
    complain(
        "CUWARDEN_SPILL has no effect with CUWARDEN_POOL=off: refused requests are not spilled");
  if (settings.pool == PoolMode::off && settings.wait_ns != 0)
    complain(
        "CUWARDEN_WAIT has no effect with CUWARDEN_POOL=off: refused requests are not retried");
}

// A program that runs with more rights than its caller is left alone: the environment that says
// where to write files is the caller's. (The loader preloads nothing there either, unless the
// system's own configuration says so.)
bool enabled_by_environment() {
  if (getauxval(AT_SECURE) != 0) return false;
  return parse_switch(setting_text("CUWARDEN_ENABLED")).value_or(true);
}

bool drops_deepbind_by_environment() {
  return parse_deepbind(setting_text("CUWARDEN_DEEPBIND")).value_or(true);
}

}  // namespace cuwarden::shim
