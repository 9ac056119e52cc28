#include "reporters/reachability/pointer_search.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "reporters/reachability/driver_records.hpp"
#include "reporters/reachability/driver_variables.hpp"
#include "reporters/reachability/memory_pass.hpp"
#include "reporters/reachability/present_memory.hpp"

namespace cuwarden::reachability {

namespace {

// Blocks of memory pools begin at 12 GiB, so that other pairs of numbers look like addresses in
// them.
constexpr std::uint64_t end_of_low_addresses = std::uint64_t{1} << 40;
bool may_be_coincidence(const Hit& hit) {
  return hit.word < end_of_low_addresses && hit.word != hit.block->start &&
         hit.location != HitLocation::certain;
}
// True for an instruction of a GPU that lies in host memory. Its second word has bits that no
// address has. (Measured with driver 580: "0x30200780c 0xfe20003f05070".)
bool is_instruction(const Hit& hit) {
  return may_be_coincidence(hit) && hit.next >> 60 == 0 && (hit.next >> 48 & 0xf) == 0xf;
}

// Pointers that were found to an allocation, the weakest result first. `doubtful`: numbers that may
// be pointers into it by chance.
enum class Found : std::uint8_t { nothing, doubtful, inside, start };

// Keeps hits until the driver's records are known, with the words around them.
class KeptHits {
 public:
  // Keeps a hit. Returns false if there is no room for it.
  bool keep(const Hit& hit) {
    if (words_.capacity() == 0) words_.reserve(most_words);
    if (words_.size() + hit.around.size() > most_words || hits_.size() == most_hits) return false;
    Hit& kept = hits_.emplace_back(hit);
    const std::size_t first = words_.size();
    words_.insert(words_.end(), hit.around.begin(), hit.around.end());
    kept.around = std::span(words_).subspan(first);
    return true;
  }
  const std::vector<Hit>& hits() const { return hits_; }

 private:
  static constexpr std::size_t most_words = std::size_t{1} << 22;  // 32 MiB
  static constexpr std::size_t most_hits = std::size_t{1} << 18;   // 20 MiB
  std::vector<Hit> hits_;
  std::vector<std::uint64_t> words_;  // never moves: its capacity stays
};

class Search {
 public:
  Search(const PointerSearch& given, FunctionRef<bool()> may_go_on)
      : given_(given),
        may_go_on_(may_go_on),
        memory_(given.pid, may_go_on),
        outside_chunks_(given.allocations),
        found_(given.allocations) {
    for (const Block& probe : given.probes) has_probes_[probe.kind] = true;
  }

  FoundPointers run() {
    if (!memory_) return end(ReachSearch::pages_unknown);
    look_around();
    if (around_.areas.empty()) return end(ReachSearch::pages_unknown);
    // Numbers from `allocations` on stand for probes.
    std::vector<Block> blocks = given_.probes;
    for (Block& probe : blocks) probe.id += given_.allocations;
    blocks.insert(blocks.end(), given_.blocks.begin(), given_.blocks.end());
    const BlockIndex all(blocks);
    // The areas that tell pointers from numbers stay as they are now.
    std::vector<Area> areas = around_.areas;
    const Area* area = nullptr;
    for (const std::uint64_t address : given_.on_device) {
      // Most allocations lie in few areas.
      if (area != nullptr && address - area->range.start < area->range.bytes()) continue;
      area = area_at(areas, address);
      if (area != nullptr)
        areas[static_cast<std::size_t>(area - areas.data())].use = AreaUse::device_or_kernel;
    }
    DriverRecords records(areas, all);
    records_ = &records;
    const DriverVariables variables(memory_, areas);
    variables_ = &variables;
    if (!find_all(all, records)) return end(reason());
    if (!has_rested()) {
      // A pointer that a thread has moved meanwhile may have been missed.
      std::vector<Block> missed;
      for (const Block& block : given_.blocks)
        if (found_[block.id] != Found::start) missed.push_back(block);
      if (!find(missed)) return end(reason());
    }
    if (memory_.was_refused() || memory_.has_swapped_pages()) return end(reason());
    return end(!records.are_known() && needs_records_ ? ReachSearch::records_unknown
                                                      : ReachSearch::complete);
  }

 private:
  // Returns why some memory was not looked at.
  ReachSearch reason() const {
    return memory_.was_refused()         ? ReachSearch::pages_unknown
           : memory_.has_swapped_pages() ? ReachSearch::pages_swapped
                                         : ReachSearch::out_of_time;
  }
  // Reads which memory and which threads the process has now.
  void look_around() {
    around_.areas = memory_areas(
        given_.pid, [&](std::uint64_t start, auto words) { return memory_.read(start, words); });
    around_.managed = given_.managed;
    around_.threads = thread_states(given_.pid, threads_are_known_);
    if (given_.stack_pointer == 0) return;
    ThreadState own;
    own.stack_pointer = given_.stack_pointer;
    own.is_caller = true;
    around_.threads.push_back(own);
  }

  // True if no thread but the calling one has run since look_around().
  bool has_rested() {
    const std::vector<ThreadState> before = around_.threads;
    look_around();
    return threads_are_known_ && have_rested(before, around_.threads);
  }

  bool pass(const BlockIndex& blocks, FunctionRef<void(const Hit&)> visit) {
    words_of_records_.clear();  // in this pass, the words are counted anew
    MemoryPass pass(memory_, around_, blocks, visit, may_go_on_);
    if (given_.excluded != nullptr) around_.excluded = given_.excluded();
    const bool is_whole = pass.run();
    scanned_bytes_ += pass.scanned_bytes();
    ++passes_;
    return is_whole;
  }

