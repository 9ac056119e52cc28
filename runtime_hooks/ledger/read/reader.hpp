// Reads a ledger: the process's own one at exit, that of a running process, or one that a dead
// process left behind. The bytes are untrusted: every offset, count and length is checked, a
// half-written row is skipped, and nothing is allocated in proportion to a number in the file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime_hooks/ledger/format/layout.hpp"
#include "runtime_hooks/ledger/read/views.hpp"

namespace cuwarden::ledger {

// The reason why a ledger cannot be read.
struct ReadError {
  const char* text = nullptr;  // the reason, a constant text for the user; null: no error
  explicit operator bool() const { return text != nullptr; }  // true if there is an error
};

// Reads the rows of one ledger, whose bytes it neither owns nor trusts.
class Reader {
 public:
  // Makes a reader of the bytes of a ledger's file or mapping. If they do not begin with the header
  // of a readable ledger, returns null and sets the error. The bytes must outlive the reader and
  // all views that it returns. Other threads and processes may change the bytes at any time.
  static std::optional<Reader> open(std::span<const std::byte>, ReadError&) noexcept;

  // Returns the facts about the recorded process and its ledger. Most are in the ledger's header; a
  // few numbers are sums over its tables. Texts in the result point into the ledger's bytes.
  ProcessView process() const noexcept;

  // Returns the number of rows in use of a region (table or heap of bytes), row 0 included. Rows
  // are numbered from 0 to the result - 1. Row 0 is reserved, except in the hooks table. Rows
  // beyond the end of the reader's bytes, or beyond the region's limit, do not count. Rows that
  // exist only in another process's memory do not count, either.
  std::uint64_t rows(RegionId) const noexcept;
  // Returns a copy of this row of the records table: one live allocation. This and the other
  // functions that take a `row` return null if the row is unused, half-written or damaged.
  std::optional<RecordView> record(std::uint64_t row) const noexcept;
  // Returns the group of allocations in this row of the groups table; null: unused or damaged.
  std::optional<GroupView> group(std::uint64_t row) const noexcept;
  // Returns the call stack in this row of the stacks table; null: unused or damaged.
  std::optional<StackView> stack(std::uint64_t row) const noexcept;
  // Returns the program or library in this row of the modules table; null: unused or damaged.
  std::optional<ModuleView> module(std::uint64_t row) const noexcept;
  // Returns this row of the table of Python functions; null: unused or damaged.
  std::optional<PythonCodeView> python_code(std::uint64_t row) const noexcept;
  // Returns this row of the table of threads that made recorded calls; null: unused or damaged.
  std::optional<ThreadView> thread(std::uint64_t row) const noexcept;
  // Returns the series (all memory of one kind on one device) in this row; null if the row is
  // unused or damaged. The result's counts of allocations, frees, failures and live allocations are
  // 0, and its live bytes may be too high, until GroupSums::put_into() sets them to the sums over
  // the groups.
  std::optional<SeriesView> series(std::uint64_t row) const noexcept;
  // Returns this row of the table of devices that the process used; null: unused or damaged.
  std::optional<DeviceView> device(std::uint64_t row) const noexcept;
  // Returns the incident (refused requests) in this row; null: unused or damaged.
  std::optional<IncidentView> incident(std::uint64_t row) const noexcept;
  // Returns this row of the table of groups of allocations that held much memory when a request was
  // refused; null: unused or damaged.
  std::optional<IncidentHolderView> incident_holder(std::uint64_t row) const noexcept;
  // Returns this row of the table of other processes at a refusal; null: unused or damaged.
  std::optional<IncidentProcessView> incident_process(std::uint64_t row) const noexcept;
  // Returns this row of the table of size classes of the driver's slabs, as they were at a refusal;
  // null: unused or damaged.
  std::optional<IncidentClassView> incident_class(std::uint64_t row) const noexcept;
  // Returns this row of the table of the driver's slabs at a refusal; null: unused or damaged.
  std::optional<IncidentSlabView> incident_slab(std::uint64_t row) const noexcept;
  // Returns this row of the table of attempts to serve refused requests; null: unused or damaged.
  std::optional<IncidentRungView> incident_rung(std::uint64_t row) const noexcept;
  // Returns the slab page in this row; null if the row is unused or damaged. The page's contents
  // are those at the worst moment, when the device had more locked bytes (unused, but in pages with
  // a live allocation) than ever. `version`: the number of that moment, SeriesView::Worst::version
  // in the series of the device's linear memory.
  std::optional<SlabPageView> slab_page(std::uint64_t row, std::uint32_t version) const noexcept;
  // Returns the hooked function in this row of the hooks table, which begins with row 0; null:
  // unused.
  std::optional<HookView> hook(std::uint64_t row) const noexcept;
  // Returns this row of the table of the starts of the program's steps; null: unused or damaged.
  std::optional<StepMarkView> step_mark(std::uint64_t row) const noexcept;
  // Returns this row of the table of frameworks' figures of their memory; null: unused or damaged.
  std::optional<FrameworkPoolView> framework_pool(std::uint64_t row) const noexcept;
  // Returns this row of the table of looked-up CUDA functions without a hook; null: unused or
  // damaged.
  std::optional<NamedCountView> unhooked_lookup(std::uint64_t row) const noexcept;
  // Returns this row of the table of cuwarden's settings; null: unused or damaged.
  std::optional<NamedValueView> setting(std::uint64_t row) const noexcept;
  // Returns this row of the table of environment variables; null: unused or damaged.
  std::optional<NamedValueView> environment(std::uint64_t row) const noexcept;

