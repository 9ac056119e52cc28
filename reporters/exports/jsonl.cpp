// A line of JSON for each row of a report's tables, for programs that analyse many reports, such as
// DuckDB and Spark. Each line is an object without lists and objects in it, has the name of the
// table in `record`, and says which process it is about. Ids of other tables are replaced by the
// text that they stand for.
//
// DuckDB takes lines for rows of a table only if together they have fewer than 200 fields, of which
// a line has more than a tenth on average. So fields that many tables have are on all lines.
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "reporters/exports/exports.hpp"
#include "reporters/json/json_values.hpp"
#include "reporters/labels/fingerprint.hpp"
#include "reporters/labels/group_label.hpp"
#include "reporters/labels/named_stacks.hpp"
#include "reporters/labels/users_frame.hpp"
#include "reporters/text/text_stacks.hpp"
#include "reporters/words/wall_clock.hpp"
#include "runtime_hooks/core/kind.hpp"

namespace cuwarden {
namespace {

// Fields of each line that say which process it is about.
constexpr std::string_view process_fields[] = {"report", "host",  "program",      "pid",
                                               "rank",   "start", "start_unix_ns"};
// Further fields of each line; null if the row has none. So are `device_uuid`, `where` and
// `fingerprint`.
constexpr std::string_view common_fields[] = {"device", "incident", "time_ns", "kind",
                                              "api",    "count",    "bytes",   "stack"};

// Tables without lines: other lines have stacks and frames as text, and the maps of slabs have a
// row for each 2 MiB of memory.
constexpr std::string_view left_out[] = {"stacks", "frames", "slab_map", "worst_slab_map",
                                         "incident_slab_map"};

constexpr bool has_lines(std::string_view table) {
  return std::ranges::find(left_out, table) == std::end(left_out);
}

constexpr bool is_process_field(std::string_view name) {
  return std::ranges::find(process_fields, name) != std::end(process_fields);
}

// True if the row has a field whose name is also that of a field of each line.
template <class Row>
constexpr bool has_process_field = std::ranges::any_of(model::field_names<Row>, is_process_field);

template <class Type>
constexpr bool is_table = false;
template <model::Object Row>
constexpr bool is_table<std::vector<Row>> = true;

std::string_view text_of(const model::Text& text) { return text ? *text : std::string_view(); }

// Returns the kind of memory, or of objects that take memory, by which the row's fingerprint is
// made.
std::string_view kind_of(const model::Incident& row) { return text_of(row.kind); }
std::string_view kind_of(const model::ImplicitGroup& row) { return row.item; }
std::string_view kind_of(const model::AllocationSite& row) { return row.kind; }

// True if the row names the CUDA function that was called, but has no fingerprint itself.
template <class Row>
constexpr bool lacks_fingerprint = requires(const Row& row) {
  row.api;
  requires !requires { row.fingerprint; };
};

// Returns the incident that a row without a field `incident` is about; null: none.
template <class Row>
model::MaybeId incident_of(const Row& row) {
  if constexpr (std::same_as<Row, model::Incident>)
    return row.id;
  else
    return std::nullopt;
}

// The cause of a refused request: a row of the table of verdicts, which only lines have.
struct Verdict {
  model::Id incident = 0;  // row of the table `incidents`
  model::Figure time_ns;
  std::string verdict, outcome;
  model::MaybeId device;
  model::Text advice;
  CUWARDEN_FIELDS(incident, time_ns, verdict, outcome, device, advice)
};
// A figure that proves a verdict: a row of the table of proofs, which only lines have.
struct ProofFigure {
  model::Id incident = 0;  // row of the table `incidents`
  std::string figure;      // name of the figure, such as "free_bytes"
  model::ProofValue value;
  CUWARDEN_FIELDS(incident, figure, value)
};

// Writes the lines of one report.
class Lines {
 public:
  Lines(const IndexedReport& report, const std::string& path, Output& output,
        FunctionRef<void(std::size_t rows, std::size_t all)> told)
      : report_(report), output_(output), told_(told), stacks_(*report) {
    const model::Process& process = report->process;
    const auto add = [this](std::size_t at, const std::string& value) {
      ((process_ += ",\"") += process_fields[at]) += "\":" + value;
    };
    const auto number = [](const auto& value) {
      return value ? std::to_string(*value) : std::string("null");
    };
    const auto text = [](const model::Text& value) {
      return value ? quoted_json(*value) : std::string("null");
    };
    const std::string values[] = {quoted_json(path),
                                  text(process.host),
                                  text(process.program),
                                  number(process.pid),
                                  number(report->job.rank),
                                  quoted_json(process.start),
                                  number(parse_iso_8601(process.start))};
    static_assert(std::size(values) == std::size(process_fields));
    for (std::size_t i = 0; i < std::size(values); ++i) add(i, values[i]);
    // If two rows are about one device, the first counts.
    for (const model::Device& device : report->devices)
      uuids_.try_emplace(device.device, &device.uuid);
  }

