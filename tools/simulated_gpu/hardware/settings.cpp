// Parses the variables CUWARDEN_SIM_*.
#include "tools/simulated_gpu/hardware/settings.hpp"

#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "tools/simulated_gpu/hardware/driver_headers.hpp"

namespace cuwarden::simulated_gpu {
namespace {

std::optional<double> leading_number(std::string_view& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<std::size_t> parse_size(std::string_view text) {
  const auto value = leading_number(text);
  if (!value) return std::nullopt;
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr Unit kUnits[] = {
      {"", 1},     {"B", 1},    {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
      {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},   {"K", 1024},      {"M", 1048576},  {"G", 0x1p30}};
  for (const Unit& unit : kUnits) {
    if (text == unit.name && *value * unit.bytes < 0x1p56) {
      return static_cast<std::size_t>(*value * unit.bytes);
    }
  }
  return std::nullopt;
}

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const auto value = leading_number(text);
  if (!value) return std::nullopt;
  double unit = 0;
  if (text == "ns") unit = 1;
  if (text == "us") unit = 1e3;
  if (text == "ms") unit = 1e6;
  if (text == "s") unit = 1e9;
  if (unit == 0 && (*value != 0 || !text.empty())) return std::nullopt;
  return std::chrono::nanoseconds(static_cast<long long>(*value * unit));
}

std::optional<ProcessList> parse_process_list(std::string_view text) {
  if (text == "hide_others") return ProcessList::hide_others;
  if (text == "refuse") return ProcessList::refuse;
  return std::nullopt;
}

std::optional<ComputeMode> parse_compute_mode(std::string_view text) {
  if (text == "default") return ComputeMode::shared;
  if (text == "prohibited") return ComputeMode::prohibited;
  if (text == "exclusive_process") return ComputeMode::exclusive_process;
  return std::nullopt;
}

std::optional<VirtualMemory> parse_virtual_memory(std::string_view text) {
  if (text == "all") return VirtualMemory::all;
  if (text == "device") return VirtualMemory::device_only;
  if (text == "none") return VirtualMemory::none;
  if (text == "apart") return VirtualMemory::apart;
  return std::nullopt;
}

std::optional<long long> parse_integer(std::string_view text) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<FaultRule> parse_fault(std::string_view text) {
  std::vector<std::string> parts = split(text, ':');
  if (parts.size() < 2 || parts[0].empty()) return std::nullopt;
  FaultRule rule;
  rule.function = parts[0];
  std::size_t next = 1;
  for (const auto& [word, calls] : {std::pair{"every", FaultRule::Calls::every_nth},
                                    {"from", FaultRule::Calls::from_nth},
                                    {"lost", FaultRule::Calls::lost}}) {
    if (next != 1 || parts[1] != word) continue;
    rule.calls = calls;
    ++next;
  }
  if (next == parts.size()) return std::nullopt;
  if (parts[next] == "*") {
    if (rule.calls != FaultRule::Calls::nth) return std::nullopt;
  } else {
    const auto n = parse_integer(parts[next]);
    if (!n || *n <= 0) return std::nullopt;
    rule.n = static_cast<unsigned long long>(*n);
  }
  const auto is_word = [&](const char* word, FaultRule::Instead meaning) {
    if (next >= parts.size() || parts[next] != word) return false;
    rule.instead = meaning;
    return true;
  };
  if (++next < parts.size() &&
      (is_word("signal", FaultRule::Instead::signal) || is_word("hang", FaultRule::Instead::hang) ||
       is_word("tell", FaultRule::Instead::tell))) {
    if (rule.calls == FaultRule::Calls::lost) return std::nullopt;
    ++next;
  } else if (next < parts.size()) {
    const auto code = parse_integer(parts[next]);
    if (!code || *code <= 0) return std::nullopt;
    rule.code = static_cast<int>(*code);
    ++next;
    if (rule.calls == FaultRule::Calls::lost && is_word("hang", FaultRule::Instead::hang)) ++next;
  }
  if (next != parts.size()) return std::nullopt;
  return rule;
}

std::optional<std::vector<FaultRule>> parse_faults(std::string_view text) {
  std::vector<FaultRule> rules;
  for (const std::string& part : split(text, ',')) {
    if (part.empty()) continue;
    auto rule = parse_fault(part);
    if (!rule) return std::nullopt;
    rules.push_back(std::move(*rule));
  }
  return rules;
}

// Parses a list such as "0=2G,1=512MB".
std::optional<std::map<int, std::size_t>> parse_memory_limits(std::string_view text) {
  std::map<int, std::size_t> limits;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) return std::nullopt;
    const auto device = parse_integer(std::string_view(part).substr(0, equals));
    const auto bytes = parse_size(std::string_view(part).substr(equals + 1));
    if (!device || !bytes) return std::nullopt;
    limits[static_cast<int>(*device)] = *bytes;
  }
  return limits;
}

std::optional<std::vector<LocalMemoryRule>> parse_local_memory(std::string_view text) {
  std::vector<LocalMemoryRule> rules;
  for (const std::string& part : split(text, ',')) {
    if (part.empty()) continue;
    const std::size_t colon = part.rfind(':');
    if (colon == std::string::npos) return std::nullopt;
    const auto bytes = parse_size(std::string_view(part).substr(colon + 1));
    if (!bytes) return std::nullopt;
    rules.push_back({part.substr(0, colon), *bytes});
  }
  return rules;
}

// Returns the devices that CUDA_VISIBLE_DEVICES lists, as far as it is a list of numbers: an entry
// that is no device ends the list.
// https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables
std::vector<int> visible_devices(int devices) {
  std::vector<int> visible;
  const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr || std::getenv("CUWARDEN_SIM_DEVICES") == nullptr) {
    // If CUWARDEN_SIM_DEVICES is not set, the list is meant for the machine's real devices.
    for (int device = 0; device < devices; ++device) visible.push_back(device);
    return visible;
  }
  for (const std::string& part : split(list, ',')) {
    const auto device = parse_integer(part);
    if (!device || *device < 0 || *device >= devices) break;
    visible.push_back(static_cast<int>(*device));
  }
  return visible;
}

