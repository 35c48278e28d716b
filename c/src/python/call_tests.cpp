#include "call_tests.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>

namespace warmgraph::python {

namespace {

constexpr int k_py_tp_descr_get = 54; // typeslots.h of Python: https://docs.python.org/3/c-api/type.html

} // namespace

TensorQuestions::TensorQuestions(const Api& api, const wg_steady_call& call)
    : m_api(api),
      m_requires_grad(call.requires_grad),
      m_is_negated(call.is_negated),
      m_is_conjugated(call.is_conjugated),
      m_get(m_requires_grad == nullptr ? nullptr
                                       : std::bit_cast<Object* (*)(Object*, Object*, Object*)>(
                                             api.type_slot(Api::kind_of(m_requires_grad), k_py_tp_descr_get)))
{
    if (m_requires_grad != nullptr && m_get == nullptr) throw PythonError{}; // it is not a descriptor
}

bool TensorQuestions::requires_grad(Object* tensor) const
{
    if (m_requires_grad == nullptr) return m_torch.requires_grad(tensor);
    return is_true(m_get(m_requires_grad, tensor, Api::kind_of(tensor)));
}

bool TensorQuestions::is_lazy(Object* tensor) const
{
    return is_true(m_api.call(m_is_negated, tensor, nullptr)) || is_true(m_api.call(m_is_conjugated, tensor, nullptr));
}

bool TensorQuestions::is_true(Object* owned) const { return Api::checked(owned).get() == m_api.yes; }

CallTests::CallTests(const Api& api, const wg_steady_call& call)
    : m_api(api), m_tests(call.tests, call.test_count), m_around(call.around, call.around_count), m_questions(api, call)
{
}

bool CallTests::hold(Registers& registers) const
{
    std::vector<Object*> apart;
    return std::ranges::all_of(m_tests, [&](const wg_test& one) { return holds(one, registers, apart); });
}

bool CallTests::holds(const wg_test& test, Registers& registers, std::vector<Object*>& apart) const
{
    if (test.kind >= wg_test_code) return is_code_as_it_was(test);
    Object* const object = registers[test.from].get();
    switch (test.kind) {
    case wg_test_items: return items(test, registers);
    case wg_test_named: return values(test, registers);
    case wg_test_attributes: registers[test.to] = Api::checked(m_api.attributes(object, nullptr)); return true;
    case wg_test_call:
        registers[test.to] = Api::checked(test.other == nullptr ? m_api.call_alone(test.object)
                                                                : m_api.call(test.object, test.other, nullptr));
        return true;
    case wg_test_type: return Api::kind_of(object) == test.object;
    case wg_test_is: return object == test.object;
    case wg_test_equals: return equals(object, test.object);
    case wg_test_number: return is_number(test, object);
    case wg_test_bits: return std::bit_cast<std::uint64_t>(m_api.double_of(object)) == test.number;
    case wg_test_empty: return m_api.size(test.object) == 0;
    case wg_test_apart: return is_apart(object, apart);
    case wg_test_tensor: return tensor(test, object);
    default: return false;
    }
}

/// A function that throws counts as a function with another result.
bool CallTests::is_code_as_it_was(const wg_test& test)
try {
    if (test.kind == wg_test_code) {
        const auto found = std::bit_cast<std::uint64_t (*)(void*, void*)>(test.object)(test.other, nullptr);
        constexpr std::uint64_t k_byte = 0xff, k_bits = 8;
        return (found >> (k_bits * test.from) & k_byte) == test.number;
    }
    if (test.kind == wg_test_code_numbers) return are_numbers_as_they_were(test);
    const auto* const found = std::bit_cast<const void* const* (*)(void*)>(test.object)(test.other);
    return test.kind == wg_test_code_null ? found[0] == nullptr : found[0] == found[1];
} catch (...) { // exceptions of any class: another library throws them
    return false;
}

bool CallTests::are_numbers_as_they_were(const wg_test& test)
{
    std::array<std::uint32_t, 16> found{};
    std::bit_cast<void (*)(void*, void*)>(test.object)(found.data(), test.other);
    std::uint64_t expected = test.number;
    return test.from <= sizeof expected &&
           std::ranges::all_of(std::span(found).first(test.from), [&](std::uint32_t one) {
               constexpr std::uint64_t k_byte = 0xff, k_bits = 8;
               return one == (std::exchange(expected, expected >> k_bits) & k_byte);
           });
}

bool CallTests::items(const wg_test& test, Registers& registers) const
{
    Object* const object = registers[test.from].get();
    const bool is_list = Api::kind_of(object) == m_api.list_type;
    const std::ptrdiff_t count = is_list ? m_api.list_size(object) : m_api.tuple_size(object);
    if (count != static_cast<std::ptrdiff_t>(test.number)) return false;
    for (std::ptrdiff_t i = 0; i < count; ++i)
        registers[test.to + static_cast<std::size_t>(i)] =
            borrowed(is_list ? m_api.list_get(object, i) : m_api.tuple_get(object, i));
    return true;
}

bool CallTests::values(const wg_test& test, Registers& registers) const
{
    Object* const object = registers[test.from].get();
    const std::ptrdiff_t count = m_api.tuple_size(test.object);
    if (m_api.dict_size(object) != count) return false;
    std::ptrdiff_t position = 0;
    std::ptrdiff_t at = 0;
    std::vector<Object*> keys;
    for (Object *key = nullptr, *value = nullptr; m_api.dict_next(object, &position, &key, &value) != 0; ++at) {
        keys.push_back(key);
        registers[test.to + static_cast<std::size_t>(at)] = borrowed(value);
    }
    // Only texts are compared, because comparing them runs no code of the caller, which could change the dictionary.
    return std::ranges::all_of(keys, [&, i = std::ptrdiff_t{0}](Object* key) mutable {
        Object* const expected = m_api.tuple_get(test.object, i++);
        return key == expected || (Api::kind_of(key) == m_api.str_type && equals(key, expected));
    });
}

bool CallTests::is_number(const wg_test& test, Object* object) const
{
    const Ref number = Api::checked(m_api.int_of(object));
    int overflow = 0;
    const long long value = m_api.long_of(number.get(), &overflow);
    return overflow == 0 && value == std::bit_cast<std::int64_t>(test.number);
}

bool CallTests::is_apart(Object* object, std::vector<Object*>& apart) const
{
    if (std::ranges::find(apart, object) != apart.end() ||
        std::ranges::binary_search(m_around, std::bit_cast<std::uint64_t>(object)))
        return false;
    apart.push_back(object);
    return true;
}

bool CallTests::tensor(const wg_test& test, Object* object) const
{
    return !m_questions.requires_grad(object) &&
           ((test.number & wg_tensor_test_not_lazy) == 0 || !m_questions.is_lazy(object)) &&
           ((test.number & wg_tensor_test_no_attributes) == 0 || has_no_attributes(object));
}

bool CallTests::has_no_attributes(Object* object) const
{
    return m_api.dict_size(Api::checked(m_api.attributes(object, nullptr)).get()) == 0;
}

bool CallTests::equals(Object* one, Object* other) const
{
    constexpr int k_equal = 2; // Py_EQ
    const int found = m_api.compare(one, other, k_equal);
    Api::checked(found);
    return found != 0;
}

Ref CallTests::borrowed(Object* object) const
{
    m_api.retain(object);
    return Ref(object);
}

} // namespace warmgraph::python