  void write() {
    model::each_field(*report_, [this](std::string_view name, const auto& value, auto) {
      if constexpr (is_table<std::decay_t<decltype(value)>>)
        if (has_lines(name)) rows_ += value.size();
    });
    write_process();
    model::each_field(*report_, [this](std::string_view name, const auto& value, auto) {
      if (has_lines(name)) write_part(name, value);
    });
  }

 private:
  // Text and names of a call stack.
  struct StackTexts {
    std::vector<NamedFrame> frames;
    std::string text;   // JSON of the text: a line for each frame, innermost first
    model::Text where;  // line of the program's own code; null: there is none
  };

  void begin(std::string_view record) {
    output_.write("{\"record\":\"");
    output_.write(record);
    output_.write("\"");
    output_.write(process_);
  }
  void end() { output_.write("}\n"); }

  void key(std::string_view name) {
    output_.write(",\"");
    output_.write(name);
    output_.write("\":");
  }
  void null(std::string_view name) {
    key(name);
    output_.write("null");
  }

  void field(std::string_view name, bool value) {
    key(name);
    output_.write(value ? "true" : "false");
  }
  template <std::integral Number>
  void field(std::string_view name, Number value) {
    key(name);
    write_json_number(output_, value);
  }
  void field(std::string_view name, std::string_view value) {
    key(name);
    write_json_text(output_, value);
  }
  void field(std::string_view name, const std::string& value) {
    field(name, std::string_view(value));
  }
  template <class Value>
  void field(std::string_view name, const std::optional<Value>& value) {
    value ? field(name, *value) : null(name);
  }
  void field(std::string_view name, model::MaybeId id) {
    if (name == "stack") {
      key(name);
      output_.write(id ? texts_of(*id).text : "null");
    } else if (name == "module") {
      const model::Module* const module = report_.module(id);
      field(name, module == nullptr ? model::Text() : model::Text(module->path));
    } else {
      id ? field(name, *id) : null(name);
    }
  }
  // Sentences or arguments, a line for each.
  void field(std::string_view name, const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) (text += text.empty() ? "" : "\n") += line;
    field(name, text);
  }
  // Names of the steps, a line for each.
  void field(std::string_view name, const std::vector<model::NamedStep>& steps) {
    std::vector<std::string> names;
    for (const model::NamedStep& step : steps) names.push_back(step.name);
    field(name, names);
  }
  // Ids of stacks, of which the lines of the program's own code are written.
  void field(std::string_view name, const std::vector<model::Id>& stacks) {
    std::vector<std::string> lines;
    for (const model::Id stack : stacks)
      lines.push_back(texts_of(stack).where.value_or("unknown code"));
    field(name, lines);
  }
  void field(std::string_view name, const std::optional<std::array<model::Figure, 4>>& quarters) {
    for (std::size_t i = 0; i < 4; ++i)
      field(std::string(name) + "_" + std::to_string(i + 1),
            quarters ? (*quarters)[i] : model::Figure());
  }
  void field(std::string_view name, std::monostate) { null(name); }
  void field(std::string_view name, const model::ProofValue& value) {
    std::visit([&](const auto& known) { field(name, known); }, value);
  }
  // The figures that prove a verdict have lines of their own.
  void field(std::string_view, const model::Proof&) {}

  template <class Row>
  void fields_of(const Row& row) {
    // The process of a row of this table is another one than that of the line.
    static_assert(!has_process_field<Row> || std::same_as<Row, model::DeviceProcess>);
    model::each_field(row, [this](std::string_view name, const auto& value, auto) {
      if (is_process_field(name))
        this->field("other_" + std::string(name), value);
      else
        this->field(name, value);
    });
    for (const std::string_view name : common_fields)
      if (std::ranges::find(model::field_names<Row>, name) == model::field_names<Row>.end())
        name == "incident" ? field(name, incident_of(row)) : null(name);
    write_uuid(row);
    write_labels(row);
  }

