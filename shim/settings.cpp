// Parses CUWARDEN_*. No stdio and no exceptions: this runs inside the first CUDA call.
#include "shim/settings.hpp"

#include <fmt/format.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime_hooks/ledger/layout.hpp"
#include "runtime_hooks/stacks/captured.hpp"

namespace cuwarden::shim {
namespace {

constexpr std::string_view prefix = "CUWARDEN_";

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

std::optional<LogLevel> parse_level(std::string_view text) {
  constexpr std::string_view names[] = {"off", "error", "warn", "info", "debug"};
  for (std::size_t i = 0; i < std::size(names); ++i)
    if (names[i] == text) return static_cast<LogLevel>(i);
  return std::nullopt;
}

bool copy(char (&to)[path_limit], std::string_view from) {
  if (from.empty() || from.size() >= path_limit) return false;
  std::memcpy(to, from.data(), from.size());
  to[from.size()] = '\0';
  return true;
}

bool read_enabled(Settings& settings, std::string_view text) {
  const auto value = parse_switch(text);
  if (value) settings.enabled = *value;
  return value.has_value();
}

bool read_report(Settings& settings, std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') continue;
    ++i;
    if (i == text.size() || std::string_view("ehpjr%").find(text[i]) == std::string_view::npos)
      return false;
  }
  return copy(settings.report, text);
}

static_assert(stacks::depth_limit <= ledger::deepest_stack);  // readers refuse deeper ones
bool read_stack_depth(Settings& settings, std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > stacks::depth_limit)
    return false;
  settings.stack_depth = value;
  return true;
}

bool read_ledger_folder(Settings& settings, std::string_view text) {
  return copy(settings.ledger_folder, text);
}

bool read_log(Settings& settings, std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto level = parse_level(text.substr(0, colon));
  if (!level) return false;
  if (colon != std::string_view::npos && !copy(settings.log_file, text.substr(colon + 1)))
    return false;
  settings.log_level = *level;
  return true;
}

bool read_deepbind(Settings& settings, std::string_view text) {
  const auto value = parse_deepbind(text);
  if (value) settings.drop_deepbind = *value;
  return value.has_value();
}

bool read_pool(Settings& settings, std::string_view text) {
  for (std::size_t i = 0; i < std::size(pool_mode_names); ++i) {
    if (pool_mode_names[i] != text) continue;
    settings.pool = static_cast<PoolMode>(i);
    return true;
  }
  return false;
}

// "30s", "2m", "500ms", "1h", or "0".
std::optional<std::uint64_t> parse_duration_ns(std::string_view text) {
  constexpr std::uint64_t longest = 366ull * 24 * 3600;  // seconds: no wait is meant to be longer
  constexpr std::pair<std::string_view, std::uint64_t> units[] = {
      {"ms", 1'000'000}, {"s", 1'000'000'000}, {"m", 60'000'000'000}, {"h", 3'600'000'000'000}};
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc()) return std::nullopt;
  if (value == 0 && unit.empty()) return 0;
  for (const auto& [name, ns] : units) {
    if (unit != name) continue;
    if (value > longest * 1'000'000'000 / ns) return std::nullopt;
    return value * ns;
  }
  return std::nullopt;
}

bool read_duration(std::uint64_t& to, std::string_view text) {
  const auto value = parse_duration_ns(text);
  if (value) to = *value;
  return value.has_value();
}
bool read_wait(Settings& settings, std::string_view text) {
  return read_duration(settings.wait_ns, text);
}
bool read_sync_timeout(Settings& settings, std::string_view text) {
  return read_duration(settings.sync_timeout_ns, text);
}

bool read_mesh(Settings& settings, std::string_view text) {
  if (text != "on" && text != "off") return false;
  settings.meshes = text == "on";
  return true;
}
bool read_mesh_pause(Settings& settings, std::string_view text) {
  return read_duration(settings.mesh_pause_ns, text);
}
bool read_symbol_time(Settings& settings, std::string_view text) {
  return read_duration(settings.symbol_time_ns, text);
}

