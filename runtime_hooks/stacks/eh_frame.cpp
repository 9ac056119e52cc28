// Finds the tables with libgcc's _Unwind_Find_FDE and reads them here. Their layout is that of the
// Linux Standard Base (Core, "Exception Frames").
#include "runtime_hooks/stacks/eh_frame.hpp"

#include <dlfcn.h>

#include <cstring>

#include "runtime_hooks/core/memory/readable.hpp"
#include "runtime_hooks/stacks/cfa_program.hpp"
#include "runtime_hooks/stacks/cursor.hpp"

namespace cuwarden::stacks {
namespace {

// libgcc's struct dwarf_eh_bases.
struct FoundFunction {
  void* text_base;
  void* data_base;
  void* begin;
};
extern "C" const void* _Unwind_Find_FDE(void* address, FoundFunction*);

// DW_EH_PE_*: how a pointer is encoded.
constexpr std::uint8_t omitted = 0xff, aligned = 0x50, format = 0x0f;

// A range of bytes, `end` not included.
struct Range {
  const std::uint8_t* begin = nullptr;
  const std::uint8_t* end = nullptr;
  bool contains(const std::uint8_t* at) const { return at >= begin && at < end; }
};

// Writes the address range of the module that contains `address`, from its first segment to its
// last. Returns false if no module does.
bool find_module(void* address, Range& module) {
  dl_find_object found;
  if (_dl_find_object(address, &found) != 0) return false;
  module = {static_cast<const std::uint8_t*>(found.dlfo_map_start),
            static_cast<const std::uint8_t*>(found.dlfo_map_end)};
  return true;
}

// Returns the content of the entry at `at`, without its length; an empty cursor if the entry does
// not lie within the range.
Cursor entry_at(const std::uint8_t* at, Range within) {
  // Marks DWARF's 64-bit format, which libgcc cannot read.
  constexpr std::uint32_t wide = 0xffffffff;
  if (!within.contains(at)) return {};
  Cursor header(at, within.end);
  const auto length = header.fixed<std::uint32_t>();
  if (!header.good() || length == wide || length > header.left()) return {};
  return {header.position(), header.position() + length};
}

// Skips a pointer in this encoding. Returns false if the encoding is unknown or the data end.
bool skip_pointer(Cursor& from, std::uint8_t encoding) {
  if (encoding == omitted) return true;
  if (encoding == aligned) return false;
  switch (encoding & format) {
    case 0x00:  // A pointer of 8 bytes.
    case 0x04:  // Eight bytes.
    case 0x08:
    case 0x0c:
      return from.skip(8);
    case 0x02:  // Two bytes.
    case 0x0a:
      return from.skip(2);
    case 0x03:  // Four bytes.
    case 0x0b:
      return from.skip(4);
    case 0x01:  // LEB128.
    case 0x09:
      from.unsigned_leb();
      return from.good();
    default:
      return false;
  }
}

// A common entry (CIE): what several functions' descriptions share.
struct Common {
  bool good = false;
  bool has_augmentation_data = false;
  bool signal_frame = false;
  std::uint8_t pointer_encoding = 0;
  std::uint64_t code_alignment = 1;
  std::int64_t data_alignment = 1;
  std::uint64_t return_address_column = 0;
  Cursor instructions;
};

// Reads the augmentation data, whose fields the letters announce. Reading stops at an unknown
// letter.
void read_augmentation(const char* letters, Cursor data, Common& common) {
  for (; *letters != '\0'; ++letters) {
    switch (*letters) {
      case 'R':
        common.pointer_encoding = data.byte();
        break;
      case 'P':
        if (!skip_pointer(data, data.byte())) common.good = false;
        break;
      case 'L':
        data.byte();
        break;
      case 'S':
        common.signal_frame = true;
        break;
      default:
        return;
    }
  }
  if (!data.good()) common.good = false;
}

// Reads the common entry at `at`; its `good` is false if it is malformed or unknown.
Common read_common(const std::uint8_t* at, Range within) {
  Common common;
  Cursor from = entry_at(at, within);
  // An id of 0 marks a common entry.
  if (from.fixed<std::uint32_t>() != 0 || !from.good()) return common;
  const std::uint8_t version = from.byte();
  const auto* const letters = reinterpret_cast<const char*>(from.position());
  while (from.byte() != 0) {
  }
  if (!from.good() || (version != 1 && version != 3 && version != 4)) return common;
  if (version == 4 && (from.byte() != sizeof(void*) || from.byte() != 0)) return common;
  common.code_alignment = from.unsigned_leb();
  common.data_alignment = from.signed_leb();
  common.return_address_column = version == 1 ? from.byte() : from.unsigned_leb();
  common.good = true;
  if (letters[0] == 'z') {
    common.has_augmentation_data = true;
    read_augmentation(letters + 1, from.block(), common);
  } else if (letters[0] != '\0') {
    common.good = false;  // GCC 2 wrote such entries.
  }
  common.instructions = from;
  common.good = common.good && from.good();
  return common;
}

// A function's entry (FDE).
struct Description {
  Common common;
  std::uint64_t bytes = 0;  // length of the code
  Cursor instructions;
  bool good = false;  // false if the entry is malformed or unknown
};

// Reads a number in the encoding; 0 if it has another size than four or eight bytes.
std::uint64_t read_length(Cursor& from, std::uint8_t encoding) {
  constexpr std::uint8_t absolute = 0x00, four_bytes = 0x03, eight_bytes = 0x04;
  Cursor copy = from;
  if (!skip_pointer(from, encoding)) return 0;
  if (encoding == four_bytes) return copy.fixed<std::uint32_t>();
  return encoding == absolute || encoding == eight_bytes ? copy.fixed<std::uint64_t>() : 0;
}

// Reads the function's entry at `at`. Its start is skipped: it is known from the search.
Description read_description(const std::uint8_t* at, Range within) {
  Description found;
  Cursor from = entry_at(at, within);
  const std::uint8_t* const pointer_at = from.position();
  const auto back = from.fixed<std::int32_t>();
  if (!from.good()) return found;
  found.common = read_common(pointer_at - back, within);
  const std::uint8_t size_only = found.common.pointer_encoding & 0x07;
  if (!found.common.good || found.common.pointer_encoding == aligned ||
      !skip_pointer(from, size_only))
    return found;
  found.bytes = read_length(from, size_only);
  if (found.common.has_augmentation_data) from.block();
  found.instructions = from;
  found.good = from.good();
  return found;
}

// Returns the rule at `address` in the code that the entry describes and that begins at `start`.
Rule rule_at(const Description& description, std::uint64_t address, std::uint64_t start) {
  if (!description.good) return Rule(Rule::Special::malformed);
  const Common& common = description.common;
  if (common.return_address_column != 16) return Rule(Rule::Special::not_expressible);
  CfaProgram program(address, start, common.code_alignment, common.data_alignment);
  program.run(common.instructions);
  program.run(description.instructions);
  return program.rule(common.signal_frame);
}

// True if the code at the address is "mov $SYS_rt_sigreturn, %rax; syscall". The kernel's signal
// frame begins there, if a libc does not describe it. libgcc looks for the same bytes.
bool is_sigreturn(std::uint64_t address) {
  static constexpr std::uint8_t code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  const auto* const at = reinterpret_cast<const std::uint8_t*>(address);
  return is_readable(at) && is_readable(at + sizeof code - 8) &&
         std::memcmp(at, code, sizeof code) == 0;
}

}  // namespace

Learned learn_rule(std::uint64_t address, bool interrupted) noexcept {
  void* const code = reinterpret_cast<void*>(address);
  Range module;
  if (!find_module(code, module)) return {Rule(Rule::Special::foreign_code), false};
  FoundFunction function{};
  if (const void* description = _Unwind_Find_FDE(code, &function))
    return {rule_at(read_description(static_cast<const std::uint8_t*>(description), module),
                    address, reinterpret_cast<std::uint64_t>(function.begin)),
            true};
  // A signal handler returns to these bytes; the address that is looked up lies one before them.
  if (interrupted) return {Rule(Rule::Special::no_description), false};
  return {is_sigreturn(address + 1) ? Rule(Rule::Special::signal_frame)
                                    : Rule(Rule::Special::no_description),
          true};
}

CodeRange described_code(std::uint64_t address) noexcept {
  void* const code = reinterpret_cast<void*>(address);
  Range module;
  FoundFunction function{};
  if (!find_module(code, module)) return {};
  const void* const at = _Unwind_Find_FDE(code, &function);
  if (at == nullptr) return {};
  const Description description = read_description(static_cast<const std::uint8_t*>(at), module);
  const auto start = reinterpret_cast<std::uint64_t>(function.begin);
  return description.good ? CodeRange{start, start + description.bytes} : CodeRange{};
}

}  // namespace cuwarden::stacks