  // Finds pointers to all blocks, and learns the driver's records, in one pass. The pass is
  // repeated if too many words may be the driver's.
  bool find_all(const BlockIndex& all, DriverRecords& records) {
    KeptHits kept;
    bool has_all = true;
    const bool is_whole = pass(all, [&](const Hit& hit) {
      if (hit.block->id >= given_.allocations) return records.learn(hit);
      if (!may_be_drivers(hit)) return note(hit);
      needs_records_ = true;
      if (!can_be_told(hit)) return note_doubt(hit);
      if (found_[hit.block->id] == Found::start || !has_all) return;
      // One such word is enough, because it has no form.
      if (hit.location == HitLocation::unknown) {
        std::uint8_t& seen = outside_chunks_[hit.block->id];
        const std::uint8_t kind = hit.word == hit.block->start ? 1 : 2;
        if ((seen & kind) != 0) return;
        seen |= kind;
      }
      has_all = kept.keep(hit);
    });
    if (!is_whole) return false;
    if (!has_all) return find(given_.blocks);
    std::size_t done = 0;
    for (const Hit& hit : kept.hits()) {
      if (++done % hits_between_looks == 0 && !may_go_on_()) return false;
      if (!is_drivers(hit)) note(hit);
    }
    return true;
  }

  bool find(const std::vector<Block>& blocks) {
    return pass(BlockIndex(blocks), [&](const Hit& hit) {
      if (!may_be_drivers(hit)) return note(hit);
      needs_records_ = true;
      if (!can_be_told(hit)) return note_doubt(hit);
      if (!is_drivers(hit)) note(hit);
    });
  }

  // Notes that a word may point to the block or be the driver's.
  void note_doubt(const Hit& hit) {
    Found& known = found_[hit.block->id];
    known = std::max(known, Found::doubtful);
  }

  void note(const Hit& hit) {
    if (is_instruction(hit)) return;
    const bool is_odd = may_be_coincidence(hit) && hit.word % sizeof hit.word != 0;
    const Found found = hit.word == hit.block->start ? Found::start
                        : is_odd                     ? Found::doubtful
                                                     : Found::inside;
    Found& known = found_[hit.block->id];
    known = std::max(known, found);
  }

  static bool may_be_drivers(const Hit& hit) {
    return hit.location != HitLocation::certain && hit.block->kind != no_records;
  }

  // False if the word may be the driver's or the program's, because the driver has given no probes
  // of the block's kind, from which its records could be learned.
  bool can_be_told(const Hit& hit) const { return has_probes_[hit.block->kind]; }

  // True if the word is one of the driver's own. A word of the form of the driver's records is not,
  // if the driver's records of a block have fewer such words than were found.
  bool is_drivers(const Hit& hit) {
    if (!records_->are_known())
      return true;  // the owner cannot be told, and the allocation will be unknown
    const DriverRecords::FormNumber form = records_->form_of(hit);
    // The driver also has pointers to small chunks that it has freed, and that the program uses
    // now.
    if (form == DriverRecords::no_form)
      return hit.chunk_bytes > largest_small_chunk && variables_->lead_to(hit.chunk);
    if (form == DriverRecords::in_table) return true;
    const std::uint32_t most = records_->most_of(form, hit.block->kind);
    if (most == DriverRecords::any_number) return true;
    const std::size_t wanted = std::size_t{given_.allocations} * records_->forms();
    if (wanted > most_counters) return true;
    words_of_records_.resize(wanted);
    std::uint8_t& words = words_of_records_[hit.block->id * records_->forms() + form];
    if (words < UINT8_MAX) ++words;
    return words <= most;
  }

  FoundPointers end(ReachSearch outcome) {
    FoundPointers result;
    result.outcome = outcome;
    result.scanned_bytes = scanned_bytes_;
    result.passes = passes_;
    result.reach.assign(given_.allocations, Reach::not_looked_for);
    const bool is_known = outcome == ReachSearch::complete;
    for (const Block& block : given_.blocks) {
      Reach& reach = result.reach[block.id];
      switch (found_[block.id]) {
        case Found::start:
          reach = Reach::reachable;
          break;
        case Found::doubtful:
          reach = Reach::unknown;
          break;
        case Found::inside:
          reach = is_known ? Reach::interior : Reach::unknown;
          break;
        case Found::nothing:
          reach = is_known ? Reach::lost : Reach::unknown;
          break;
      }
    }
    return result;
  }

  const PointerSearch& given_;
  const FunctionRef<bool()> may_go_on_;
  PresentMemory memory_;
  Surroundings around_;
  bool threads_are_known_ = false;  // true if `around_` has all threads
  // Hits that are judged between two looks at the time.
  static constexpr std::size_t hits_between_looks = 4096;
  // For each allocation, 1 if a word outside of chunks points to its start, and 2 for behind it.
  std::vector<std::uint8_t> outside_chunks_;
  bool needs_records_ = false;  // true if a word was found that may be the driver's
  const DriverRecords* records_ = nullptr;
  const DriverVariables* variables_ = nullptr;
  std::array<bool, most_kinds> has_probes_{};  // by Block::kind
  std::vector<Found> found_;                   // by index of the allocation
  // Number of words of each form that lead to an allocation, in this pass; by allocation and form.
  // (Vectors, since small blocks of the shim's heap are never given back to the system.)
  std::vector<std::uint8_t> words_of_records_;
  static constexpr std::size_t most_counters = std::size_t{1} << 26;
  std::uint64_t scanned_bytes_ = 0;
  int passes_ = 0;
};

}  // namespace

FoundPointers search_pointers(const PointerSearch& given, FunctionRef<bool()> may_go_on) {
  return Search(given, may_go_on).run();
}

}  // namespace cuwarden::reachability
