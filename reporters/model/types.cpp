#include "reporters/model/types.hpp"

#include <algorithm>
#include <cstring>

#include "reporters/model/type_descriptions.hpp"

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
  const auto found = std::ranges::find(type_->fields, name, &Field::name);
  if (found == type_->fields.end()) return std::nullopt;
  std::array<void*, most_fields> addresses;
  // The address is used to read alone.
  type_->find_fields(const_cast<void*>(at_), addresses.data());
  return AnyValue(*found->type, addresses[static_cast<std::size_t>(found - type_->fields.begin())]);
}

#define CUWARDEN_DESCRIBE(Described) template const Type& type_of<Described>();
CUWARDEN_NAMED_TYPES(CUWARDEN_DESCRIBE)
#undef CUWARDEN_DESCRIBE

}  // namespace cuwarden::model
