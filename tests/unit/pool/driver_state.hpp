// The state of a fake driver for tests of mapped memory: the memory that exists, its addresses and
// contents, and the faults that a test asks for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "tests/unit/pool/units.hpp"

namespace cuwarden::pool {

// Bytes of the memory that spilling leaves to the device.
inline constexpr std::uint64_t kept = 64 * MiB;

// Physical memory that the driver has made (cuMemCreate).
struct Handle {
  // Size of the memory.
  std::uint64_t bytes = 0;
  bool on_host = false;  // true for host memory, false for device memory
  // Number of handles that the program has for the memory, and of addresses at which it is mapped.
  int references = 1, mappings = 0;
  // Content of the memory: one number for each 512 bytes. Empty until the memory is used.
  std::vector<std::uint64_t> words;
};

// The driver's state, and the faults that a test asks for.
struct Driver {
  std::mutex lock;  // held by the functions of counting_driver.hpp while they use the rest
  // Free bytes of the device, and most bytes that one cuMemCreate makes on the device.
  std::uint64_t free_bytes = 100 * MiB, largest_handle = UINT64_MAX;
  // Most bytes of addresses that one cuMemAddressReserve reserves.
  std::uint64_t largest_reservation = UINT64_MAX;
  // Results of the next calls: the handle of cuMemCreate, and the address of cuMemAddressReserve.
  std::uint64_t next_handle = 1, next_address = std::uint64_t{1} << 40;
  // The physical memory that exists, by its handle.
  std::map<std::uint64_t, Handle> handles;
  std::map<std::uint64_t, std::uint64_t> reservations;  // bytes of each reservation, by its start
  // Memory that is mapped at an address.
  struct Mapping {
    std::uint64_t handle = 0;  // the mapped memory
    // Bit N is set if the device of ordinal N may use the address.
    std::uint64_t devices = 0;
  };
  std::map<std::uint64_t, Mapping> mappings;  // the mappings, by their addresses
  bool maps_host = true;                      // true if devices can map host memory
  // True if the device shares the host's memory (CU_DEVICE_ATTRIBUTE_INTEGRATED).
  bool is_integrated = false;
  // Number of calls of fails() that return false before one returns true; -1: none returns true for
  // this reason.
  int fail_after = -1;
  // Number of cuMemMap calls that succeed before all are refused; -1: none is refused.
  int maps_refused_after = -1;
  // Probability, from 0 to 1, with which fails() returns true.
  double fail_share = 0.0;
  std::mt19937 random{7};  // decides which calls fail by `fail_share`
  // Number of calls that a real driver would refuse, or that would be errors of the pool.
  int errors = 0;
  // Faults of the device. If memory is mapped at a second address: true if other contents are seen
  // there, and true if the mapping takes further memory.
  bool second_address_differs = false, second_address_takes_memory = false;
  // True if copies between device addresses store wrong contents.
  bool copies_are_wrong = false;
  // The fewest bytes that were free after a cuMemCreate.
  std::uint64_t least_free_bytes = UINT64_MAX;
  // Called once, without the lock, inside the next cuMemCreate or cuMemSetAccess; empty: nothing is
  // called.
  std::function<void()> in_create, in_set_access;
  // A copy between device addresses that was begun.
  struct Copy {
    // Addresses of destination and source, and number of bytes.
    std::uint64_t to = 0, from = 0, bytes = 0;
    // handles that were mapped there when the copy began
    std::uint64_t to_handle = 0, from_handle = 0;
  };
  // Copies that were begun, in any order. The next synchronisation does them.
  std::vector<Copy> under_way;
  // True if the copy kernel's module is loaded; true if its code is.
  bool has_module = false, is_code_loaded = false;
  // Number of launches that succeed before all others are refused; -1: none is refused.
  int launches_refused_after = -1;
  // Number of cuMemUnmap calls that succeed before one fails; -1: none fails.
  int unmaps_refused_after = -1;
  // Number of synchronisations that succeed before one returns an error, although its copies are
  // done; -1: none returns an error.
  int waits_refused_after = -1;
  // Numbers of calls since the test has set them to 0.
  struct Calls {
    int create = 0, map = 0, unmap = 0, set_access = 0, copy = 0, launch = 0, wait = 0;
  } calls;

  // Returns true if the present call is to fail, by `fail_after` or `fail_share`.
  bool fails() {
    if (fail_after >= 0 && fail_after-- == 0) return true;
    return fail_share > 0 && std::uniform_real_distribution<>(0, 1)(random) < fail_share;
  }
  // Returns the contents of the memory from an address to the end of its mapping: one number for
  // each 512 bytes. Counts an error, and returns one number without a meaning, if device 0 may not
  // use the address.
  std::span<std::uint64_t> words(std::uint64_t address) {
    static std::uint64_t nowhere = 0;
    const auto after = mappings.upper_bound(address);
    const auto found = after == mappings.begin() ? mappings.end() : std::prev(after);
    if (found == mappings.end() || (found->second.devices & 1) == 0 ||
        address - found->first >= handles.at(found->second.handle).bytes)
      return ++errors, nowhere = 0, std::span(&nowhere, 1);
    Handle& memory = handles.at(found->second.handle);
    if (memory.words.empty()) memory.words.resize((memory.bytes + 511) / 512);
    return std::span(memory.words).subspan((address - found->first) / 512);
  }
  // Calls use(word, offset) for each 512 bytes of the range, in order. `word`: the number that is
  // their content. `offset`: bytes from the start of the range.
  void each_word(std::uint64_t address, std::uint64_t bytes, const auto& use) {
    for (std::uint64_t at = 0; at < bytes;)
      for (std::uint64_t& word : words(address + at)) {
        use(word, at);
        at += 512;
        if (at >= bytes) break;
      }
  }
  // Returns the handle of the mapping that begins last at or before the address, which need not
  // reach up to the address; 0 if there is none.
  std::uint64_t handle_at(std::uint64_t address) const {
    const auto after = mappings.upper_bound(address);
    return after == mappings.begin() ? 0 : std::prev(after)->second.handle;
  }
  // True if memory is mapped at one of the addresses.
  bool is_mapped(std::uint64_t start, std::uint64_t bytes) const {
    const auto after = mappings.lower_bound(start + bytes);
    return after != mappings.begin() &&
           std::prev(after)->first + handles.at(std::prev(after)->second.handle).bytes > start;
  }
  // Begins a copy of `bytes` between device addresses. Counts an error unless all three are
  // multiples of 512.
  void start(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
    errors += to % 512 != 0 || from % 512 != 0 || bytes % 512 != 0 || bytes == 0;
    under_way.push_back({to, from, bytes, handle_at(to), handle_at(from)});
  }
  // True if the address lies in a mapping of a handle that is mapped at a lower address, too.
  bool is_second(std::uint64_t address) const {
    const auto found = std::prev(mappings.upper_bound(address));
    return std::any_of(mappings.begin(), found, [&](const auto& mapping) {
      return mapping.second.handle == found->second.handle;
    });
  }
  // Frees the memory of a handle if the program has released it and it is mapped nowhere.
  void drop(std::uint64_t id) {
    Handle& handle = handles.at(id);
    if (handle.references > 0 || handle.mappings > 0) return;
    if (!handle.on_host) free_bytes += handle.bytes;
    handles.erase(id);
  }
};
// The state of the fake driver, which each test makes anew.
inline std::unique_ptr<Driver> driver;

}  // namespace cuwarden::pool
