// A rule says in 30 bits how to get from one frame to its caller's. On x86-64 compilers describe
// nearly every call site in one of three ways. The frame's end (the canonical frame address, CFA)
// is at a distance from rsp, or at a distance from rbp. Or it is stored at a distance from rbp, by
// GCC where it has realigned the stack. The return address lies right below the CFA. Of the saved
// registers only rbp matters to a walk.
#pragma once

#include <cstdint>

namespace cuwarden::stacks {

// The way of a stack walk from one frame to its caller's, packed into 30 bits; or the reason why
// there is none. The canonical frame address (CFA) is the end of the frame; the return address lies
// right below it.
//
// Bits 0-1: the base from which the CFA is found. Bit 2: set if the frame has saved rbp. Bits 3-11:
// where it is saved, in words from the CFA (signed). Bits 12-29: the CFA, in words from the base;
// they come last, so that a single shift yields them.
class Rule {
 public:
  // The base from which a frame's canonical frame address (CFA) is found. `rsp`, `rbp`: the CFA is
  // that register plus a distance. `stored_at_rbp`: the CFA is the word stored at a distance from
  // rbp. `special`: there is no CFA. Rule::special() says how the caller's frame is found, or why
  // the walk ends.
  enum class Base : std::uint32_t { special, rsp, rbp, stored_at_rbp };
  // Kinds of frames whose canonical frame address (CFA) is not found at a fixed distance from a
  // register, and reasons for which a walk ends.
  enum class Special : std::uint32_t {
    // No rule is known. The word of the rule is 0.
    none,
    // The frame is the thread's outermost one.
    end,
    // The frame to which a signal handler returns: rsp points to the kernel's ucontext.
    signal_frame,
    // A stub of a procedure linkage table: one or two words are on the stack, depending on the
    // instruction.
    plt,
    // The unwind table describes the frame in a way that a rule cannot hold. Stacks end here.
    not_expressible,
    // The code belongs to a module without unwind tables for it. Stacks end here.
    no_description,
    // The code belongs to no module, as a JIT compiler's. Stacks end here.
    foreign_code,
    // The unwind table is invalid: its instructions contradict each other, are unknown or end in
    // the middle. Stacks end here.
    malformed,
  };
  // Number of bits that a rule's word (Rule::word()) takes; the bits above are 0.
  static constexpr unsigned bits = 30;

  constexpr Rule() = default;
  // Makes a rule from the result of word().
  constexpr explicit Rule(std::uint32_t word) noexcept : word_(word) {}
  // Makes a rule for a special frame. `argument` has a meaning only for `plt`, whose stub has 16
  // bytes: the offset (0 to 15) from which on two words are on the stack, instead of one.
  constexpr explicit Rule(Special kind, std::uint32_t argument = 0) noexcept
      : word_(argument << 3 | static_cast<std::uint32_t>(kind) << cfa_shift) {}

  // Returns a rule for a frame with a canonical frame address (CFA), which is found `cfa` bytes
  // from `base`. For stored_at_rbp, `cfa` is the distance from rbp to the word that holds the CFA.
  // If `rbp_saved`, the frame has saved its caller's rbp, `rbp_at` bytes from the CFA (from rbp for
  // stored_at_rbp). Returns a `not_expressible` rule if a distance does not fit or is no multiple
  // of 8.
  static constexpr Rule framed(Base base, std::int64_t cfa, bool rbp_saved,
                               std::int64_t rbp_at) noexcept {
    const bool is_signed = base == Base::stored_at_rbp;
    const std::int64_t low = is_signed ? -(1 << 17) : 0;
    const std::int64_t high = is_signed ? 1 << 17 : 1 << 18;
    if (!rbp_saved) rbp_at = -8;  // any slot that can be read will do; this is the return address
    if (cfa % 8 != 0 || cfa / 8 < low || cfa / 8 >= high || rbp_at % 8 != 0 || rbp_at / 8 < -256 ||
        rbp_at / 8 > 255)
      return Rule(Special::not_expressible);
    return Rule((static_cast<std::uint32_t>(cfa / 8) & 0x3ffff) << cfa_shift |
                (static_cast<std::uint32_t>(rbp_at / 8) & 0x1ff) << 3 |
                std::uint32_t{rbp_saved} << 2 | static_cast<std::uint32_t>(base));
  }

  // Returns the rule's bits, of which the lower 30 are used; 0 if no rule is known.
  constexpr std::uint32_t word() const noexcept { return word_; }
  // True if this is a rule, special ones included; false if no rule is known.
  constexpr explicit operator bool() const noexcept { return word_ != 0; }

  // Returns the base from which the canonical frame address (CFA) is found. The result `special`
  // means that there is none. The function special() then says how the caller's frame is found, or
  // why the walk ends.
  constexpr Base base() const noexcept { return static_cast<Base>(word_ & 3); }
  // True if the frame that this rule leaves has saved its caller's rbp. False: rbp is unchanged in
  // the caller. Means nothing if base() is `special`.
  constexpr bool rbp_saved() const noexcept { return (word_ & 4) != 0; }
  // Returns where the frame has saved rbp: bytes from the canonical frame address (CFA), or from
  // rbp if the base is stored_at_rbp. If rbp is not saved, returns -8, the offset of the return
  // address.
  constexpr std::int64_t rbp_at() const noexcept {
    return static_cast<std::int64_t>(static_cast<std::int32_t>(word_ << 20) >> 23) * 8;
  }
  // Returns how many bytes the canonical frame address (CFA) lies above the register that base()
  // names. Meaningless unless that register is rsp or rbp.
  constexpr std::uint64_t cfa() const noexcept { return std::uint64_t{word_ >> cfa_shift} * 8; }
  // Returns the distance in bytes from rbp to the word that holds the canonical frame address
  // (CFA). Means nothing unless base() is `stored_at_rbp`.
  constexpr std::int64_t signed_cfa() const noexcept {
    return static_cast<std::int64_t>(static_cast<std::int32_t>(word_ << 2) >> 14) * 8;
  }

  // Returns the kind of a special frame. Means nothing unless base() is `special`.
  constexpr Special special() const noexcept { return static_cast<Special>(word_ >> cfa_shift); }
  // Returns the offset in a 16-byte stub from which on two words are on the stack, instead of one.
  // Means nothing unless special() is `plt`.
  constexpr std::uint32_t argument() const noexcept { return word_ >> 3 & 0x1ff; }

 private:
  // Number of bits in a rule's word below those of the canonical frame address (CFA).
  static constexpr unsigned cfa_shift = 12;
  std::uint32_t word_ = 0;  // the value of word()
};

}  // namespace cuwarden::stacks
