#include "reporters/json/parse.hpp"

#include <iterator>

namespace cuwarden {
namespace {

Complaint unless(bool good, const char* what) {
  return good ? std::nullopt : Complaint(std::string(" is no ") + what);
}

}  // namespace

Complaint parse(const Json& json, std::string& value) {
  if (json.is_string()) value = json.get_ref<const std::string&>();
  return unless(json.is_string(), "text");
}

Complaint parse(const Json& json, bool& value) {
  if (json.is_boolean()) value = json.get<bool>();
  return unless(json.is_boolean(), "true or false");
}

Complaint parse(const Json& json, model::Proof& proof) {
  if (!json.is_object()) return " is no object";
  for (const auto& [name, value] : json.items()) {
    model::ProofValue& known = proof.emplace_back(name, std::monostate()).second;
    if (value.is_number_unsigned()) known = value.get<std::uint64_t>();
    if (value.is_string()) known = value.get<std::string>();
  }
  return std::nullopt;
}

namespace parsing {

Complaint parse_fields(const Json& json, std::span<const Field> fields) {
  if (!json.is_object()) return " is no object";
  auto expected = json.begin();  // fields mostly come in the order of their list
  for (const Field& field : fields) {
    const auto found =
        expected != json.end() && expected.key() == field.name ? expected : json.find(field.name);
    if (found == json.end()) {
      if (!field.may_lack) return "." + std::string(field.name) + " is missing";
      continue;
    }
    expected = std::next(found);
    if (const auto wrong = field.parse(*found, field.value))
      return "." + std::string(field.name) + *wrong;
  }
  return std::nullopt;
}

Complaint parse_elements(const Json& json, std::size_t count, void* first, std::size_t size,
                         Parse parse) {
  for (std::size_t i = 0; i < count; ++i)
    if (const auto wrong = parse(json[i], static_cast<std::byte*>(first) + i * size))
      return "[" + std::to_string(i) + "]" + *wrong;
  return std::nullopt;
}

Complaint parse_number(const Json& json, std::int64_t least, std::uint64_t most, const char* what,
                       std::uint64_t& number) {
  bool fits = false;
  if (json.is_number_unsigned()) {
    number = json.get<std::uint64_t>();
    fits = number <= most;
  } else if (json.is_number_integer()) {
    const auto negative = json.get<std::int64_t>();
    number = static_cast<std::uint64_t>(negative);
    fits = negative >= least;
  }
  return unless(fits, what);
}

}  // namespace parsing
}  // namespace cuwarden
