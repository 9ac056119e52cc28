// Names a group of allocations in a way that stays the same from build to build, so that two
// reports can be compared.
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

// Makes the fingerprints of many groups. Names of frames that occur again are made up once.
class Fingerprints {
 public:
  // Returns the text of which the fingerprint is a hash: a line for the kind of memory and the CUDA
  // function, and one for each frame that counts, innermost first: "libcache.so Cache::insert".
  // Offsets, lines, folders, versions of files, template arguments and parameters are left out, as
  // are the frames of CUDA, of the system's libraries and of Python's interpreter. Consecutive
  // equal lines are one, so that the depth of a recursion does not count. A frame without a known
  // function gives the module alone.
  //
  // `kind`: kind of memory, such as "device". `api`: CUDA function that the program called; empty:
  // unknown. `frames`: the call stack, innermost first; the texts of the frames must live as long
  // as this object.
  std::string identity(std::string_view kind, std::string_view api,
                       std::span<const NamedFrame> frames);
  // Returns the fingerprint: the 64-bit FNV-1a hash of the text that identity() returns for the
  // same parameters, as 16 hexadecimal digits.
  std::string of(std::string_view kind, std::string_view api, std::span<const NamedFrame> frames);

 private:
  // Returns the line for a frame; empty if neither its module nor its function is known.
  const std::string& line(const NamedFrame&);

  // Addresses of the texts of a frame's function and file.
  using Key = std::pair<const char*, const char*>;
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return hash_pair(reinterpret_cast<std::uintptr_t>(key.first),
                       reinterpret_cast<std::uintptr_t>(key.second));
    }
  };
  std::unordered_map<Key, std::string, KeyHash> lines_;  // the line of each frame that was met
};

}  // namespace cuwarden
