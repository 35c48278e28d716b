#include "steady_call.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "dl_tensor.hpp"
#include "snapshot.hpp"

namespace warmgraph::python {

namespace {

constexpr const char* k_capsule = "warmgraph.steady_call";

/// Holds the call's lock, a Python object, if there is one.
class Lock {
public:
    Lock(const Api& api, const wg_steady_call& call) : m_api(api), m_release(call.release)
    {
        if (call.acquire != nullptr) static_cast<void>(Api::checked(api.call_alone(call.acquire)));
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock()
    {
        if (m_release == nullptr) return;
        Object *kind = nullptr, *value = nullptr, *traceback = nullptr;
        m_api.take_error(&kind, &value, &traceback);
        if (Object* const done = m_api.call_alone(m_release); done != nullptr) m_api.release(done);
        m_api.set_error(kind, value, traceback);
    }

private:
    const Api& m_api;
    Object* m_release;
};

} // namespace

SteadyCall::SteadyCall(const Api& api, const wg_steady_call& call)
    : m_api(api),
      m_call(call),
      m_tests(api, m_call),
      // Noted bytes save calls of PyTorch's functions, so they are needed only with these functions.
      m_body_bytes(call.requires_grad == nullptr ? call.weight_bytes : 0),
      m_bodies(call.weight_count * m_body_bytes)
{
    m_weights.reserve(m_call.weight_count);
    for (const wg_weight& one : std::span(m_call.weights, m_call.weight_count))
        m_weights.push_back({.tensor = one.tensor,
                             .kind = Api::kind_of(one.tensor),
                             .address = *one.look.address,
                             .near = std::to_array(one.near),
                             .requires_grad = one.requires_grad != 0,
                             .can_be_lazy = one.can_be_lazy != 0});
}

Object* SteadyCall::operator()(Object* args, Object* named)
{
    Registers registers(m_call.register_count);
    m_api.retain(args);
    registers[0] = Ref(args);
    m_api.retain(named);
    registers[1] = Ref(named);
    try {
        const Lock lock(m_api, m_call);
        return answered(registers).leave();
    } catch (const PythonError&) {
    }
    return nullptr;
}

Ref SteadyCall::answered(Registers& registers)
{
    std::vector<Ref> outputs;
    try {
        const std::uint64_t moves = *m_call.moves;
        if (moves % 2 != 0 || !is_same_call(registers)) return otherwise();
        if (m_call.enqueue == nullptr) {
            outputs = made_outputs();
            return Api::checked(m_api.tuple_pack(2, all_of(outputs).get(), values(registers).get()));
        }
        m_stream = stream();
        if (m_call.is_capturing != nullptr && m_call.is_capturing(m_stream) != 0) return otherwise();
        outputs = made_outputs();
        if (++*m_call.replays % m_call.often == 0) static_cast<void>(Api::checked(m_api.call_alone(m_call.replayed)));
        // Another thread may have run while Python was called, and may have moved tensors for its capture.
        if (*m_call.moves != moves) return otherwise();
    } catch (const PythonError&) { // the slow way, which reads the whole call, reports what is wrong
        if (m_api.is_error(*m_api.exception) == 0) throw;
        m_api.clear_error();
        return otherwise();
    }
    if (const wg_status status = launched(); status != wg_ok)
        return Api::checked(m_api.call(m_call.failed, Api::checked(m_api.int_of_number(status)).get(), nullptr));
    return result(outputs, registers);
}

bool SteadyCall::is_same_call(Registers& registers)
{
    return is_as_it_was(m_api, *m_call.always) && m_tests.hold(registers) && are_surroundings_same() &&
           are_inputs_placed(registers);
}

bool SteadyCall::are_surroundings_same()
{
    if (*m_call.is_frozen != 0) return true;
    return is_as_it_was(m_api, *m_call.surroundings) &&
           std::all_of(m_call.rest, m_call.rest + m_call.rest_count,
                       [this](Object* one) { return Api::checked(m_api.call_alone(one)).get() == m_api.yes; }) &&
           are_weights_there();
}

namespace {

/// Offsets in bytes that PyTorch's functions read in a tensor's body, its storage and its record for gradients. They
/// are those of PyTorch 2.11; with other versions the prefetch only helps less. The objects may begin anywhere in a
/// cache line.
constexpr std::array<std::size_t, 4> k_of_body{0, 64, 128, 176};
constexpr std::array<std::size_t, 2> k_of_storage{16, 59}, k_of_gradients{0, 144};

void fetch(const void* place, std::span<const std::size_t> offsets)
{
    if (place == nullptr) return;
    for (const std::size_t at : offsets) __builtin_prefetch(static_cast<const std::byte*>(place) + at);
}

/// Prefetches a weight's nine cache lines, which other work has evicted since the call before.
void fetch(const WeightLook& weight)
{
    __builtin_prefetch(weight.tensor);
    fetch(weight.near[0], k_of_body);
    fetch(weight.near[1], k_of_storage);
    fetch(weight.near[2], k_of_gradients);
}

} // namespace

bool SteadyCall::are_weights_there()
{
    constexpr std::size_t k_ahead = 8;
    for (std::size_t i = 0; i < m_weights.size(); ++i) {
        if (i + k_ahead < m_weights.size()) fetch(m_weights[i + k_ahead]);
        if (!is_there(i)) return false;
    }
    return true;
}

/// It compares addresses, and not storages: the launch uses the addresses of the call before.
bool SteadyCall::is_there(std::size_t number)
{
    const WeightLook& weight = m_weights[number];
    return Api::kind_of(weight.tensor) == weight.kind && // a derived class may have operators of its own
           (is_there_by_pytorch(number) || is_there(weight.tensor, m_call.weights[number].look)) &&
           m_tests.questions().requires_grad(weight.tensor) == weight.requires_grad &&
           (!weight.can_be_lazy || !m_tests.questions().is_lazy(weight.tensor));
}

/// Compares the description and the address by PyTorch's own functions; false if these cannot be used.
bool SteadyCall::is_there_by_pytorch(std::size_t number)
{
    if (m_call.requires_grad != nullptr) return false; // wg_use_torch_tensors set no functions
    Object* const tensor = m_weights[number].tensor;
    if (is_as_noted(number)) return m_torch.is_at(tensor, m_weights[number].address);
    if (!m_torch.is_there(tensor, m_call.weights[number].look)) return false;
    if (m_body_bytes == 0 || !m_torch.is_within(tensor, m_body_bytes)) return true;
    const std::byte* const noted = note(number);
    // PyTorch is asked again, because the noted bytes count for all later calls, and another thread's t_() needs no
    // lock of Python: it may have changed the tensor meanwhile.
    if (!m_torch.is_there(tensor, m_call.weights[number].look)) return false;
    m_weights[number].body = noted;
    return true;
}

/// Compares the noted bytes, which is quicker than ten PyTorch functions for each weight.
bool SteadyCall::is_as_noted(std::size_t number) const
{
    const WeightLook& weight = m_weights[number];
    return weight.body != nullptr && weight.body == m_torch.body_of(weight.tensor) &&
           std::memcmp(weight.body, m_bodies.data() + number * m_body_bytes, m_body_bytes) == 0;
}

const std::byte* SteadyCall::note(std::size_t number)
{
    m_weights[number].body = nullptr;
    const std::byte* const body = m_torch.body_of(m_weights[number].tensor);
    std::memcpy(m_bodies.data() + number * m_body_bytes, body, m_body_bytes);
    return body;
}

bool SteadyCall::is_there(Object* weight, const wg_tensor_look& look) const
{
    DlTensor tensor{};
    if (m_call.read_tensor(weight, &tensor) != 0) throw PythonError{};
    return python::is_there(tensor, look);
}

/// Whether all inputs have their descriptions, and none overlaps a state. Overlaps are computed only if an input has
/// moved.
bool SteadyCall::are_inputs_placed(const Registers& registers)
{
    const bool were_judged = std::exchange(m_are_places_judged, false);
    const bool have_moved = place(registers);
    if (!m_are_places_judged) return false;
    m_are_places_judged = (were_judged && !have_moved) || !overlaps_states();
    return m_are_places_judged;
}

/// Sets the inputs' addresses, and returns whether one has moved. Sets m_are_places_judged if all inputs have their
/// descriptions.
bool SteadyCall::place(const Registers& registers)
{
    bool have_moved = false;
    for (std::uint64_t i = 0; i < m_call.input_count; ++i) {
        DlTensor tensor{};
        const wg_tensor_look& look = m_call.input_looks[i];
        if (m_call.read_tensor(registers[m_call.inputs[i]].get(), &tensor) != 0) throw PythonError{};
        const std::uint64_t address = address_of(tensor);
        if (!is_as_described(tensor, look) || (look.alignment != 0 && address % look.alignment != 0)) return false;
        have_moved |= std::exchange(*look.address, address - m_call.base) != address - m_call.base;
    }
    m_are_places_judged = true;
    return have_moved;
}

bool SteadyCall::overlaps_states() const
{
    const std::span states(m_call.states, m_call.state_count);
    for (std::uint64_t i = 0; i < m_call.input_count; ++i) {
        const std::uint64_t first = *m_call.input_looks[i].address + m_call.base;
        const std::uint64_t end = first + m_call.extents[i];
        const auto behind = std::ranges::upper_bound(states, first, {}, &wg_memory_range::end);
        if (first < end && behind != states.end() && behind->first < end) return true;
    }
    return false;
}

std::vector<Ref> SteadyCall::made_outputs() const
{
    std::vector<Ref> made;
    for (const wg_result_maker& one : std::span(m_call.outputs, m_call.output_count)) {
        made.push_back(Api::checked(m_api.call_with(one.make, one.arguments, nullptr)));
        if (one.address == nullptr) continue;
        DlTensor tensor{};
        if (m_call.read_tensor(made.back().get(), &tensor) != 0) throw PythonError{};
        *one.address = address_of(tensor) - m_call.base;
    }
    return made;
}

wg_stream* SteadyCall::stream()
{
    const Ref native = Api::checked(m_api.call(m_call.native_stream, m_call.device_index, nullptr));
    const unsigned long long number = number_of(native);
    if (m_stream != nullptr && number == m_native_stream) return m_stream;
    const Ref handle = Api::checked(m_api.call(m_call.stream, native.get(), nullptr));
    auto* const found = std::bit_cast<wg_stream*>(static_cast<std::uintptr_t>(number_of(handle)));
    m_native_stream = number;
    return found;
}

unsigned long long SteadyCall::number_of(const Ref& handle) const
{
    const unsigned long long found = m_api.number_of(handle.get());
    if (found != ~0ULL) return found;
    m_api.set_error_text(*m_api.type_error, "the stream is not a number"); // replaces Python's own message
    throw PythonError{};
}

wg_status SteadyCall::launched()
{
    void* const thread = m_api.leave_lock(); // a busy device may block the launch
    const wg_status status = m_call.enqueue(m_call.function, m_stream, m_call.args, m_call.arg_count, nullptr);
    m_api.enter_lock(thread);
    return status;
}

Ref SteadyCall::result(const std::vector<Ref>& outputs, const Registers& registers) const
{
    if (m_call.result == nullptr) return outputs[m_call.output].again();
    return Api::checked(m_api.call(m_call.result, all_of(outputs).get(), values(registers).get(), nullptr));
}

Ref SteadyCall::all_of(const std::vector<Ref>& outputs) const
{
    Ref all = Api::checked(m_api.tuple_new(static_cast<std::ptrdiff_t>(outputs.size())));
    for (std::size_t i = 0; i < outputs.size(); ++i)
        Api::checked(m_api.tuple_set(all.get(), static_cast<std::ptrdiff_t>(i), outputs[i].again().leave()));
    return all;
}

Ref SteadyCall::values(const Registers& registers) const
{
    Ref found = Api::checked(m_api.tuple_new(static_cast<std::ptrdiff_t>(m_call.value_count)));
    for (std::uint64_t i = 0; i < m_call.value_count; ++i)
        Api::checked(
            m_api.tuple_set(found.get(), static_cast<std::ptrdiff_t>(i), registers[m_call.values[i]].again().leave()));
    return found;
}

Ref SteadyCall::otherwise() const
{
    m_api.retain(m_call.otherwise);
    return Ref(m_call.otherwise);
}

namespace {

/// The same as PyMethodDef in methodobject.h.
struct Method {
    const char* name;
    Object* (*call)(Object*, Object* const*, std::ptrdiff_t);
    int flags;
    const char* doc;
};

Object* call_steadily(Object* capsule, Object* const* given, std::ptrdiff_t count)
{
    const Api& api = *Api::of_process();
    auto* const call = static_cast<SteadyCall*>(api.in_capsule(capsule, k_capsule));
    if (call == nullptr) return nullptr;
    if (count != 2 || Api::kind_of(given[0]) != api.tuple_type || Api::kind_of(given[1]) != api.dict_type) {
        api.set_error_text(*api.type_error, "expected a tuple and a dict");
        return nullptr;
    }
    try {
        return (*call)(given[0], given[1]);
    } catch (const std::bad_alloc&) {
        return api.no_memory();
    }
}

void destroy(Object* capsule) { delete static_cast<SteadyCall*>(Api::of_process()->in_capsule(capsule, k_capsule)); }

} // namespace

Ref callable_of(const Api& api, const wg_steady_call& call)
{
    constexpr int k_fast_call = 0x80; // METH_FASTCALL
    static const Method method = {"steady_call", call_steadily, k_fast_call, nullptr};
    auto made = std::make_unique<SteadyCall>(api, call);
    const Ref capsule = Api::checked(api.new_capsule(made.get(), k_capsule, destroy));
    static_cast<void>(made.release());
    // `kept` is passed as the callable's module, so that Python's garbage collector sees the reference.
    return Api::checked(api.new_callable(const_cast<Method*>(&method), capsule.get(), call.kept));
}

} // namespace warmgraph::python
