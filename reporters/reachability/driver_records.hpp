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
  // The word of memory is 0.
  word_is_zero = 1u << 0,
  // The word of memory is an address of device memory, or any number that no other class has.
  word_is_number = 1u << 1,
  // The word of memory points to a heap, a stack, or other memory that belongs to no file.
  word_is_pointer = 1u << 2,
  // The word of memory points to code or variables of the CUDA driver's libraries.
  word_is_drivers = 1u << 3,
  // The word of memory points to code or variables of another library or of the program.
  word_is_code = 1u << 4,
};

// The forms of the records that the driver keeps of blocks in one process. A form is the size of a
// record's chunk of malloc, the position of the block's address in it, and the classes of its other
// words.
class DriverRecords {
 public:
  // `areas`: all areas of the process's memory, sorted by address. `blocks`: all blocks of the
  // search, and the probes: blocks that the driver alone knows. Keeps references to both; they must
  // outlive the object.
  DriverRecords(const std::vector<Area>& areas, const BlockIndex& blocks)
      : areas_(areas), blocks_(blocks) {}

  // Learns the form of one of the driver's records. `hit`: a word that points to a probe: a block
  // that the driver alone knows. Throws std::bad_alloc.
  void learn(const Hit& hit);
  // True if the forms of the driver's records are known: words in chunks of malloc point to more
  // probes (blocks that the driver alone knows) than words in other memory. False if nothing was
  // learned, or if malloc is not glibc's, so that the bounds of records are not known.
  bool are_known() const;

  // Number of a form of the driver's records, from 0. Forms with the same size of chunk, and the
  // same index of the word with the block's address, share a number.
  using FormNumber = std::uint32_t;
  // no_form: the word is in no record of the driver. in_table: the word is in a table of the
  // driver, which has the addresses of several blocks.
  static constexpr FormNumber no_form = UINT32_MAX, in_table = UINT32_MAX - 1;
  // Result of most_of() if a block may have any number of words of the form.
  static constexpr std::uint32_t any_number = 0;
  // Returns the number of the form that the words around the hit have. Returns `no_form` if the
  // word is not the driver's, and `in_table` if it lies in a table of the driver.
  // A form counts only if records of the hit's kind of block were learned. A form of a small chunk
  // (of up to largest_small_chunk bytes) counts only if at least half of the probes of that kind
  // have such a record. Neither is needed if the word points to the beginning of a later 2 MiB page
  // of the block: such a record may be of another kind.
  FormNumber form_of(const Hit& hit) const;
  // Returns the largest number of words of the form that pointed to one probe (block that the
  // driver alone knows) of the kind. If more such words point to another block of the kind, some
  // are the program's. `any_number`: the form has no such limit.
  std::uint32_t most_of(FormNumber form, std::uint8_t kind) const;
  // Returns the number of forms; all form numbers are less than this.
  std::size_t forms() const { return forms_.size(); }

 private:
  // The learned records whose chunks have one size, and hold the block's address at one index.
  struct Form {
    // Contents of the learned records of this form. An element has a byte for each word of a
    // record: the set of the WordClass bits that the word may have.
    std::set<std::vector<std::uint8_t>> contents;
    // Block::id of a probe (block that the driver alone knows) → number of words in records of this
    // form that point to the probe.
    std::map<std::uint32_t, std::uint32_t> words_by_block;
    // True if the form's chunk is small (at most largest_small_chunk bytes). If a block has more
    // words of this form than most_of() returns, those beyond count as the program's.
    bool is_counted = false;
    // Number of the probes in words_by_block; the index is their Block::kind.
    std::array<std::uint32_t, most_kinds> blocks{};
    // Highest number of words in words_by_block; the index is the Block::kind of the probe. 0: no
    // probe of the kind.
    std::array<std::uint32_t, most_kinds> most_learned{};
  };
  // Hit::chunk_bytes and Hit::index: the size in bytes of a record's chunk of malloc, and the index
  // of the word with the block's address behind the chunk's header.
  using Key = std::pair<std::uint64_t, std::size_t>;

  // Returns the class of a word of memory, by its value.
  WordClass class_of(std::uint64_t word) const;
  // True if the first `words` words around the hit have the classes of one of the form's contents.
  // A few words of a large record may differ.
  bool has_contents(const Form& form, const Hit& hit, std::size_t words) const;

  // All areas of the process's memory, sorted by address; not owned.
  const std::vector<Area>& areas_;
  // All blocks, with the probes (blocks that the driver alone knows); not owned.
  const BlockIndex& blocks_;
  // Size of a chunk and index of the block's address in it → number of the form, its index in
  // forms_.
  std::map<Key, FormNumber> numbers_;
  std::vector<Form> forms_;
  // The probes (blocks that the driver alone knows) that learn() was given with words in chunks of
  // malloc. A set has the Block::id of the probes of one kind; the index is their Block::kind.
  std::array<std::set<std::uint32_t>, most_kinds> learned_from_;
  // Block::id of the probes (blocks that the driver alone knows) to which words in memory of
  // HitLocation::unknown point.
  std::set<std::uint32_t> outside_chunks_;
  // Address of a chunk's header → Block::id of the probes (blocks that the driver alone knows) to
  // which words of the chunk point. A chunk with several probes is a table of the driver.
  std::map<std::uint64_t, std::set<std::uint32_t>> tables_;
};

}  // namespace cuwarden::reachability
