// Tables of the report about the program's code. report.schema.json describes each field.
#pragma once

#include <string>
#include <vector>

#include "reporters/model/fields.hpp"
#include "reporters/model/values.hpp"

namespace cuwarden::model {

// A call stack: a row of the report's table `stacks`.
struct Stack {
  Id id = 0;               // number of the stack, from 1, by which other tables name it
  std::vector<Id> frames;  // ids in the table `frames`, innermost frame first
  bool truncated = false;  // true if the outer frames of the stack were not recorded
  CUWARDEN_FIELDS(id, frames, truncated)
};

// A function on call stacks: a row of the report's table `frames`. An inlined function has a frame
// of its own.
struct Frame {
  Id id = 0;             // number of the frame, from 1, by which rows of `stacks` name it
  Text function, file;   // function's name and source file; null: unknown
  Figure line;           // line of the code in the source file; null: unknown
  bool inlined = false;  // true if the function is inlined into the next outer frame
  // Id in the table `modules` of the file with the function's code; null: code in no known module.
  MaybeId module;
  // Address of the code, relative to the module's load base; null: code in no known module.
  Figure offset;
  Text language;  // language of the function: "native" or "python"; null: the report does not say
  Text address;   // address, in hexadecimal, of code in no known module; null for all other code
  // Library to which the code belongs, such as "PyTorch", "Python", "CUDA" or "system libraries";
  // null: the program's own code, or code of which nothing is known.
  Text library;
  CUWARDEN_FIELDS(id, function, file, line, inlined, module, offset, language, address, library)
  CUWARDEN_MAY_LACK(language, address, library)
};

// An executable or shared object that the process had loaded, with code on call stacks or without:
// a row of the report's table `modules`.
struct Module {
  Id id = 0;         // number of the module, from 1, by which other tables name it
  std::string path;  // path of the executable or shared object
  Text build_id;     // ELF build id of the file, in hexadecimal; null: the file has none
  CUWARDEN_FIELDS(id, path, build_id)
  CUWARDEN_MAY_LACK(build_id)
};

}  // namespace cuwarden::model
