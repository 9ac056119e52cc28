// How to get from one frame to its caller's, in 30 bits. On x86-64 compilers describe nearly every
// call site in one of three ways: the frame's end (the canonical frame address, CFA) is at a
// distance from rsp, at a distance from rbp, or stored at a distance from rbp (GCC, where it has
// realigned the stack). The return address lies right below the CFA. Of the saved registers only
// rbp matters to a walk.
#pragma once

#include <cstdint>

namespace cuwarden::stacks {

// Bits 0-1 base, 2 whether rbp is saved, 3-11 where (words from the CFA, signed), 12-29 the CFA
// (words from the base). The CFA's distance comes last, so that a shift alone yields it.
class Rule {
 public:
  enum class Base : std::uint32_t { special, rsp, rbp, stored_at_rbp };
  enum class Special : std::uint32_t {
    none,             // no rule is known: what a zero word means
    end,              // the outermost frame
    signal_frame,     // the kernel's: rsp points to a ucontext
    plt,              // one or two words on the stack, by the place within the stub
    not_expressible,  // described in some other way
    no_description,   // a module's code without unwind tables: stacks end here
    foreign_code,     // code of no module: stacks end here
    malformed,        // tables that make no sense: stacks end here
  };
  static constexpr unsigned bits = 30;

  constexpr Rule() = default;
  constexpr explicit Rule(std::uint32_t word) noexcept : word_(word) {}
  constexpr explicit Rule(Special kind, std::uint32_t argument = 0) noexcept
      : word_(argument << 3 | static_cast<std::uint32_t>(kind) << cfa_shift) {}

  // Where the fields cannot hold it: not_expressible. Distances in bytes; one of rbp's own place is
  // from the CFA, or from rbp where the base is stored_at_rbp.
  static constexpr Rule framed(Base base, std::int64_t cfa, bool rbp_saved,
                               std::int64_t rbp_at) noexcept {
    const bool is_signed = base == Base::stored_at_rbp;
    const std::int64_t low = is_signed ? -(1 << 17) : 0;
    const std::int64_t high = is_signed ? 1 << 17 : 1 << 18;
    if (!rbp_saved) rbp_at = -8;  // the return address: readable, and not looked at
    if (cfa % 8 != 0 || cfa / 8 < low || cfa / 8 >= high || rbp_at % 8 != 0 || rbp_at / 8 < -256 ||
        rbp_at / 8 > 255)
      return Rule(Special::not_expressible);
    return Rule((static_cast<std::uint32_t>(cfa / 8) & 0x3ffff) << cfa_shift |
                (static_cast<std::uint32_t>(rbp_at / 8) & 0x1ff) << 3 |
                std::uint32_t{rbp_saved} << 2 | static_cast<std::uint32_t>(base));
  }

  constexpr std::uint32_t word() const noexcept { return word_; }
  constexpr explicit operator bool() const noexcept { return word_ != 0; }

  constexpr Base base() const noexcept { return static_cast<Base>(word_ & 3); }
  constexpr bool rbp_saved() const noexcept { return (word_ & 4) != 0; }
  // Bytes.
  constexpr std::int64_t rbp_at() const noexcept {
    return static_cast<std::int64_t>(static_cast<std::int32_t>(word_ << 20) >> 23) * 8;
  }
  constexpr std::uint64_t cfa() const noexcept { return std::uint64_t{word_ >> cfa_shift} * 8; }
  constexpr std::int64_t signed_cfa() const noexcept {
    return static_cast<std::int64_t>(static_cast<std::int32_t>(word_ << 2) >> 14) * 8;
  }

  constexpr Special special() const noexcept { return static_cast<Special>(word_ >> cfa_shift); }
  constexpr std::uint32_t argument() const noexcept { return word_ >> 3 & 0x1ff; }

 private:
  static constexpr unsigned cfa_shift = 12;
  std::uint32_t word_ = 0;
};

}  // namespace cuwarden::stacks
