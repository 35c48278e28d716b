// Tests whether the arguments of a call, and the results of Python's functions, are the same as at an earlier call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "api.hpp"
#include "torch_tensor.hpp"
#include "warmgraph/python.h"

namespace warmgraph::python {

/// The objects that the tests of one call read. The registers own references to them.
using Registers = std::vector<Ref>;

/// Asks PyTorch about a tensor.
class TensorQuestions {
public:
    TensorQuestions(const Api& api, const wg_steady_call& call);
    /// Both functions throw Raised.
    [[nodiscard]] bool requires_grad(Object* tensor) const;
    [[nodiscard]] bool is_lazy(Object* tensor) const;

private:
    [[nodiscard]] bool is_true(Object* owned) const;

    const Api& m_api;
    const TorchTensors& m_torch = TorchTensors::of_process();
    Object *m_requires_grad, *m_is_negated, *m_is_conjugated;
    Object* (*m_get)(Object*, Object*,
                     Object*); ///< tp_descr_get of m_requires_grad, which saves the search for the name
};

class CallTests {
public:
    CallTests(const Api& api, const wg_steady_call& call);

    /// Runs the tests in their order until one fails, and fills the registers. Throws Raised.
    [[nodiscard]] bool hold(Registers& registers) const;
    [[nodiscard]] const TensorQuestions& questions() const { return m_questions; }

private:
    [[nodiscard]] bool holds(const wg_test& test, Registers& registers, std::vector<Object*>& apart) const;
    [[nodiscard]] static bool is_code_as_it_was(const wg_test& test);
    [[nodiscard]] static bool are_numbers_as_they_were(const wg_test& test);
    [[nodiscard]] bool items(const wg_test& test, Registers& registers) const;
    [[nodiscard]] bool values(const wg_test& test, Registers& registers) const;
    [[nodiscard]] bool is_number(const wg_test& test, Object* object) const;
    [[nodiscard]] bool is_apart(Object* object, std::vector<Object*>& apart) const;
    [[nodiscard]] bool tensor(const wg_test& test, Object* object) const;
    [[nodiscard]] bool has_no_attributes(Object* object) const;
    [[nodiscard]] bool equals(Object* one, Object* other) const;
    [[nodiscard]] Ref borrowed(Object* object) const;

    const Api& m_api;
    std::span<const wg_test> m_tests;
    std::span<const std::uint64_t> m_around;
    TensorQuestions m_questions;
};

} // namespace warmgraph::python
