// Plans which pages of addresses can share one page of memory: pages whose blocks take different
// steps.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime_hooks/pool/device_access.hpp"
#include "runtime_hooks/pool/packing/packing.hpp"

namespace cuwarden::pool {

// Every sixteenth step (of 512 bytes) of a page: 256 of 4096. Most pages that cannot share memory
// both take one of these steps. Comparing only these is faster than comparing all steps.
struct PageSamples {
  // A bit for every sixteenth step (of 512 bytes) of the page, set if a block takes the step. The
  // order of the bits is the same for all pages.
  std::array<std::uint64_t, 4> words{};

  // Compares every sixteenth step of two pages. True if blocks take one of these steps in both
  // pages: then the pages cannot share memory.
  bool meet(const PageSamples& other) const noexcept {
    return ((words[0] & other.words[0]) | (words[1] & other.words[1]) |
            (words[2] & other.words[2]) | (words[3] & other.words[3])) != 0;
  }
  // Marks all steps as taken that are taken in the page that `other` was made from.
  void take(const PageSamples& other) noexcept {
    for (std::size_t i = 0; i < words.size(); ++i) words[i] |= other.words[i];
  }
};

// The parts of one page (2 MiB) that blocks take: a bit for each step of 512 bytes.
class PageSteps {
 public:
  // Number of steps of 512 bytes that a page has.
  static constexpr std::uint32_t count = page_bytes / Packing::step_bytes;

  // Marks the steps (of 512 bytes) from number `first` up to, but not including, `end` as taken.
  void take(std::uint32_t first, std::uint32_t end) noexcept {
    for (std::uint32_t at = first; at < end;) {
      const std::uint32_t bits = std::min(64 - at % 64, end - at);
      words_[at / 64] |= (~std::uint64_t{0} >> (64 - bits)) << at % 64;
      at += bits;
    }
  }
  // Marks all steps (of 512 bytes) as taken that are taken in the page `other`.
  void take(const PageSteps& other) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  // True if a step is taken in both pages, at the same offset: then the pages cannot share memory.
  bool meets(const PageSteps& other) const noexcept {
    for (std::size_t i = 0; i < words_.size(); i += 4)
      if (((words_[i] & other.words_[i]) | (words_[i + 1] & other.words_[i + 1]) |
           (words_[i + 2] & other.words_[i + 2]) | (words_[i + 3] & other.words_[i + 3])) != 0)
        return true;
    return false;
  }
  // Returns a bit for each 32 KiB of the page, set if a block takes any of these bytes.
  std::uint64_t coarse() const noexcept {
    std::uint64_t bits = 0;
    for (const std::uint64_t word : words_) bits = bits >> 1 | std::uint64_t{word != 0} << 63;
    return bits;
  }
  // Returns for every sixteenth step of the page if a block takes it.
  PageSamples samples() const noexcept {
    PageSamples samples;
    for (const std::uint64_t word : words_)
      for (std::size_t i = 0; i < samples.words.size(); ++i)
        samples.words[i] = samples.words[i] >> 1 | word >> 16 * i << 63;
    return samples;
  }
  // Returns the number of the page's steps (of 512 bytes) that blocks take, from 0 to 4096.
  std::uint32_t taken() const noexcept {
    // std::popcount calls a function for each word, because not every processor has an instruction
    // for it. Each quarter of `sums` is the sum of one quarter of all words.
    std::uint64_t sums = 0;
    for (const std::uint64_t word : words_) {
      const std::uint64_t twos = word - (word >> 1 & 0x5555555555555555);
      const std::uint64_t fours = (twos & 0x3333333333333333) + (twos >> 2 & 0x3333333333333333);
      const std::uint64_t eights = (fours + (fours >> 4)) & 0x0f0f0f0f0f0f0f0f;
      sums += (eights & 0x00ff00ff00ff00ff) + (eights >> 8 & 0x00ff00ff00ff00ff);
    }
    return static_cast<std::uint32_t>(sums * 0x0001000100010001 >> 48);
  }

 private:
  std::array<std::uint64_t, count / 64> words_{};
};

// Most pages of an item of a plan.
inline constexpr std::uint32_t most_span = 4;

// Plans which pages of addresses are to share memory. An item is one page of addresses, or several
// neighbours that are to move together. A target is as many pages of memory. Assigns each item to a
// target, so that no two items of a target take the same step of 512 bytes. Makes the number of
// targets small, but not always the smallest.
//
// All functions may throw std::bad_alloc.
class MeshPlan {
 public:
  // `span`: number of pages of an item and of a target, from 1 to most_span.
  explicit MeshPlan(std::uint32_t span = 1) : span_(span) {}

  // Returns the number of targets that items were assigned to so far. Their numbers are 0 and up.
  std::uint32_t targets() const { return static_cast<std::uint32_t>(taken_.size()); }
  // Assigns items, those that take the most steps first. `pages`: the pages of all items, item by
  // item. Returns the number of each item's target, in the order of the items. Apart from sorting
  // the items, the time grows linearly with their number.
  std::vector<std::uint32_t> assign_all(std::span<const PageSteps> pages);
  // Assigns items in their order, with at most `most_new` targets that are new. `pages` and the
  // result are as those of assign_all(). The result is empty, and nothing is changed, if more new
  // targets were needed.
  std::vector<std::uint32_t> assign_few(std::span<const PageSteps> pages, std::uint32_t most_new);

 private:
  // An item that is to be assigned.
  class Item;
  // A target's number of taken steps, and its pages' steps, at an earlier moment.
  struct Earlier;

  // Returns the fullest of the latest targets that has room for the item by coarse bits alone;
  // otherwise one of them that has room by its steps; otherwise the number of targets.
  std::uint32_t find(const Item&) const;
  bool has_coarse_room(std::uint32_t target, const Item&) const;
  bool has_room(std::uint32_t target, const Item&) const;
  // Assigns the item to the target. Makes the target if there is none of this number.
  void take(std::uint32_t target, const Item&);
  // Makes the target what it was, or removes it if it is the last one and had no item.
  void restore(const Earlier&);

  const std::size_t span_;
  // For each page of each target: its steps, and coarse bits and samples of them.
  std::vector<PageSteps> steps_{};
  std::vector<std::uint64_t> coarse_{};
  std::vector<PageSamples> samples_{};
  // For each target, the number of its steps that are taken.
  std::vector<std::uint32_t> taken_{};
};

}  // namespace cuwarden::pool
