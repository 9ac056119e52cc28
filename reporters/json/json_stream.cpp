#include "reporters/json/json_stream.hpp"

#include <utility>
#include <variant>

#include "reporters/json/json_values.hpp"

namespace cuwarden {

void JsonStream::part(std::string_view name, model::AnyValue value) {
  const model::Type* const element = value.type().element;
  if (value.kind() != model::TypeKind::list || element->kind != model::TypeKind::object)
    return this->value(name, value);
  begin_table(name);
  value.each_element([this](model::AnyValue row) { this->row(row); });
  end_table();
}

void JsonStream::write(model::AnyValue value) {
  switch (value.kind()) {
    case model::TypeKind::flag:
      return output_.write(value.as<bool>() ? "true" : "false");
    case model::TypeKind::number:
      return write(value.number(), value.type().is_signed);
    case model::TypeKind::text:
      return write_json_text(output_, value.as<std::string>());
    case model::TypeKind::proof_value:
      return write(value.as<model::ProofValue>());
    case model::TypeKind::proof: {
      const char* before = "{";
      for (const auto& [name, figure] : value.as<model::Proof>()) {
        name_in(before, name);
        write(figure);
      }
      return output_.write(*before == '{' ? "{}" : "}");
    }
    case model::TypeKind::optional:
      if (const auto content = value.content()) return write(*content);
      return output_.write("null");
    case model::TypeKind::list: {
      const char* before = "[";
      value.each_element([&](model::AnyValue element) {
        output_.write(std::exchange(before, ","));
        write(element);
      });
      return output_.write(*before == '[' ? "[]" : "]");
    }
    case model::TypeKind::object: {
      const char* before = "{";
      value.each_field([&](const model::Field& field, model::AnyValue each) {
        name_in(before, field.name);
        write(each);
      });
      return output_.write("}");
    }
  }
}

void JsonStream::write(const model::ProofValue& value) {
  if (const auto* const text = std::get_if<std::string>(&value))
    write_json_text(output_, *text);
  else if (const auto* const number = std::get_if<std::uint64_t>(&value))
    write(*number, false);
  else
    output_.write("null");
}

void JsonStream::write(std::uint64_t number, bool is_signed) {
  const auto negative = static_cast<std::int64_t>(number);
  if (is_signed && negative < 0) {
    if (negative >= -static_cast<std::int64_t>(model::largest_number))
      return write_json_number(output_, negative);
  } else if (number <= model::largest_number) {
    return write_json_number(output_, number);
  }
  output_.write("null");
}

}  // namespace cuwarden
