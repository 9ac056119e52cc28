#include "reporters/model/types.hpp"

#include <cstring>

namespace cuwarden::model {

std::uint64_t AnyValue::number() const noexcept {
  std::uint64_t number = 0;
  std::memcpy(&number, at_, type_->size);
  const std::size_t unused_bits = 64 - 8 * type_->size;
  if (!type_->is_signed) return number;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(number << unused_bits) >>
                                    unused_bits);
}

std::pair<const std::byte*, std::size_t> AnyValue::elements() const {
  void* first = nullptr;
  // The address is used to read alone.
  const std::size_t count = type_->elements(const_cast<void*>(at_), first);
  return {static_cast<const std::byte*>(first), count};
}

std::optional<AnyValue> AnyValue::field(std::string_view name) const {
  std::optional<AnyValue> found;
  each_field([&](const Field& field, AnyValue value) {
    if (field.name == name) found = value;
  });
  return found;
}

}  // namespace cuwarden::model
