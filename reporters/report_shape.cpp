#include "reporters/report_shape.hpp"

#include <cstdint>
#include <span>

namespace cuwarden {
namespace {

using nlohmann::json;

enum class Type : std::uint8_t {
  text,
  text_or_null,
  figure,  // a whole number from 0 on, or null where it is unknown
  integer_or_null,
  id,
  id_or_null,
  truth,
  texts,
  ids,
  figures,  // an object of figures and texts
};

struct Field {
  const char* name;
  Type type;
  bool optional = false;  // there are reports without it
};

struct Part {
  const char* name;
  std::span<const Field> fields;
};

constexpr Field completeness[] = {{"complete", Type::truth}, {"reasons", Type::texts}};
constexpr Field process[] = {{"pid", Type::figure},
                             {"program", Type::text_or_null},
                             {"command_line", Type::texts},
                             {"host", Type::text_or_null},
                             {"start", Type::text},
                             {"end_ns", Type::figure},
                             {"end_reason", Type::text_or_null},
                             {"exit_status", Type::integer_or_null},
                             {"signal", Type::figure},
                             {"cuda_driver_version", Type::text_or_null}};
constexpr Field job[] = {{"scheduler", Type::text_or_null},
                         {"job_id", Type::text_or_null},
                         {"job_step", Type::text_or_null, true},
                         {"array_task", Type::text_or_null, true},
                         {"rank", Type::figure},
                         {"visible_devices", Type::text_or_null, true}};
constexpr Field leaks[] = {{"bytes", Type::figure},
                           {"count", Type::figure},
                           {"suppressed_bytes", Type::figure},
                           {"released_by_context_bytes", Type::figure}};
constexpr Part objects[] = {{"tool", completeness},
                            {"coverage", completeness},
                            {"process", process},
                            {"job", job},
                            {"leaks", leaks}};

constexpr Field devices[] = {{"device", Type::id},
                             {"uuid", Type::text_or_null, true},
                             {"name", Type::text_or_null},
                             {"at", Type::text_or_null},
                             {"total_bytes", Type::figure},
                             {"used_bytes", Type::figure},
                             {"free_bytes", Type::figure},
                             {"local_memory_kernel", Type::text_or_null, true},
                             {"local_memory_kernel_thread_bytes", Type::figure, true}};
constexpr Field accounts[] = {{"device", Type::id},
                              {"incident", Type::id_or_null},
                              {"item", Type::text},
                              {"bytes", Type::integer_or_null}};
constexpr Field fragmentation[] = {{"device", Type::id},
                                   {"slab_count", Type::figure},
                                   {"slab_locked_bytes", Type::figure},
                                   {"rounding_bytes", Type::figure},
                                   {"largest_request_bytes", Type::figure},
                                   {"page_bytes", Type::figure, true},
                                   {"excess_bytes", Type::figure, true}};
constexpr Field slab_holders[] = {{"device", Type::id},
                                  {"stack", Type::id_or_null},
                                  {"count", Type::figure},
                                  {"bytes", Type::figure},
                                  {"locked_bytes", Type::figure}};
constexpr Field worst_fragmentation[] = {{"device", Type::id},
                                         {"time_ns", Type::figure},
                                         {"slab_count", Type::figure},
                                         {"slab_locked_bytes", Type::figure}};
constexpr Field totals[] = {
    {"kind", Type::text},         {"device", Type::id_or_null}, {"allocations", Type::figure},
    {"failures", Type::figure},   {"live_count", Type::figure}, {"live_bytes", Type::figure},
    {"peak_count", Type::figure}, {"peak_bytes", Type::figure}, {"peak_time_ns", Type::figure}};
constexpr Field leak_groups[] = {
    {"stack", Type::id_or_null},    {"kind", Type::text},
    {"api", Type::text_or_null},    {"device", Type::id_or_null},
    {"count", Type::figure},        {"bytes", Type::figure},
    {"first_ns", Type::figure},     {"last_ns", Type::figure},
    {"module", Type::id_or_null},   {"allocations", Type::figure},
    {"growth", Type::text_or_null}, {"released_by", Type::text_or_null},
    {"suppressed", Type::truth},    {"growth_bytes_per_minute", Type::figure, true}};
constexpr Field timeline[] = {
    {"time_ns", Type::figure}, {"kind", Type::text}, {"last_bytes", Type::figure}};
constexpr Field peak_holders[] = {
    {"device", Type::id_or_null},     {"kind", Type::text},
    {"stack", Type::id_or_null},      {"count", Type::figure},
    {"bytes", Type::figure},          {"allocations", Type::figure, true},
    {"first_ns", Type::figure, true}, {"last_ns", Type::figure, true}};
constexpr Field stacks[] = {{"id", Type::id}, {"frames", Type::ids}, {"truncated", Type::truth}};
constexpr Field frames[] = {
    {"id", Type::id},        {"function", Type::text_or_null}, {"file", Type::text_or_null},
    {"line", Type::figure},  {"inlined", Type::truth},         {"module", Type::id_or_null},
    {"offset", Type::figure}};
constexpr Field modules[] = {{"id", Type::id}, {"path", Type::text}};
constexpr Field incidents[] = {{"id", Type::id},
                               {"time_ns", Type::figure},
                               {"api", Type::text_or_null},
                               {"bytes", Type::figure},
                               {"device", Type::id_or_null},
                               {"stack", Type::id_or_null},
                               {"outcome", Type::text},
                               {"verdict", Type::text},
                               {"repeats", Type::figure},
                               {"proof", Type::figures},
                               {"advice", Type::text_or_null},
                               {"recovered_count", Type::figure, true},
                               {"rescued_count", Type::figure, true},
                               {"failed_count", Type::figure, true},
                               {"last_bytes", Type::figure, true},
                               {"last_ns", Type::figure, true}};
constexpr Field device_processes[] = {{"pid", Type::figure}, {"used_bytes", Type::figure}};
constexpr Field incident_holders[] = {{"incident", Type::id},
                                      {"stack", Type::id_or_null},
                                      {"kind", Type::text},
                                      {"count", Type::figure},
                                      {"bytes", Type::figure},
                                      {"growth_bytes_per_minute", Type::figure, true},
                                      {"slab_locked_bytes", Type::figure, true}};
// Which reports of earlier versions lack.
constexpr Part later_tables[] = {{"slab_holders", slab_holders},
                                 {"incidents", incidents},
                                 {"device_processes", device_processes},
                                 {"incident_holders", incident_holders},
                                 {"worst_fragmentation", worst_fragmentation},
                                 {"worst_slab_holders", slab_holders}};
constexpr Part tables[] = {{"devices", devices},
                           {"accounts", accounts},
                           {"fragmentation", fragmentation},
                           {"totals", totals},
                           {"leak_groups", leak_groups},
                           {"timeline", timeline},
                           {"peak_holders", peak_holders},
                           {"stacks", stacks},
                           {"frames", frames},
                           {"modules", modules}};

bool is_id(const json& value) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() <= UINT32_MAX;
}

std::string index(std::size_t number) { return "[" + std::to_string(number) + "]"; }

// What these say follows the name of what is wrong; whole reports are well-formed, and of their
// hundreds of thousands of fields no name is put together.
using Complaint = std::optional<std::string>;

Complaint wrong_list(const json& list, bool of_texts) {
  if (!list.is_array()) return " is no list";
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (of_texts ? !list[i].is_string() : !is_id(list[i]))
      return index(i) + (of_texts ? " is no text" : " is no id");
  }
  return std::nullopt;
}

