// Recognises the records that the CUDA driver keeps of each block in the process's own memory.
// These records hold the block's address, too, but do not show that the program uses the block.
//
// The form of the records depends on the driver's version, and is not documented. So it is learned
// from probes: blocks that the driver alone knows. (Measured on an H200 with driver 580: a block of
// cudaMalloc has 6 to 23 such words, all in chunks of malloc. Records of a kind agree in the
// chunk's size and in the classes of their other words: zeros, numbers, pointers to the heap, or
// pointers into the driver's library. They differ in each other respect.)
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

// Largest size, in bytes, of a chunk of malloc that counts as small: it has too few words to be
// told from a chunk of the program for certain.
inline constexpr std::uint64_t largest_small_chunk = 0x60;

// The class of a word of memory, by its value. The enumerators are bits, so that a byte holds a set
// of classes.
enum WordClass : std::uint8_t {
  // The word is 0.
  word_is_zero = 1u << 0,
  word_is_number = 1u << 1,  // a number, an address of device memory, or anything else
  // A pointer to a heap, a stack, or other memory that belongs to no file.
  word_is_pointer = 1u << 2,
  word_is_drivers = 1u << 3,  // a pointer to the driver's code or variables
  word_is_code = 1u << 4,     // a pointer to another library's code or variables
};

// The forms of the records that the driver keeps of blocks in one process. A form is the size of a
// record's chunk of malloc, the position of the block's address in it, and the classes of its other
// words.
class DriverRecords {
 public:
  // `areas`: all areas of the process's memory, sorted by address. `blocks`: all blocks, those
  // included from which records are learned. Keeps references to both; they must outlive the
  // object.
  DriverRecords(const std::vector<Area>& areas, const BlockIndex& blocks)
      : areas_(areas), blocks_(blocks) {}

  // Learns the form of one of the driver's records. `hit`: a word that points to a probe: a block
  // that the driver alone knows. Throws std::bad_alloc.
  void learn(const Hit& hit);
  // True if the forms of the driver's records are known: more probes have words in chunks of malloc
  // than in other memory. False if nothing was learned, or if malloc is not glibc's, so that the
  // bounds of records are not known.
  bool are_known() const;

  // Number of a form, from 0. Forms with the same size and the same position of the block's address
  // share a number.
  using FormNumber = std::uint32_t;
  // no_form: the word is in no record of the driver. in_table: the word is in a table of the
  // driver, which has the addresses of several blocks.
  static constexpr FormNumber no_form = UINT32_MAX, in_table = UINT32_MAX - 1;
  // Result of most_of() if the number is not limited.
  static constexpr std::uint32_t any_number = 0;
  // Returns the number of the form that the words around the hit have. Returns `no_form` if the
  // word is not the driver's, and `in_table` if it lies in a table of the driver.
  // A form counts only if records of the hit's kind of block were learned. A form of a small chunk
  // (of up to largest_small_chunk bytes) counts only if at least half of the probes of that kind
  // have such a record. Neither is needed if the word points to the beginning of a later 2 MiB page
  // of the block: such a record may be of another kind.
  FormNumber form_of(const Hit& hit) const;
  // Returns the largest number of words of a form that led to one probe of the kind; `any_number`
  // if the number is not limited. A block of this kind with more such words has words of the
  // program among them.
  std::uint32_t most_of(FormNumber form, std::uint8_t kind) const;
  // Returns the number of forms; all form numbers are less than this.
  std::size_t forms() const { return forms_.size(); }

 private:
  // The records of one size that have the block's address at one position.
  struct Form {
    // Contents of records that were learned: for each word, a set of the WordClass that it may
    // have.
    std::set<std::vector<std::uint8_t>> contents;
    // For each probe, by its id, the number of its words in records of this form.
    std::map<std::uint32_t, std::uint32_t> words_by_block;
    // True if most_of() limits the number of words, as it does for small chunks.
    bool is_counted = false;
    // Number of probes in words_by_block, by kind.
    std::array<std::uint32_t, most_kinds> blocks{};
    // Highest number in words_by_block of a probe, by the kind of the probe.
    std::array<std::uint32_t, most_kinds> most_learned{};
  };
  // Size of a chunk in bytes, and the index in it of the word with the block's address.
  using Key = std::pair<std::uint64_t, std::size_t>;

  // Returns the class of a word.
  WordClass class_of(std::uint64_t word) const;
  // True if the first `words` words around the hit have the classes of one of the form's contents.
  // A few words of a large record may differ.
  bool has_contents(const Form& form, const Hit& hit, std::size_t words) const;

  // All areas of the process's memory, sorted by address; not owned.
  const std::vector<Area>& areas_;
  // All blocks, with the probes (blocks that the driver alone knows); not owned.
  const BlockIndex& blocks_;
  // Size of a chunk and position of the address in it → number of the form.
  std::map<Key, FormNumber> numbers_;
  std::vector<Form> forms_;
  // For each kind, the ids of the probes from which records were learned.
  std::array<std::set<std::uint32_t>, most_kinds> learned_from_;
  // Ids of the probes to which words of unknown memory outside of chunks point.
  std::set<std::uint32_t> outside_chunks_;
  // For each chunk, by its address, that has words which point to probes: the ids of these probes.
  std::map<std::uint64_t, std::set<std::uint32_t>> tables_;
};

}  // namespace cuwarden::reachability
