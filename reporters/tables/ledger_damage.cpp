#include "reporters/tables/ledger_damage.hpp"

#include <vector>

#include "reporters/model/values.hpp"

namespace cuwarden {
namespace {

using ledger::RegionId;

// True for a name as a writer stores it: not empty, and without a zero byte.
bool is_name(std::string_view text) { return !text.empty() && text.find('\0') == text.npos; }

class Search {
 public:
  Search(const ledger::Reader& reader, std::uint32_t reasons, LedgerDamage& damage)
      : reader_(reader), damage_(damage) {
    rows_may_be_elsewhere_ = (reasons & ledger::reason_ledger_partly_in_memory) != 0;
    names_may_be_missing_ = (reasons & ledger::reason_names_missing) != 0;
  }

  void look_at_groups(std::vector<bool>& readable) {
    const std::uint64_t rows = readable.size();
    for (std::uint64_t row = 1; row < rows; ++row) {
      const auto group = reader_.group(row);
      if (!group) continue;
      readable[row] = true;
      damage_.counted += group->live_count;
      if (group->stack.value != 0 && !rows_may_be_elsewhere_ &&
          !reader_.stack(group->stack.value)) {
        ++damage_.lost_stacks;
      }
      const bool has_no_function =
          group->kind == Kind::framework_block && group->api == ledger::no_function;
      if (!has_no_function && group->api.value >= reader_.rows(RegionId::hooks))
        ++damage_.lost_names;
      for (const std::uint64_t figure :
           {group->live_bytes, group->allocated_bytes, group->released_bytes, group->allocations,
            group->frees, group->at_peak_bytes}) {
        judge(figure);
      }
    }
  }

  void look_at_records(const std::vector<bool>& readable, RowDone done) {
    const std::uint64_t rows = reader_.rows(RegionId::records);
    for (std::uint64_t row = 1; row < rows; ++row) {
      done();
      const auto record = reader_.record(row);
      if (!record || (record->flags & ledger::record_counts_no_bytes) != 0) continue;
      ++damage_.listed;
      judge(record->bytes.value);
      const std::uint32_t group = record->group.value;
      if (group < readable.size() && readable[group]) continue;
      if (group >= readable.size() && rows_may_be_elsewhere_) continue;
      // A live ledger may have got new groups since they were looked at.
      if (!reader_.group(group)) ++damage_.lost_allocations;
    }
  }

  void look_at_series_and_devices() {
    for (std::uint64_t row = 1; row < reader_.rows(RegionId::series); ++row) {
      const auto series = reader_.series(row);
      if (!series) continue;
      judge(series->live_bytes);
      judge(series->peak_bytes);
      if (series->buckets_used > 0 && series->buckets[0].width_ns == 0) ++damage_.absurd_figures;
    }
    for (std::uint64_t row = 1; row < reader_.rows(RegionId::devices); ++row) {
      const auto device = reader_.device(row);
      if (device && device->ordinal.value < 0) ++damage_.absurd_figures;
    }
  }

  void look_at_calls() {
    for (std::uint64_t row = 0; row < reader_.rows(RegionId::hooks); ++row) {
      if (const auto hook = reader_.hook(row)) judge(hook->calls);
    }
  }

  void look_at_names() {
    if (names_may_be_missing_ || rows_may_be_elsewhere_) return;
    for (std::uint64_t row = 1; row < reader_.rows(RegionId::settings); ++row) {
      const auto setting = reader_.setting(row);
      if (setting && !setting->name.starts_with("CUWARDEN_")) ++damage_.lost_names;
    }
    const auto judge_name = [this](const auto& row) {
      if (row && !is_name(row->name)) ++damage_.lost_names;
    };
    for (std::uint64_t row = 0; row < reader_.rows(RegionId::hooks); ++row)
      judge_name(reader_.hook(row));
    for (std::uint64_t row = 1; row < reader_.rows(RegionId::unhooked_lookups); ++row)
      judge_name(reader_.unhooked_lookup(row));
    for (std::uint64_t row = 1; row < reader_.rows(RegionId::environment); ++row)
      judge_name(reader_.environment(row));
  }

 private:
  void judge(std::uint64_t figure) {
    if (figure > model::largest_number) ++damage_.absurd_figures;
  }

  const ledger::Reader& reader_;
  LedgerDamage& damage_;
  bool rows_may_be_elsewhere_ = false, names_may_be_missing_ = false;
};

}  // namespace

LedgerDamage find_damage(const ledger::Reader& reader, bool at_rest, RowDone done) {
  LedgerDamage damage;
  const ledger::ProcessView process = reader.process();
  damage.cut_short = process.cut_short;
  Search search(reader, process.reasons, damage);
  std::vector<bool> readable(reader.rows(RegionId::groups));
  search.look_at_groups(readable);
  search.look_at_records(readable, done);
  search.look_at_series_and_devices();
  search.look_at_calls();
  search.look_at_names();
  constexpr auto may_disagree =
      ledger::reason_ledger_partly_in_memory | ledger::reason_names_missing;
  const std::uint64_t rows = reader.rows(RegionId::threads);
  // Each thread may have been killed between its row and its counter.
  const std::uint64_t threads = rows > 0 ? rows - 1 : 0;
  const bool agree =
      damage.counted <= damage.listed + threads && damage.listed <= damage.counted + threads;
  if (agree || !at_rest || (process.reasons & may_disagree) != 0) {
    damage.counted = damage.listed = 0;
  }
  return damage;
}

bool LedgerDamage::any() const noexcept {
  return cut_short || lost_allocations > 0 || lost_stacks > 0 || lost_names > 0 ||
         absurd_figures > 0 || counted != listed;
}

std::string LedgerDamage::sentence() const {
  std::string facts;
  const auto add = [&](const std::string& fact) { facts += (facts.empty() ? "" : "; ") + fact; };
  const auto count = [&](std::uint64_t number, const char* one, const char* many) {
    if (number > 0) add(std::to_string(number) + (number == 1 ? one : many));
  };
  if (cut_short) add("its file was cut short");
  count(lost_allocations, " live allocation has no call stack that can be read",
        " live allocations have no call stack that can be read");
  count(lost_stacks, " stack cannot be read", " stacks cannot be read");
  count(lost_names, " name cannot be read", " names cannot be read");
  count(absurd_figures, " figure is impossible", " figures are impossible");
  if (counted > listed) {
    count(counted - listed, " more live allocation was counted than is listed",
          " more live allocations were counted than are listed");
  } else {
    count(listed - counted, " more live allocation is listed than was counted",
          " more live allocations are listed than were counted");
  }
  return "the ledger is damaged (" + facts + "): allocations are missing or wrong";
}

}  // namespace cuwarden
