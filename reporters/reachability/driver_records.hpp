// Recognises the records that the CUDA driver keeps of each block in the process's own memory. They
// hold the block's address, too, and are no use of the block by the program.
//
// The records' form depends on the driver's version, and is not documented. So it is learned from
// blocks that nothing but the driver knows. (Measured on an H200 with driver 580: a block of
// cudaMalloc has 6 to 23 such words, all in chunks of malloc. Records of a kind agree in the
// chunk's size and in what their other words are: zeros, numbers, pointers to the heap, or pointers
// into the driver's library. They differ in each other respect.)
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "reporters/reachability/block_index.hpp"
#include "reporters/reachability/hit.hpp"
#include "reporters/reachability/memory_areas.hpp"

namespace cuwarden::reachability {

// Largest chunk, in bytes, that has too few words to be told from a chunk of the program for
// certain.
inline constexpr std::uint64_t largest_small_chunk = 0x60;

// Tells by a word's value what the word may be. The enumerators are bits of a set.
enum WordClass : std::uint8_t {
  word_is_zero = 1u << 0,
  word_is_number = 1u << 1,   // a number, an address of device memory, or anything else
  word_is_pointer = 1u << 2,  // a pointer into the process's memory, but not to a file
  word_is_drivers = 1u << 3,  // a pointer to the driver's code or variables
  word_is_code = 1u << 4,     // a pointer to another library's code or variables
};

// The forms of the driver's records of a block, in one process.
class DriverRecords {
 public:
  // `areas` and `blocks` outlive the object. `blocks`: all blocks that pointers may lead to, those
  // that are learned from included.
  DriverRecords(const std::vector<Area>& areas, const BlockIndex& blocks)
      : areas_(areas), blocks_(blocks) {}

  // Learns that the driver keeps a record of the form of the hit, which points to a block that the
  // driver alone knows. Throws std::bad_alloc.
  void learn(const Hit& hit);
  // True if the forms of most records are known. False if nothing was learned, or if records lie
  // outside of chunks: malloc is not glibc's then, and the records' bounds are not known.
  bool are_known() const;

  // The number of a form, or of several that are alike in size and in the offset of the address.
  using FormNumber = std::uint32_t;
  static constexpr FormNumber no_form = UINT32_MAX, in_table = UINT32_MAX - 1;
  static constexpr std::uint32_t any_number = 0;
  // Returns the number of the form that the hit's surroundings have, or `no_form`: the word is not
  // the driver's. A record in a chunk of up to `largest_small_chunk` bytes counts only if at least
  // half of the learned blocks of the hit's kind have such a record. It also counts if the word
  // points to another page of the block. Returns `in_table` if the word lies in a table of the
  // driver's.
  FormNumber form_of(const Hit& hit) const;
  // Returns how many words of a form with a number lead to one block of the kind at most;
  // `any_number` if that is not bounded.
  std::uint32_t most_of(FormNumber form, std::uint8_t kind) const;
  // Returns the number of forms; the numbers of forms are below it.
  std::size_t forms() const { return forms_.size(); }

 private:
  // Records of one size, with the block's address at one offset.
  struct Form {
    std::set<std::vector<std::uint8_t>> contents;           // for each word, a set of WordClass
    std::map<std::uint32_t, std::uint32_t> words_by_block;  // number of learned words, by block
    bool is_counted = false;  // true if most_of() bounds the number of words
    // Number of blocks in words_by_block, by kind.
    std::array<std::uint32_t, most_kinds> blocks{};
    std::array<std::uint32_t, most_kinds> most_learned{};  // highest of these numbers, by kind
  };
  // Size of the chunk in bytes, and the index of the word in it.
  using Key = std::pair<std::uint64_t, std::size_t>;

  WordClass class_of(std::uint64_t word) const;
  // True if the words around the hit are of the classes of one of the form's contents.
  bool has_contents(const Form& form, const Hit& hit, std::size_t words) const;

  const std::vector<Area>& areas_;
  const BlockIndex& blocks_;
  std::map<Key, FormNumber> numbers_;
  std::vector<Form> forms_;
  // For each kind, the blocks from which records were learned.
  std::array<std::set<std::uint32_t>, most_kinds> learned_from_;
  // The blocks to which words outside of chunks point, and from which nothing was learned.
  std::set<std::uint32_t> outside_chunks_;
  // For each chunk from which was learned: the blocks to which its words point.
  std::map<std::uint64_t, std::set<std::uint32_t>> tables_;
};

}  // namespace cuwarden::reachability