  // Returns the module that was loaded at the frame's address when the frame's stack was stored.
  // `module_epoch`: StackView::module_epoch of this stack. Null if the table has no such module.
  std::optional<ModuleView> module_at(Frame, std::uint64_t module_epoch) const noexcept;

 private:
  // Offset of a table within the ledger's bytes, and number of rows for which the table has room.
  // open() checks both and copies them here, because the ledger's header may change later.
  struct Table {
    std::uint64_t offset = 0, rows = 0;  // start in bytes from the header; room in rows
    std::uint32_t row_bytes = 0;         // size of a row; 0: the ledger's bytes lack the table
  };
  // Makes a reader without tables, which open() then checks and fills in.
  explicit Reader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}
  const Header& header() const noexcept;  // the ledger's header, with which its bytes begin
  // Returns the row at `index` of this table; null if the table has no row in use there.
  template <class Row>
  const Row* row(RegionId, std::uint64_t index) const noexcept;
  // Returns the row at `index` of the table `RegionId`, whose rows have the type `Row`. Null if the
  // table has no row in use there, or if the row is not completely written.
  template <class Row>
  const Row* published(RegionId, std::uint64_t index) const noexcept;
  // Returns the text to which the reference leads: a view of the ledger's bytes. The result is
  // empty if the text is, if the reference is damaged, or if the text is longer than `longest`
  // bytes.
  std::string_view text(const StringRef&, std::uint64_t longest) const noexcept;
  // Returns the number of recorded calls of the hook in this row, by all threads.
  std::uint64_t calls_of(std::uint64_t hook_row) const noexcept;
  // Returns the row at `index` of the table of settings or of environment variables, as `RegionId`
  // says; null: unused or damaged.
  std::optional<NamedValueView> named_value(RegionId, std::uint64_t index) const noexcept;
  // Returns the series' worst moment: that with most locked bytes. The result's `holders` (groups
  // with locked bytes) is empty while a thread of the recorded process replaces them.
  SeriesView::Worst worst_of(const Series&) const noexcept;

  std::span<const std::byte> bytes_;  // the ledger's bytes, which others may change
  // True if the ledger is that of this process, so that parts that exist only in the process's
  // memory can be read, too.
  bool own_process_ = false;
  std::array<Table, region_count> tables_{};  // offset and room of each table, by RegionId
};

}  // namespace cuwarden::ledger
