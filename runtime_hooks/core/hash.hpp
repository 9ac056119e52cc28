// Hashes for lookup tables whose keys come from the host program itself. They are fast and mix
// well, but are no defence against chosen keys. Values never leave the process except as opaque
// numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace cuwarden {

// Returns the upper half of the 128-bit product a * b, XORed with its lower half. Each bit of the
// factors may change each bit of the result.
constexpr std::uint64_t fold_product(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Arbitrary constants that the hash functions of this project mix into their input.
inline constexpr std::uint64_t hash_salt[4] = {0x9e3779b97f4a7c15, 0xd6e8feb86659fd93,
                                               0xa0761d6478bd642f, 0xe7037ed1a0b428db};

// Returns a hash of two numbers, which depends also on their order.
constexpr std::uint64_t hash_pair(std::uint64_t a, std::uint64_t b) noexcept {
  return fold_product(fold_product(a ^ hash_salt[0], hash_salt[1]) ^ b, hash_salt[2]);
}

// Returns a hash of a sequence of words, which depends also on their number and order. Two chains
// run side by side, so that their multiplications overlap: 30 words take about 20 ns.
constexpr std::uint64_t hash_words(std::span<const std::uint64_t> words) noexcept {
  std::uint64_t left = hash_salt[0] ^ words.size(), right = hash_salt[1];
  std::size_t i = 0;
  for (; i + 4 <= words.size(); i += 4) {
    left = fold_product(left ^ words[i], hash_salt[2] ^ words[i + 1]);
    right = fold_product(right ^ words[i + 2], hash_salt[3] ^ words[i + 3]);
    // A word that equals its salt makes the product 0, so the words are added as well.
    left += words[i + 1];
    right += words[i + 3];
  }
  for (; i < words.size(); ++i) left = hash_pair(left, words[i]);
  return hash_pair(left, right);
}

// Returns a hash of `hash` and of the bytes, which depends also on their number and order.
inline std::uint64_t hash_bytes(std::uint64_t hash, const void* data,
                                std::uint64_t bytes) noexcept {
  const auto* at = static_cast<const char*>(data);
  hash ^= bytes;
  std::uint64_t words[2];
  for (; bytes >= sizeof words; bytes -= sizeof words, at += sizeof words) {
    std::memcpy(words, at, sizeof words);
    hash += fold_product(hash ^ words[0], hash_salt[1] ^ words[1]);
  }
  words[0] = words[1] = 0;
  std::memcpy(words, at, bytes);
  return hash_pair(hash ^ words[0], words[1]);
}

}  // namespace cuwarden
