// Descriptions of the types of the report's model. A function that does the same with every field
// reads them at run time, such as the one that writes a report as JSON. So it is compiled once, and
// not for each of the hundred types.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::model {

struct Type;

// Description of one field of a struct that lists its fields by CUWARDEN_FIELDS.
struct Field {
  std::string_view name;  // name of the field, also in JSON
  const Type* type;       // type of the field; never null
  bool may_lack;          // true if a report file may lack the field (CUWARDEN_MAY_LACK)
};

// Kinds of types in the model. `flag`: bool. `number`: whole number. `text`: std::string.
// `proof_value` and `proof`: model::ProofValue and model::Proof. `optional`: std::optional. `list`:
// std::vector or std::array. `object`: struct that lists its fields by CUWARDEN_FIELDS.
enum class TypeKind : std::uint8_t {
  flag,
  number,
  text,
  proof_value,
  proof,
  optional,
  list,
  object
};

// Description of one type. There is one description for each type (type_of), so that equal types
// have the same address. Members that the kind has no use for are 0, null or empty.
struct Type {
  TypeKind kind = TypeKind::object;
  bool is_signed = false;         // true if the kind is `number` and values may be negative
  bool is_id = false;             // true if the type is model::Id
  std::size_t size = 0;           // bytes of a value of this type in memory
  const Type* element = nullptr;  // type of the values in an optional or list; else null
  // Returns the number of values in an optional or list, and in `first` the address of the first
  // value. Further values follow in memory, each `element->size` bytes behind the one before. Null
  // for other kinds.
  std::size_t (*elements)(void* value, void*& first) = nullptr;
  // Replaces the values in an optional or list by `count` new ones. Returns false, and changes
  // nothing, if the type cannot hold `count` values. Null for other kinds.
  bool (*renew)(void* value, std::size_t count) = nullptr;
  // Makes room in memory for `count` values in all in a list. Null for std::array and other kinds.
  void (*reserve)(void* value, std::size_t count) = nullptr;
  // Adds a new value at the end of a list, and returns the value's address. Null for std::array and
  // other kinds.
  void* (*add)(void* value) = nullptr;
  // Fields of a struct, in the order of its CUWARDEN_FIELDS; empty for other kinds than `object`.
  std::span<const Field> fields{};
  // Stores the addresses of the fields of `object` in `addresses`, which has room for
  // `fields.size()`. Null for other kinds than `object`.
  void (*find_fields)(void* object, void** addresses) = nullptr;
};

// Largest number of fields that a struct of the model may have.
inline constexpr std::size_t most_fields = 128;

// Returns the description of a type of the model. `Value`: one of the types that
// CUWARDEN_NAMED_TYPES lists; a file that names others includes type_descriptions.hpp.
template <class Value>
const Type& type_of();

// A value of any type of the model, to be read. Refers to the value, which must outlive the object.
class AnyValue {
 public:
  // `at`: address of the value, which is of this type.
  AnyValue(const Type& type, const void* at) noexcept : type_(&type), at_(at) {}
  // Refers to a value whose type is known.
  template <class Value>
  static AnyValue of(const Value& value) noexcept {
    return {type_of<Value>(), &value};
  }

  const Type& type() const noexcept { return *type_; }  // description of the value's type
  TypeKind kind() const noexcept { return type_->kind; }
  // True if the value is of type `Value`.
  template <class Value>
  bool is() const noexcept {
    return type_ == &type_of<Value>();
  }
  // Returns the value; null if it is of another type than `Value`.
  template <class Value>
  const Value* get_if() const noexcept {
    return is<Value>() ? static_cast<const Value*>(at_) : nullptr;
  }
  // Returns the value, which must be of type `Value`.
  template <class Value>
  const Value& as() const noexcept {
    return *static_cast<const Value*>(at_);
  }
  // Returns the value, which must be a number; a negative one as two's complement.
  std::uint64_t number() const noexcept;

  // Calls visit(AnyValue) for each value in the optional or list, in order.
  template <class Visit>
  void each_element(const Visit& visit) const {
    const auto [first, count] = elements();
    for (std::size_t i = 0; i < count; ++i)
      visit(AnyValue(*type_->element, first + i * type_->element->size));
  }
  // Returns the number of values in the optional or list.
  std::size_t count() const { return elements().second; }
  // Returns the value in the optional; null if there is none.
  std::optional<AnyValue> content() const {
    const auto [first, count] = elements();
    return count == 0 ? std::nullopt : std::optional(AnyValue(*type_->element, first));
  }
  // Calls visit(const Field&, AnyValue) for each field of the object, in the order of
  // CUWARDEN_FIELDS.
  template <class Visit>
  void each_field(const Visit& visit) const {
    std::array<void*, most_fields> addresses;
    // The addresses are used to read alone.
    type_->find_fields(const_cast<void*>(at_), addresses.data());
    for (std::size_t i = 0; i < type_->fields.size(); ++i)
      visit(type_->fields[i], AnyValue(*type_->fields[i].type, addresses[i]));
  }
  // Returns the object's field of this name; null if it has none.
  std::optional<AnyValue> field(std::string_view name) const;

 private:
  // Returns the address of the first value in the optional or list, and the number of its values.
  // They lie `type_->element->size` bytes apart. If the number is 0, the address must not be read.
  std::pair<const std::byte*, std::size_t> elements() const;

  const Type* type_;  // description of the value's type; never null
  const void* at_;    // address of the value
};

}  // namespace cuwarden::model
