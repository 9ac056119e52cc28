#include "reporters/reachability/driver_records.hpp"

#include <algorithm>

namespace cuwarden::reachability {

namespace {

// A chunk may be one step larger than was asked for, where the rest would be no chunk.
constexpr std::uint64_t chunk_step = 16;
// Memory that the driver takes for a memory pool begins at a multiple of this.
constexpr std::uint64_t bytes_of_device_page = std::uint64_t{2} << 20;
// One of so many words may be of another class than in the records that were learned from. (Records
// of 800 bytes hold pointers to memory that is freed at times.)
constexpr std::size_t words_by_exception = 32;
// Lower numbers are no addresses: the kernel maps nothing there.
constexpr std::uint64_t lowest_address = 65'536;

// Returns the classes that the word of a like record may have.
std::uint8_t alike(WordClass present) {
  switch (present) {
    case word_is_zero:
      return word_is_zero | word_is_number | word_is_pointer;
    case word_is_number:
      return word_is_number | word_is_zero;
    case word_is_pointer:
      // Records at the ends of a list point to the list's head, a variable.
      return word_is_pointer | word_is_zero | word_is_drivers;
    case word_is_drivers:
    case word_is_code:
      break;
  }
  return present;
}

}  // namespace

WordClass DriverRecords::class_of(std::uint64_t word) const {
  if (word == 0) return word_is_zero;
  if (word < lowest_address || blocks_.contains(word)) return word_is_number;
  const Area* const area = area_at(areas_, word);
  if (area == nullptr || !area->is_readable || area->is_shared) return word_is_number;
  switch (area->use) {
    case AreaUse::device_or_kernel:
      return word_is_number;
    case AreaUse::driver_library:
      return word_is_drivers;
    case AreaUse::library:
    case AreaUse::own:
      return word_is_code;
    case AreaUse::heap:
    case AreaUse::stack:
    case AreaUse::anonymous:
      break;
  }
  return word_is_pointer;
}

void DriverRecords::learn(const Hit& hit) {
  const std::uint32_t block = hit.block->id;
  const std::uint8_t kind = hit.block->kind;
  if (hit.location != HitLocation::chunk) {
    if (hit.location == HitLocation::unknown) outside_chunks_.insert(hit.block->id);
    return;
  }
  learned_from_[kind].insert(block);
  tables_[hit.chunk].insert(block);
  if (hit.around.empty()) return;
  const auto [known, is_new] =
      numbers_.try_emplace(Key{hit.chunk_bytes, hit.index}, static_cast<FormNumber>(forms_.size()));
  if (is_new) {
    forms_.emplace_back();
    forms_.back().is_counted = hit.chunk_bytes <= largest_small_chunk;
  }
  Form& form = forms_[known->second];
  std::vector<std::uint8_t> contents;
  contents.reserve(hit.around.size());
  for (const std::uint64_t word : hit.around) contents.push_back(alike(class_of(word)));
  form.contents.insert(std::move(contents));
  std::uint32_t& words = form.words_by_block[block];
  if (words == 0) ++form.blocks[kind];
  form.most_learned[kind] = std::max(form.most_learned[kind], ++words);
}

bool DriverRecords::has_contents(const Form& form, const Hit& hit, std::size_t words) const {
  return std::ranges::any_of(form.contents, [&](const std::vector<std::uint8_t>& contents) {
    const std::size_t count = std::min({contents.size(), hit.around.size(), words});
    std::size_t others = 0;
    for (std::size_t i = 0; i < count; ++i)
      if ((class_of(hit.around[i]) & contents[i]) == 0) ++others;
    return others <= count / words_by_exception;
  });
}

bool DriverRecords::are_known() const {
  std::size_t in_chunks = 0;
  for (const std::set<std::uint32_t>& blocks : learned_from_) in_chunks += blocks.size();
  return in_chunks > outside_chunks_.size();
}

std::uint32_t DriverRecords::most_of(FormNumber form, std::uint8_t kind) const {
  return forms_[form].is_counted ? forms_[form].most_learned[kind] : any_number;
}

DriverRecords::FormNumber DriverRecords::form_of(const Hit& hit) const {
  const std::uint8_t kind = hit.block->kind;
  if (hit.location != HitLocation::chunk) return no_form;
  // A chunk that has words of two blocks which the driver alone knows is a table of the driver's.
  const auto table = tables_.find(hit.chunk);
  if (table != tables_.end() && table->second.size() > 1) return in_table;
  if (hit.around.empty()) return no_form;
  // A block of a memory pool may lie in two parts of the pool's memory, so that a record of another
  // kind points to where the second part begins.
  const bool is_other_page = hit.word != hit.block->start && hit.word % bytes_of_device_page == 0;
  const auto number_of = [&](std::uint64_t chunk_bytes) -> FormNumber {
    const auto known = numbers_.find({chunk_bytes, hit.index});
    if (known == numbers_.end()) return no_form;
    // A small record counts only if at least half of the learned blocks have one: otherwise it may
    // be a container of the program. Larger records always count: few blocks begin a memory pool or
    // a range of addresses.
    const Form& form = forms_[known->second];
    if (!is_other_page && (learned_from_[kind].empty() ||
                           (form.is_counted && form.blocks[kind] * 2 < learned_from_[kind].size())))
      return no_form;
    // The last words of the larger chunk are not the record's.
    const std::size_t words =
        hit.around.size() - (chunk_bytes == hit.chunk_bytes ? 0 : chunk_step / 8);
    return has_contents(form, hit, words) ? known->second : no_form;
  };
  FormNumber number = number_of(hit.chunk_bytes);
  if (number == no_form) number = number_of(hit.chunk_bytes - chunk_step);
  if (number == no_form) number = number_of(hit.chunk_bytes + chunk_step);
  return number;
}

}  // namespace cuwarden::reachability
