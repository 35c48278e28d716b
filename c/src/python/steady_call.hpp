// A call that is like one that was replayed: looked at, and replayed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "api.hpp"
#include "call_tests.hpp"
#include "torch_tensor.hpp"
#include "warmgraph/python.h"

namespace warmgraph::python {

/// A weight, as each call looks at it: in one line of the processor's caches.
struct alignas(64) WeightLook {
    Object* tensor;
    const Object* kind; ///< its class
    const std::byte* body =
        nullptr; ///< of which the bytes were noted: what PyTorch's functions said is so while they stay
    std::uint64_t address;
    std::array<const void*, 3> near; ///< as wg_weight has it
    bool requires_grad, can_be_lazy;
};

/// Used with Python's lock held, and from the tests to the launch with the call's own one.
class SteadyCall {
public:
    SteadyCall(const Api& api, const wg_steady_call& call);

    /// A new reference, or a null pointer with an exception. `args`: a tuple, `named`: a dict.
    [[nodiscard]] Object* operator()(Object* args, Object* named);

private:
    [[nodiscard]] Ref answered(Registers& registers);
    [[nodiscard]] bool is_like_it(Registers& registers);
    [[nodiscard]] bool are_surroundings_same();
    [[nodiscard]] bool are_weights_there();
    [[nodiscard]] bool is_there(std::size_t weight);
    [[nodiscard]] bool is_there_by_pytorch(std::size_t weight);
    [[nodiscard]] bool is_as_noted(std::size_t weight) const;
    [[nodiscard]] const std::byte* note(std::size_t weight);
    [[nodiscard]] bool is_there(Object* weight, const wg_tensor_look& look) const;
    [[nodiscard]] bool are_inputs_placed(const Registers& registers);
    [[nodiscard]] bool place(const Registers& registers);
    [[nodiscard]] bool is_on_states() const;
    [[nodiscard]] std::vector<Ref> made_outputs() const;
    [[nodiscard]] wg_stream* stream();
    [[nodiscard]] unsigned long long number_of(const Ref& handle) const;
    [[nodiscard]] wg_status launched();
    [[nodiscard]] Ref result(const std::vector<Ref>& outputs, const Registers& registers) const;
    [[nodiscard]] Ref all_of(const std::vector<Ref>& outputs) const;
    [[nodiscard]] Ref values(const Registers& registers) const;
    [[nodiscard]] Ref otherwise() const;

    const Api& m_api;
    wg_steady_call m_call;
    CallTests m_tests;
    const TorchTensors& m_torch = TorchTensors::of_process();
    bool m_are_places_judged = false; ///< none of the inputs, where they were last, lies on a state
    unsigned long long m_native_stream = 0;
    wg_stream* m_stream = nullptr; ///< of m_native_stream
    std::vector<WeightLook> m_weights;
    std::uint64_t m_body_bytes; ///< 0: none are noted
    std::vector<std::byte> m_bodies;
};

/// A callable of Python's that owns a SteadyCall. Throws Raised.
[[nodiscard]] Ref callable_of(const Api& api, const wg_steady_call& call);

} // namespace warmgraph::python
