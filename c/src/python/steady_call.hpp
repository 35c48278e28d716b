// A call that repeats an earlier call: it is tested, and replayed.
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

/// The fields of a weight that each call checks. They fill one line of the processor's caches.
struct alignas(64) WeightLook {
    Object* tensor;
    const Object* kind; ///< the weight's class
    /// The tensor's body whose bytes were noted. While they stay the same, PyTorch's functions would return the same.
    const std::byte* body = nullptr;
    std::uint64_t address;
    std::array<const void*, 3> near; ///< a copy of wg_weight::near
    bool requires_grad, can_be_lazy;
};

/// The caller holds Python's lock. From the tests to the launch, the call's own lock is held as well.
class SteadyCall {
public:
    SteadyCall(const Api& api, const wg_steady_call& call);

    /// Returns a new reference, or a null pointer with an exception. `args` is a tuple, `named` a dict.
    [[nodiscard]] Object* operator()(Object* args, Object* named);

private:
    [[nodiscard]] Ref answered(Registers& registers);
    [[nodiscard]] bool is_same_call(Registers& registers);
    [[nodiscard]] bool are_surroundings_same();
    [[nodiscard]] bool are_weights_there();
    [[nodiscard]] bool is_there(std::size_t weight);
    [[nodiscard]] bool is_there_by_pytorch(std::size_t weight);
    [[nodiscard]] bool is_as_noted(std::size_t weight) const;
    [[nodiscard]] const std::byte* note(std::size_t weight);
    [[nodiscard]] bool is_there(Object* weight, const wg_tensor_look& look) const;
    [[nodiscard]] bool are_inputs_placed(const Registers& registers);
    [[nodiscard]] bool place(const Registers& registers);
    [[nodiscard]] bool overlaps_states() const;
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
    bool m_are_places_judged = false; ///< at their last addresses, no input overlaps a state
    unsigned long long m_native_stream = 0;
    wg_stream* m_stream = nullptr; ///< the handle of m_native_stream
    std::vector<WeightLook> m_weights;
    std::uint64_t m_body_bytes; ///< bytes of a body that are noted; 0: none
    std::vector<std::byte> m_bodies;
};

/// Makes a Python callable that owns a SteadyCall. Throws Raised.
[[nodiscard]] Ref callable_of(const Api& api, const wg_steady_call& call);

} // namespace warmgraph::python
