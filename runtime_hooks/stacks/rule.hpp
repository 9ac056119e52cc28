// A rule says in 30 bits how to get from one frame to its caller's. On x86-64 compilers describe
// nearly every call site in one of three ways. The frame's end (the canonical frame address, CFA)
// is at a distance from rsp, at a distance from rbp, or stored at a distance from rbp (GCC, where
// it has realigned the stack). The return address lies right below the CFA. Of the saved registers
// only rbp matters to a walk.
#pragma once

#include <cstdint>

namespace cuwarden::stacks {

// Bits 0-1: base. Bit 2: set if rbp is saved. Bits 3-11: offset of the saved rbp (words from the
// CFA, signed). Bits 12-29: the CFA (words from the base). The CFA comes last, so that a single
// shift yields it.
class Rule {
 public:
  enum class Base : std::uint32_t { special, rsp, rbp, stored_at_rbp };
  // Rules for frames that have no CFA at a fixed distance.
  enum class Special : std::uint32_t {
    none,          // No rule is known; the meaning of a zero word.
    end,           // The frame is the outermost one.
    signal_frame,  // A signal frame of the kernel: rsp points to a ucontext.
    // A stub of a procedure linkage table: one or two words are on the stack, depending on the pc.
    plt,
    not_expressible,  // The frame is described in some way that a rule cannot express.
    no_description,   // Code of a module, without unwind tables: stacks end here.
    foreign_code,     // Code of no module: stacks end here.
    malformed,        // The tables make no sense: stacks end here.
  };
  static constexpr unsigned bits = 30;

  constexpr Rule() = default;
  constexpr explicit Rule(std::uint32_t word) noexcept : word_(word) {}
  constexpr explicit Rule(Special kind, std::uint32_t argument = 0) noexcept
      : word_(argument << 3 | static_cast<std::uint32_t>(kind) << cfa_shift) {}

  // Returns a rule for a frame with a CFA; not_expressible if the fields cannot hold it. `cfa` is
  // in bytes from the base. `rbp_at` is the saved rbp's offset in bytes from the CFA, or from rbp
  // where the base is stored_at_rbp.
  static constexpr Rule framed(Base base, std::int64_t cfa, bool rbp_saved,
                               std::int64_t rbp_at) noexcept {
    const bool is_signed = base == Base::stored_at_rbp;
    const std::int64_t low = is_signed ? -(1 << 17) : 0;
    const std::int64_t high = is_signed ? 1 << 17 : 1 << 18;
    if (!rbp_saved) rbp_at = -8;  // The return address, which can be read; the value is not used.
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
  // Offset of the saved rbp in bytes; see framed().
  constexpr std::int64_t rbp_at() const noexcept {
    return static_cast<std::int64_t>(static_cast<std::int32_t>(word_ << 20) >> 23) * 8;
  }
  // Distance of the CFA from rsp or rbp, in bytes.
  constexpr std::uint64_t cfa() const noexcept { return std::uint64_t{word_ >> cfa_shift} * 8; }
  // Distance from rbp of the word that holds the CFA, in bytes; only for stored_at_rbp.
  constexpr std::int64_t signed_cfa() const noexcept {
    return static_cast<std::int64_t>(static_cast<std::int32_t>(word_ << 2) >> 14) * 8;
  }

  // The kind of a special rule; only if base() is special.
  constexpr Special special() const noexcept { return static_cast<Special>(word_ >> cfa_shift); }
  // The argument of a special rule; for plt, the offset in the stub from which on two words are on
  // the stack.
  constexpr std::uint32_t argument() const noexcept { return word_ >> 3 & 0x1ff; }

 private:
  static constexpr unsigned cfa_shift = 12;
  std::uint32_t word_ = 0;
};

}  // namespace cuwarden::stacks
