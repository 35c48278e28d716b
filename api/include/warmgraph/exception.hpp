// The exception of a failed call: a code that says what to do, and a text.
#pragma once

#include <stdexcept>
#include <string>

#include "warmgraph/base/error_code.hpp"
#include "warmgraph/export.hpp"

namespace warmgraph {

class WARMGRAPH_API Exception : public std::runtime_error {
public:
    Exception(ErrorCode code, const std::string& text) : std::runtime_error(text), m_code(code) {}
    [[nodiscard]] ErrorCode code() const noexcept { return m_code; }

private:
    ErrorCode m_code;
};

} // namespace warmgraph
