// Short forms of demangled C++ names, for people.
#pragma once

#include <string>
#include <string_view>

namespace cuwarden {

// Returns the name with long lists cut and without anonymous namespaces:
// "at::native::(anonymous namespace)::copy<at::Tensor const&, long, long>(int)" becomes
// "at::native::copy<…>(int)". Template arguments of up to 24 characters stay, and parameters of up
// to 40.
std::string short_name(std::string_view function);

// Returns the qualified name of a function without its result's type, template arguments and
// parameters: "void std::vector<int>::resize(unsigned long)" becomes "std::vector::resize".
std::string name_alone(std::string_view function);

}  // namespace cuwarden