template <typename Parse, typename Accept>
void read(const char* name, const char* accepted, Parse parse, Accept accept) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return;
  const auto value = parse(std::string_view(text));
  if (!value || !accept(*value)) {
    // The value is not printed: it could control the terminal.
    std::fprintf(stderr, "simulated GPU: %s is not %s; the default is used\n", name, accepted);
  }
}

// Returns a function for read() that stores each value in `target`.
template <typename Target>
auto into(Target& target) {
  return [&target](Target value) {
    target = std::move(value);
    return true;
  };
}

// Returns a function for read() that stores a number from `least` to `most` in `target`.
auto into(int& target, long long least, long long most) {
  return [=, &target](long long value) {
    if (value < least || value > most) return false;
    target = static_cast<int>(value);
    return true;
  };
}

}  // namespace

Settings read_settings() {
  Settings settings;
  read("CUWARDEN_SIM_MEMORY", "a size of at least 1MiB such as 16GiB", parse_size,
       [&](std::size_t value) {
         if (value >= kMiB) settings.memory = value;
         return value >= kMiB;
       });
  read("CUWARDEN_SIM_PINNED_LIMIT", "a size such as 1GiB", parse_size, into(settings.pinned_limit));
  read("CUWARDEN_SIM_OTHER_PROCESS", "a size such as 1GiB", parse_size,
       into(settings.other_process));
  read("CUWARDEN_SIM_OTHER_PID", "the pid of a process", parse_integer,
       into(settings.other_pid, 1, INT_MAX));
  if (const char* path = std::getenv("CUWARDEN_SIM_SHARED")) settings.shared = path;
  read("CUWARDEN_SIM_NVML", "hide_others or refuse", parse_process_list, into(settings.processes));
  read("CUWARDEN_SIM_COMPUTE_MODE", "default, prohibited or exclusive_process", parse_compute_mode,
       into(settings.compute_mode));
  read("CUWARDEN_SIM_VMM", "all, device, none or apart", parse_virtual_memory,
       into(settings.virtual_memory));
  read("CUWARDEN_SIM_MIG", "the size of the whole device, such as 80GiB", parse_size,
       into(settings.whole_memory));
  read("CUWARDEN_SIM_INTEGRATED", "the size of the host's page cache, such as 1GiB", parse_size,
       into(settings.page_cache));
  read("CUWARDEN_SIM_CGROUP_LIMIT", "a size such as 1GiB", parse_size, into(settings.cgroup_limit));
  bool served_by_mps = false;
  read("CUWARDEN_SIM_MPS", "0 or 1", parse_integer, [&](long long value) {
    served_by_mps = value == 1;
    return value == 0 || value == 1;
  });
  if (served_by_mps) {
    read("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "a list of device=size", parse_memory_limits,
         into(settings.memory_limits));
  }
  read("CUWARDEN_SIM_DEVICES", "a number from 0 to 64", parse_integer,
       into(settings.devices, 0, 64));
  settings.visible = visible_devices(settings.devices);
  read("CUWARDEN_SIM_DRIVER_VERSION", "a version such as 12020", parse_integer,
       into(settings.driver_version, 2000, 99990));
  read("CUWARDEN_SIM_KERNEL_TIME", "a duration such as 100ms", parse_duration,
       into(settings.kernel_time));
  read("CUWARDEN_SIM_THREADS", "a number from 0 to 64", parse_integer,
       into(settings.threads, 0, 64));
  read("CUWARDEN_SIM_END_TIME", "a duration such as 100ms", parse_duration,
       into(settings.end_time));
  read("CUWARDEN_SIM_FAIL",
       "a list of function:n[:code], function:every:n[:code], function:from:n[:code], "
       "function:lost:n[:code[:hang]] and function:*[:code], or signal, hang or tell for the code",
       parse_faults, into(settings.faults));
  read("CUWARDEN_SIM_LOCAL_MEMORY", "a list of kernel:bytes", parse_local_memory,
       into(settings.local_memory));
  return settings;
}

}  // namespace cuwarden::simulated_gpu
