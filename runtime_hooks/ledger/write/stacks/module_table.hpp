// The ledger's modules table: loaded objects (the program and shared libraries) that occur in call
// stacks. An object's base, range, build id and path are copied when a stack with a frame in the
// object is stored, because the object may be unloaded later.
//
// A file that is loaded again, at another address or from a copy, is recognised. It gets another
// row only when a new stack through it is stored: a plugin may be loaded and unloaded any number of
// times.
//
// dl_iterate_phdr calls back with the loader's lock held. So this table's lock is always taken
// after the loader's, and no foreign function is called while it is held.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime_hooks/core/futex_lock.hpp"
#include "runtime_hooks/core/memory/mapping.hpp"
#include "runtime_hooks/ledger/storage/storage.hpp"

struct dl_phdr_info;

namespace cuwarden::ledger {

struct ModuleDescription;

// Finds the modules of stack frames and keeps their rows. A module is a loaded object: the program
// or a shared library. The module epoch is a number that grows when a module is unloaded; an
// address means one line of code only within an epoch. All threads may call the functions at any
// time. If the table's lock cannot be had (LedgerLocked), a function does nothing, and returns
// false or 0.
class ModuleTable {
 public:
  // `storage`: the memory of the ledger that gets the rows; must outlive the object.
  explicit ModuleTable(Storage& storage) noexcept : storage_(storage) {}
  // Maps memory for the table. Must be called before other functions. `program`: path of the
  // executable, which the loader does not tell; empty: unknown. Returns false if there is no
  // memory.
  bool create(StringRef program) noexcept;

  // Asks the loader for the modules of these frames, unless the table knows them already. Must be
  // called before other functions of the class are called with these frames. If the unknown frames
  // were in no module when cover() last asked (code of a JIT compiler), asks only if a module was
  // loaded since.
  void cover(std::span<const Frame> frames) noexcept;
  // Makes rows in the ledger for the modules of these frames that have none. If there is no room
  // for a row, adds reason_names_missing to the ledger. Must be called after cover(), and before a
  // stack of these frames is stored.
  void store_rows(std::span<const Frame> frames) noexcept;

  // Returns a hash of the frames' files and of the frames' offsets in these files. The hash is
  // equal for stacks that differ only in the addresses at which files were loaded. A frame in no
  // module counts with its address.
  std::uint64_t hash_of_locations(std::span<const Frame> frames) noexcept;
  // Returns true if each frame has the file, and the offset in the file, of the frame with its
  // index in `stored`. `frames`: addresses that are valid at present. `stored`: an array of equal
  // length, with addresses that were valid in the module epoch `epoch` (Header::module_epoch).
  bool are_same_locations(std::span<const Frame> frames, const Frame* stored,
                          std::uint64_t epoch) noexcept;

  // The addresses [start, end) of a loaded or unloaded module.
  struct Gone {
    std::uint64_t start, end;  // the module's addresses; `end` is exclusive
  };
  // Asks the loader which known modules (loaded objects) were unloaded, and forgets them. For each
  // of them, raises Header::module_epoch by 1, and stores the new value as Module::unloaded_epoch
  // in the module's row, if it has one. Then calls gone(range) without holding a lock; `range` is a
  // Gone with the module's addresses.
  template <class Callback>
  void remove_gone(const Callback& gone) noexcept {
    const std::uint64_t generation = mark_present();
    Gone range{};
    while (take_unmarked(generation, range)) gone(range);
  }

  // Returns the path of the file that was mapped at the address `frame` in the module epoch
  // `epoch`; empty if unknown. `epoch`: a value of Header::module_epoch, the number of modules that
  // were unloaded so far. The text is in the ledger.
  std::string_view path_at(Frame frame, std::uint64_t epoch) const noexcept;

 private:
  // A module that was loaded when the table last asked the loader.
  struct Known {
    std::uint64_t start, end;  // the module's addresses [start, end)
    std::uint64_t base;        // load base: address - base = address as in the file's tables
    std::uint64_t identity;    // hash of base, build id and path: ModuleDescription::identity()
    // Number of the last scan by mark_present() that found the module loaded. If none has yet,
    // number of the last scan before the module was added.
    std::uint64_t generation;
    std::uint32_t row;   // the module's row in the modules table; 0: it has none yet
    std::uint32_t file;  // row of the first module that was loaded from this module's file
  };
  // Facts about a row of the modules table that are kept in this process only, not in the ledger.
  struct RowOfFile {
    // Hash of the file (ModuleDescription::file()), if this row is the file's first row; otherwise
    // 0.
    std::uint64_t file_hash;
    // Next row with a module from the same file; 0: there is none.
    std::uint32_t next;
  };