Complaint wrong_value(const json& value, Type type) {
  const auto unless = [](bool good, const char* what) {
    return good ? std::nullopt : Complaint(std::string(" is no ") + what);
  };
  switch (type) {
    case Type::text:
      return unless(value.is_string(), "text");
    case Type::text_or_null:
      return unless(value.is_string() || value.is_null(), "text");
    case Type::figure:
      return unless(value.is_number_unsigned() || value.is_null(), "number from 0 on");
    case Type::integer_or_null:
      return unless(value.is_number_integer() || value.is_null(), "whole number");
    case Type::id:
      return unless(is_id(value), "id");
    case Type::id_or_null:
      return unless(is_id(value) || value.is_null(), "id");
    case Type::truth:
      return unless(value.is_boolean(), "true or false");
    case Type::texts:
      return wrong_list(value, true);
    case Type::ids:
      return wrong_list(value, false);
    case Type::figures:
      return unless(value.is_object(), "object");
  }
  return std::nullopt;
}

Complaint wrong_object(const json& object, std::span<const Field> fields) {
  if (!object.is_object()) return " is no object";
  for (const Field& field : fields) {
    const auto value = object.find(field.name);
    if (field.optional && value == object.end()) continue;
    const Complaint wrong =
        value == object.end() ? Complaint(" is missing") : wrong_value(*value, field.type);
    if (wrong) return "." + (field.name + *wrong);
  }
  return std::nullopt;
}

Complaint wrong_table(const json& table, const Part& part) {
  if (!table.is_array()) return " is no table";
  for (std::size_t row = 0; row < table.size(); ++row) {
    if (const auto wrong = wrong_object(table[row], part.fields)) return index(row) + *wrong;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> wrong_shape(const json& report) {
  for (const Part& part : objects) {
    const auto object = report.find(part.name);
    if (object == report.end()) return std::string(part.name) + " is missing";
    if (const auto wrong = wrong_object(*object, part.fields)) return part.name + *wrong;
  }
  for (const char* name : {"records", "names"}) {
    const auto part = report.find(name);
    if (part == report.end()) continue;
    if (const auto wrong = wrong_object(*part, completeness)) return name + *wrong;
  }
  for (const Part& part : tables) {
    const auto table = report.find(part.name);
    if (table == report.end()) return std::string(part.name) + " is missing";
    if (const auto wrong = wrong_table(*table, part)) return part.name + *wrong;
  }
  for (const Part& part : later_tables) {
    const auto table = report.find(part.name);
    if (table == report.end()) continue;
    if (const auto wrong = wrong_table(*table, part)) return part.name + *wrong;
  }
  return std::nullopt;
}

}  // namespace cuwarden