// "8GiB", "512MiB", "25%", or "0"; with ":visible" behind it.
bool read_spill(Settings& settings, std::string_view text) {
  constexpr std::pair<std::string_view, unsigned> units[] = {
      {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  constexpr std::string_view visible = ":visible";
  const bool is_visible = text.ends_with(visible);
  if (is_visible) text.remove_suffix(visible.size());
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc()) return false;
  std::uint64_t bytes = 0;
  unsigned percent = 0;
  if (unit == "%") {
    if (value > 100) return false;
    percent = static_cast<unsigned>(value);
  } else if (value != 0 || !unit.empty()) {
    const auto found = std::find_if(std::begin(units), std::end(units),
                                    [&](const auto& each) { return each.first == unit; });
    if (found == std::end(units) || value > UINT64_MAX >> found->second) return false;
    bytes = value << found->second;
  }
  settings.spill_bytes = bytes;
  settings.spill_percent = percent;
  settings.spill_is_visible = is_visible;
  return true;
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
    {"CUWARDEN_ENABLED", read_enabled, "0 or 1", "1"},
    {"CUWARDEN_REPORT", read_report, "a path; %e %h %p %j %r %% are replaced",
     "cuwarden-%e-%h-%p.json"},
    {"CUWARDEN_STACK_DEPTH", read_stack_depth, "a number of frames from 0 to 1024", "256"},
    {"CUWARDEN_LEDGER_DIR", read_ledger_folder, "a folder", "the report's folder"},
    {"CUWARDEN_LOG", read_log, "off, error, warn, info or debug, with :FILE into a file", "warn"},
    {"CUWARDEN_POOL", read_pool, "off, rescue, on or auto", "auto"},
    {"CUWARDEN_WAIT", read_wait, "a time as 500ms, 30s or 2m", "0"},
    {"CUWARDEN_SYNC_TIMEOUT", read_sync_timeout, "a time as 500ms, 30s or 2m", "2s"},
    {"CUWARDEN_SPILL", read_spill, "an amount as 8GiB or 25%, or as 8GiB:visible", "0"},
    {"CUWARDEN_MESH", read_mesh, "on or off", "on"},
    {"CUWARDEN_MESH_PAUSE", read_mesh_pause, "a time as 500ms, 30s or 2m", "500ms"},
    {"CUWARDEN_SYMBOL_TIME", read_symbol_time, "a time as 500ms, 30s or 2m", "1600ms"},
    {"CUWARDEN_DEEPBIND", read_deepbind, "drop or keep", "drop"},
    {"CUWARDEN_REPORT_LIST", read_report_list, "a path", "none"},
};

// Edits (insert, delete, replace) from one name to another.
std::size_t distance(std::string_view a, std::string_view b) {
  constexpr std::size_t limit = 64;
  if (a.size() >= limit || b.size() >= limit) return limit;
  std::size_t row[limit] = {};
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// What may have been meant: what it is the beginning of, or differs from in two letters, of short
// names in fewer. Empty: nothing is like it.
std::string_view nearest(std::string_view name) {
  std::string_view best;
  std::size_t least = std::min<std::size_t>(3, (name.size() - prefix.size() + 1) / 2);
  for (const Known& candidate : known) {
    const bool is_beginning = name.size() > prefix.size() + 2 && candidate.name.starts_with(name);
    const std::size_t edits = is_beginning ? 1 : distance(name, candidate.name);
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

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): as the program's own
  return value == nullptr ? std::string_view() : value;
}

}  // namespace

void read_settings(Settings& settings, Complain complain) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (!text.starts_with(prefix) || equals == std::string_view::npos) continue;
    read_one(settings, text.substr(0, equals), text.substr(equals + 1), complain);
  }
  if (settings.pool == PoolMode::off && (settings.spill_bytes != 0 || settings.spill_percent != 0))
    complain(
        "CUWARDEN_SPILL: nothing is spilled, for CUWARDEN_POOL=off serves no request that fails");
  if (settings.pool == PoolMode::off && settings.wait_ns != 0)
    complain("CUWARDEN_WAIT: nothing waits, for CUWARDEN_POOL=off serves no request that fails");
}

// A program that runs with more rights than its caller is left alone: the environment that says
// where to write files is the caller's. (The loader preloads nothing there either, unless the
// system's own configuration says so.)
bool enabled_by_environment() {
  if (getauxval(AT_SECURE) != 0) return false;
  return parse_switch(variable("CUWARDEN_ENABLED")).value_or(true);
}

bool drops_deepbind_by_environment() {
  return parse_deepbind(variable("CUWARDEN_DEEPBIND")).value_or(true);
}

}  // namespace cuwarden::shim
