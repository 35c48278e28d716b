// Python's functions as the process has them: of its stable ABI, so that one library serves all Pythons, and no header of
// theirs is needed.
#pragma once

#include <cstddef>
#include <utility>

namespace warmgraph::python {

using Object = void;

/// Call them with Python's lock held. https://docs.python.org/3/c-api/stable.html says what each of them does.
struct Api {
    /// None where the process exports no Python. Thread-safe.
    [[nodiscard]] static const Api* of_process() noexcept;

    int (*dict_next)(Object*, std::ptrdiff_t*, Object**, Object**) = nullptr;
    std::ptrdiff_t (*dict_size)(Object*) = nullptr;
    Object* (*dict_new)() = nullptr;
    Object* (*dict_get)(Object*, Object*) = nullptr; ///< borrowed
    int (*dict_set)(Object*, Object*, Object*) = nullptr;
    int (*list_append)(Object*, Object*) = nullptr;
    std::ptrdiff_t (*list_size)(Object*) = nullptr;
    Object* (*list_get)(Object*, std::ptrdiff_t) = nullptr; ///< borrowed
    int (*list_set_slice)(Object*, std::ptrdiff_t, std::ptrdiff_t, Object*) = nullptr;
    Object* (*tuple_pack)(std::ptrdiff_t, ...) = nullptr;
    Object* (*tuple_get)(Object*, std::ptrdiff_t) = nullptr; ///< borrowed
    int (*contains)(Object*, Object*) = nullptr;
    Object* (*int_of_pointer)(void*) = nullptr;
    long long (*long_of)(Object*, int*) = nullptr;
    Object* (*text_of)(const char*, std::ptrdiff_t) = nullptr;
    const char* (*utf8_of)(Object*, std::ptrdiff_t*) = nullptr;
    Object* (*repr)(Object*) = nullptr;
    Object* (*type)(Object*) = nullptr;
    Object* (*attributes)(Object*, void*) = nullptr;
    Object* (*attribute)(Object*, Object*) = nullptr;
    Object* (*call)(Object*, ...) = nullptr; ///< arguments up to a null pointer
    int (*is_true)(Object*) = nullptr;
    int (*is_instance)(Object*, Object*) = nullptr;
    void (*clear_error)() = nullptr;
    Object* (*no_memory)() = nullptr;
    void (*retain)(Object*) = nullptr;
    void (*release)(Object*) = nullptr;
    Object* none = nullptr;
    Object* yes = nullptr;
    Object *bool_type = nullptr, *int_type = nullptr, *float_type = nullptr, *str_type = nullptr, *dict_type = nullptr;

    /// Borrowed: its object holds it.
    [[nodiscard]] Object* kind_of(Object* object) const noexcept
    {
        Object* const found = type(object);
        release(found);
        return found;
    }
};

/// A reference that is owned.
class Ref {
public:
    Ref() = default;
    explicit Ref(Object* owned) noexcept : m_object(owned) {}
    Ref(Ref&& other) noexcept : m_object(std::exchange(other.m_object, nullptr)) {}
    Ref& operator=(Ref&& other) noexcept
    {
        std::swap(m_object, other.m_object);
        return *this;
    }
    Ref(const Ref&) = delete;
    Ref& operator=(const Ref&) = delete;
    ~Ref()
    {
        if (m_object != nullptr) Api::of_process()->release(m_object);
    }
    [[nodiscard]] Object* get() const noexcept { return m_object; }

private:
    Object* m_object = nullptr;
};

} // namespace warmgraph::python
