// Makes the fingerprint of a group of allocations: a name that stays the same from build to build,
// so that two reports can be compared.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "reporters/owners/named_frame.hpp"
#include "runtime_hooks/core/hash.hpp"

namespace cuwarden {

// Makes the fingerprints of many groups of allocations. The line for a frame is made once, and kept
// for other groups.
class Fingerprints {
 public:
  // Returns the text of which the fingerprint of a group of allocations is a hash. Its first line
  // is the kind of memory, a space and the CUDA function. Then come lines for frames of the call
  // stack, innermost first: "libcache.so Cache::insert". A line feed separates lines.
  //
  // Frames of CUDA, of the system's libraries, of libffi and of Python's interpreter have no line,
  // nor has `_start`, unless there are no others. A line has no offset, line number, folder,
  // version of a file, template argument or parameter. A frame without a known function gives the
  // module alone. Consecutive equal lines are one, so that the depth of a recursion has no effect.
  //
  // `kind`: kind of memory, such as "device". `api`: CUDA function that the program called; empty:
  // unknown. `frames`: the call stack, innermost first. The object keeps the addresses of the
  // frames' texts, which must live as long as the object.
  std::string identity(std::string_view kind, std::string_view api,
                       std::span<const NamedFrame> frames);
  // Returns the fingerprint of a group of allocations: the 64-bit FNV-1a hash of the text that
  // identity() returns for the same parameters, as 16 hexadecimal digits.
  std::string of(std::string_view kind, std::string_view api, std::span<const NamedFrame> frames);

 private:
  // Returns the line for a frame, module and function; empty if neither is known.
  const std::string& line(const NamedFrame&);

  // Addresses of the texts of a frame's function and file, by which the frame is found again.
  using Key = std::pair<const char*, const char*>;
  // Hashes a Key.
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return hash_pair(reinterpret_cast<std::uintptr_t>(key.first),
                       reinterpret_cast<std::uintptr_t>(key.second));
    }
  };
  std::unordered_map<Key, std::string, KeyHash> lines_;  // results of line() so far
};

}  // namespace cuwarden