  // Returns the array of the known modules, sorted by address.
  Known* known() const noexcept { return static_cast<Known*>(known_.data()); }
  // Returns the known module that contains the address; null if there is none. The caller holds
  // lock_.
  Known* find(std::uint64_t address) const noexcept;
  // Returns the index in known() of the lowest module that ends above the address `start`;
  // known_count_ if there is none. The caller holds lock_.
  std::size_t lower_bound(std::uint64_t start) const noexcept;
  // Result of coverage(), which tells if known_ has the modules of all frames of a stack.
  // `complete`: known_ has them, or the table's lock cannot be had. `missing`: a frame is in a
  // loaded module that known_ lacks. `generated_code`: the frames that known_ lacks were in no
  // module at the last scan by cover().
  enum class Coverage { complete, generated_code, missing };
  // Tells if known_ has the modules of all these frames. Takes lock_.
  Coverage coverage(std::span<const Frame> frames) noexcept;
  // Adds the module's range of addresses to loaded_. `first`: true for a scan's first module;
  // loaded_ is then emptied first.
  void note_loaded(const ModuleDescription&, bool first) noexcept;
  // Adds a loaded module to known_, and a row to the ledger if no row has its file. Adds nothing if
  // known_ has a module at these addresses, or if there is no room in known_ or the ledger. Also
  // adds nothing if the table's lock cannot be had. Takes lock_. `file_hash`: hash of the file,
  // from ModuleDescription::file().
  void add(const ModuleDescription&, std::uint64_t file_hash) noexcept;
  // Makes the ledger's row for a module of known_. Does nothing if the module has a row already, or
  // is not in known_, or if the table's lock cannot be had. Takes lock_.
  void store_row_of(const ModuleDescription&) noexcept;
  // Adds a row for a module to the ledger and returns the row's number; 0 if there is no room
  // (reason_names_missing). `path`: path of the module's file; empty for the program. A file that
  // was loaded several times may have several rows. `file`: number of the file's first row; 0 if
  // the new row is the first. The caller holds lock_.
  std::uint32_t store(const ModuleDescription&, std::string_view path, std::uint32_t file) noexcept;
  // Returns the first row of the module's file; 0 if the file has no row. `file_hash`:
  // ModuleDescription::file(). The caller holds lock_.
  std::uint32_t find_file(const ModuleDescription&, std::uint64_t file_hash) const noexcept;
  // Returns true if a frame is in a module of known_ that has no row in the ledger. Returns false
  // if there is none, or if the table's lock cannot be had. Takes lock_.
  bool lack_rows(std::span<const Frame> frames) noexcept;
  // Returns true if the code at `offset` from the file's load base had the address `Frame` in the
  // module epoch `epoch`. `epoch`: a value of Header::module_epoch, the number of modules that were
  // unloaded so far. `file`: first row of the file in the modules table. The caller holds lock_.
  bool was_at(std::uint32_t file, std::uint64_t offset, Frame, std::uint64_t epoch) const noexcept;
  // Returns the facts about this row of the modules table that are not in the ledger.
  RowOfFile& row_of_file(std::uint32_t row) const noexcept {
    return static_cast<RowOfFile*>(rows_of_files_.data())[row];
  }
  // Calls visit(file, offset) for each frame until it returns false. `file`: first row of the
  // frame's file in the modules table, and `offset` counts from the file's load base. 0: the frame
  // is in no module, and `offset` is its address. The caller holds lock_.
  template <class Visit>
  void each_location(std::span<const Frame> frames, const Visit& visit) const noexcept;
  // Gives all modules of known_ that are loaded at present a new generation (number of a scan of
  // the loaded modules). Returns the generation; 0 if the table's lock cannot be had.
  std::uint64_t mark_present() noexcept;
  // Removes one unloaded module from known_: one that the scan with the number `generation`, by
  // mark_present(), has not found. Raises Header::module_epoch by 1, stores the new value as
  // Module::unloaded_epoch in the module's row, if it has one, and sets `Gone` to the module's
  // addresses. Returns false if there is no such module, or if the table's lock cannot be had.
  bool take_unmarked(std::uint64_t generation, Gone&) noexcept;

  Storage& storage_;   // the memory of the ledger, with its tables
  StringRef program_;  // path of the executable; empty: unknown
  Mapping known_;      // array of Known (loaded modules), sorted by start; they do not overlap
  // Number of modules in known_, and most modules that it can hold.
  std::size_t known_count_ = 0, known_capacity_ = 0;
  Mapping rows_of_files_;  // array of RowOfFile, by row of the modules table
  // Number of the last scan for unloaded modules, by mark_present(); 1: there was none yet.
  std::uint64_t generation_ = 1;
  // Array of Gone: address ranges of all modules that were loaded at the last scan by cover(). An
  // address outside of them belongs to generated code.
  Mapping loaded_;
  std::size_t loaded_count_ = 0;  // number of ranges in loaded_
  // Number of modules that the loader had ever loaded (dlpi_adds) at the last scan by cover().
  std::atomic<std::uint64_t> scanned_adds_{0};
  FutexLock lock_;  // held while known_, loaded_ or rows_of_files_ is used
};

}  // namespace cuwarden::ledger
