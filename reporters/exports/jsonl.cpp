// A line of JSON for each row of a report's tables, for programs that analyse many reports, such as
// DuckDB and Spark. Each line is an object without lists and objects in it, has the name of the
// table in `record`, and says which process it is about. Ids of other tables are replaced by the
// text that they stand for.
//
// DuckDB takes lines for rows of a table only if together they have fewer than 200 fields, of which
// a line has more than a tenth on average. So fields that many tables have are on all lines.
#include <algorithm>
#include <array>
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
#include "reporters/model/type_descriptions.hpp"
#include "reporters/text/elements/text_stacks.hpp"
#include "reporters/words/wall_clock.hpp"
#include "runtime_hooks/core/kind.hpp"

namespace cuwarden {
namespace {

using model::AnyValue;
using model::TypeKind;
using Quarters = std::array<model::Figure, 4>;

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

// True if the type is a list of rows.
bool is_table(const model::Type& type) {
  return type.kind == TypeKind::list && type.element->kind == TypeKind::object;
}

bool has_field(AnyValue row, std::string_view name) {
  return std::ranges::count(row.type().fields, name, &model::Field::name) != 0;
}

// Returns the id in the row's field of this name; null if it has no such field, or no id in it.
model::MaybeId id_in(AnyValue row, std::string_view name) {
  const auto field = row.field(name);
  if (!field) return std::nullopt;
  if (const auto* const id = field->get_if<model::Id>()) return *id;
  const auto* const id = field->get_if<model::MaybeId>();
  return id == nullptr ? std::nullopt : *id;
}
// Returns the text in the row's field of this name; empty if it has no such field, or no text in
// it.
std::string_view text_in(AnyValue row, std::string_view name) {
  const auto field = row.field(name);
  if (!field) return {};
  if (const auto* const text = field->get_if<std::string>()) return *text;
  const auto* const text = field->get_if<model::Text>();
  return text == nullptr || !*text ? std::string_view() : **text;
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
    const AnyValue report = AnyValue::of(*report_);
    report.each_field([this](const model::Field& field, AnyValue value) {
      if (has_lines(field.name) && is_table(value.type())) rows_ += value.count();
    });
    write_process();
    report.each_field([this](const model::Field& field, AnyValue value) {
      if (has_lines(field.name)) write_part(field.name, value);
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

  void text(std::string_view name, std::string_view value) {
    key(name);
    write_json_text(output_, value);
  }
  void text_or_null(std::string_view name, const model::Text& value) {
    value ? text(name, *value) : null(name);
  }
  // A line for each value in a list. Stacks are lines of the program's own code, steps are names.
  void lines(std::string_view name, AnyValue list) {
    std::string text;
    list.each_element([&](AnyValue value) {
      if (!text.empty()) text += '\n';
      if (const auto* const stack = value.get_if<model::Id>())
        text += texts_of(*stack).where.value_or("unknown code");
      else if (const auto* const step = value.get_if<model::NamedStep>())
        text += step->name;
      else if (const auto* const line = value.get_if<std::string>())
        text += *line;
    });
    this->text(name, text);
  }
  // A field for each value in a list of numbers whose length is always the same.
  void numbered(std::string_view name, AnyValue list) {
    std::size_t number = 0;
    list.each_element(
        [&](AnyValue value) { field(std::string(name) + "_" + std::to_string(++number), value); });
  }
  // Ids of stacks and modules are replaced by their texts.
  void id(std::string_view name, model::Id id) {
    if (name == "module") {
      const model::Module* const module = report_.module(id);
      return module == nullptr ? null(name) : text(name, module->path);
    }
    key(name);
    if (name == "stack")
      output_.write(texts_of(id).text);
    else
      write_json_number(output_, id);
  }
  void field(std::string_view name, AnyValue value) {
    switch (value.kind()) {
      case TypeKind::flag:
        key(name);
        return output_.write(value.as<bool>() ? "true" : "false");
      case TypeKind::number:
        key(name);
        if (value.type().is_signed)
          write_json_number(output_, static_cast<std::int64_t>(value.number()));
        else
          write_json_number(output_, value.number());
        return;
      case TypeKind::text:
        return text(name, value.as<std::string>());
      case TypeKind::proof_value: {
        const auto& figure = value.as<model::ProofValue>();
        if (const auto* const number = std::get_if<std::uint64_t>(&figure))
          return field(name, AnyValue::of(*number));
        const auto* const words = std::get_if<std::string>(&figure);
        return words == nullptr ? null(name) : text(name, *words);
      }
      case TypeKind::optional:
        if (value.type().element->kind == TypeKind::list) {
          // The fields of an unknown list are null.
          const Quarters unknown{};
          const auto quarters = value.content();
          return numbered(name, quarters ? *quarters : AnyValue::of(unknown));
        }
        if (const auto content = value.content())
          return content->is<model::Id>() ? id(name, content->as<model::Id>())
                                          : field(name, *content);
        return null(name);
      case TypeKind::list:
        return lines(name, value);
      default:
        return;  // The figures that prove a verdict have lines of their own.
    }
  }

  void fields_of(AnyValue row) {
    row.each_field([&](const model::Field& each, AnyValue value) {
      // The process of a row of device_processes is another one than that of the line.
      if (is_process_field(each.name))
        field("other_" + std::string(each.name), value);
      else
        field(each.name, value);
    });
    for (const std::string_view name : common_fields) {
      if (has_field(row, name)) continue;
      if (name == "incident" && row.is<model::Incident>())
        field(name, AnyValue::of(row.as<model::Incident>().id));
      else
        null(name);
    }
    write_uuid(row);
    write_labels(row);
  }

  void write_uuid(AnyValue row) {
    const model::MaybeId ordinal = id_in(row, "device");
    const auto uuid = ordinal ? uuids_.find(*ordinal) : uuids_.end();
    if (uuid == uuids_.end()) return null("device_uuid");
    text_or_null("device_uuid", *uuid->second);
  }

  // Writes `where` and `fingerprint`, unless the row has such fields itself. The fingerprint is
  // null if the row does not name the CUDA function that was called.
  void write_labels(AnyValue row) {
    const model::MaybeId id = id_in(row, "stack");
    const StackTexts* const stack = id ? &texts_of(*id) : nullptr;
    if (!has_field(row, "where"))
      stack == nullptr ? null("where") : text_or_null("where", stack->where);
    if (has_field(row, "fingerprint")) return;
    if (stack == nullptr || !has_field(row, "api")) return null("fingerprint");
    const std::string api = label_group(text_in(row, "api"), stack->frames).api;
    // The kind of memory, or of objects that take memory.
    const std::string_view kind = text_in(row, has_field(row, "kind") ? "kind" : "item");
    text("fingerprint", fingerprints_.of(kind, api, stack->frames));
  }

  // The job of the process is on the same line.
  void write_process() {
    begin("process");
    for (const AnyValue part : {AnyValue::of(report_->process), AnyValue::of(report_->job)})
      part.each_field([this](const model::Field& each, AnyValue value) {
        if (!is_process_field(each.name)) field(each.name, value);
      });
    field("schema", AnyValue::of(report_->schema));
    field("redacted", AnyValue::of(report_->redacted));
    for (const std::string_view name : common_fields) null(name);
    for (const char* const name : {"device_uuid", "where", "fingerprint"}) null(name);
    end();
  }

  // Writes the lines of a table, or the line of an object. write_process() writes the process.
  void write_part(std::string_view name, AnyValue part) {
    if (part.is<model::Process>() || part.is<model::Job>()) return;
    if (is_table(part.type())) {
      part.each_element([&](AnyValue row) {
        constexpr std::size_t pause = 1024;
        if (written_++ % pause == 0) told_(written_, rows_);
        write_part(name, row);
      });
    } else if (part.kind() == TypeKind::object) {
      begin(name);
      fields_of(part);
      end();
      if (part.is<model::Incident>()) write_verdict(part.as<model::Incident>());
    } else if (part.kind() == TypeKind::optional && part.type().element->kind == TypeKind::object) {
      if (const auto content = part.content()) write_part(name, *content);
    }
  }

  void write_verdict(const model::Incident& incident) {
    const Verdict verdict{.incident = incident.id,
                          .time_ns = incident.time_ns,
                          .verdict = incident.verdict,
                          .outcome = incident.outcome,
                          .device = incident.device,
                          .advice = incident.advice};
    write_part("verdicts", AnyValue::of(verdict));
    for (const auto& [name, value] : incident.proof) {
      const ProofFigure figure{incident.id, name, value};
      write_part("proofs", AnyValue::of(figure));
    }
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
  // Texts of the stacks that were met last, by id.
  std::unordered_map<model::Id, StackTexts> texts_;
};

}  // namespace

void exports::jsonl(const IndexedReport& report, const std::string& path, Output& output,
                    FunctionRef<void(std::size_t rows, std::size_t all)> told) {
  Lines(report, path, output, told).write();
}

}  // namespace cuwarden