  template <class Row>
  void write_uuid(const Row& row) {
    model::MaybeId ordinal;
    if constexpr (requires { row.device; }) ordinal = row.device;
    const auto uuid = ordinal ? uuids_.find(*ordinal) : uuids_.end();
    if (uuid == uuids_.end()) return null("device_uuid");
    field("device_uuid", *uuid->second);
  }

  // Writes `where` and `fingerprint`, unless the row has such fields itself. The fingerprint is
  // null if the row does not name the CUDA function that was called.
  template <class Row>
  void write_labels(const Row& row) {
    const StackTexts* stack = nullptr;
    if constexpr (requires { row.stack; })
      if (row.stack) stack = &texts_of(*row.stack);
    if constexpr (!requires { row.where; })
      field("where", stack == nullptr ? model::Text() : stack->where);
    if constexpr (lacks_fingerprint<Row>) {
      if (stack == nullptr) return null("fingerprint");
      const std::string api = label_group(text_of(row.api), stack->frames).api;
      field("fingerprint", fingerprints_.of(kind_of(row), api, stack->frames));
    } else if constexpr (!requires { row.fingerprint; }) {
      null("fingerprint");
    }
  }

  // The job of the process is on the same line.
  void write_process() {
    begin("process");
    const auto unless_known = [this](std::string_view name, const auto& value, auto) {
      if (!is_process_field(name)) field(name, value);
    };
    model::each_field(report_->process, unless_known);
    model::each_field(report_->job, unless_known);
    field("schema", report_->schema);
    field("redacted", report_->redacted);
    for (const std::string_view name : common_fields) null(name);
    for (const char* const name : {"device_uuid", "where", "fingerprint"}) null(name);
    end();
  }

  // Not inlined: a function with the code of all tables takes a minute to compile.
  template <class Part>
  [[gnu::noinline]] void write_part(std::string_view name, const Part& part) {
    if constexpr (std::same_as<Part, model::Process> || std::same_as<Part, model::Job>) {
      return;  // write_process() writes them.
    } else if constexpr (is_table<Part>) {
      for (const auto& row : part) {
        constexpr std::size_t pause = 1024;
        if (written_++ % pause == 0) told_(written_, rows_);
        write_part(name, row);
      }
    } else if constexpr (model::Object<Part>) {
      begin(name);
      fields_of(part);
      end();
      if constexpr (std::same_as<Part, model::Incident>) write_verdict(part);
    } else if constexpr (requires { part->field_list; }) {
      if (part) write_part(name, *part);
    }
  }

  void write_verdict(const model::Incident& incident) {
    write_part("verdicts", Verdict{incident.id, incident.time_ns, incident.verdict,
                                   incident.outcome, incident.device, incident.advice});
    for (const auto& [figure, value] : incident.proof)
      write_part("proofs", ProofFigure{incident.id, figure, value});
  }

  // Returns the texts of the stack with this id. They are valid until the next call. The rows of a
  // stack mostly follow each other, so that few stacks are kept: the texts of all would take far
  // more memory than the report.
  const StackTexts& texts_of(model::Id id) {
    constexpr std::size_t most_kept = 256;
    if (texts_.size() >= most_kept && !texts_.contains(id)) texts_.clear();
    const auto [known, is_new] = texts_.try_emplace(id);
    StackTexts& texts = known->second;
    if (!is_new) return texts;
    texts.text = "null";
    const model::Stack* const stack = report_.stack(id);
    if (stack == nullptr) return texts;
    texts.frames = stacks_.frames(id);
    texts.where = users_location(texts.frames);
    std::string lines;
    for (const model::Id frame : stack->frames)
      (lines += lines.empty() ? "" : "\n") += visible_frame(report_, frame);
    if (stack->truncated) lines += "\n… outer frames were not recorded";
    texts.text = quoted_json(lines);
    return texts;
  }

  const IndexedReport& report_;
  Output& output_;
  FunctionRef<void(std::size_t rows, std::size_t all)> told_;
  std::size_t rows_ = 0, written_ = 0;  // number of all rows of tables; of those that were written
  std::string process_;  // JSON of the fields process_fields, with a comma before each
  NamedStacks stacks_;
  Fingerprints fingerprints_;
  std::unordered_map<model::Id, const model::Text*> uuids_;  // by ordinal of the device
  std::unordered_map<model::Id, StackTexts> texts_;  // of the stacks that were met last, by id
};

}  // namespace

void exports::jsonl(const IndexedReport& report, const std::string& path, Output& output,
                    FunctionRef<void(std::size_t rows, std::size_t all)> told) {
  Lines(report, path, output, told).write();
}

}  // namespace cuwarden
