// Python's functions, looked up in the process. They are functions of the stable ABI, so that one library serves all
// versions of Python and needs none of Python's headers.
#pragma once

#include <cstddef>
#include <utility>

namespace warmgraph::python {

using Object = void;

/// Thrown when a Python exception is set.
struct PythonError {};

class Ref;

/// Functions of Python's stable ABI (https://docs.python.org/3/c-api/stable.html). The caller holds Python's lock.
struct Api {
    /// Returns the process's functions; null if the process does not export Python's functions. Thread-safe.
    [[nodiscard]] static const Api* of_process() noexcept;

    int (*dict_next)(Object*, std::ptrdiff_t*, Object**, Object**) = nullptr;
    std::ptrdiff_t (*dict_size)(Object*) = nullptr;
    Object* (*dict_get)(Object*, Object*) = nullptr; ///< returns a borrowed reference
    int (*dict_set)(Object*, Object*, Object*) = nullptr;
    std::ptrdiff_t (*list_size)(Object*) = nullptr;
    Object* (*list_get)(Object*, std::ptrdiff_t) = nullptr; ///< returns a borrowed reference
    Object* (*tuple_pack)(std::ptrdiff_t, ...) = nullptr;
    Object* (*tuple_new)(std::ptrdiff_t) = nullptr;
    int (*tuple_set)(Object*, std::ptrdiff_t, Object*) = nullptr; ///< takes over the item's reference
    std::ptrdiff_t (*tuple_size)(Object*) = nullptr;
    Object* (*tuple_get)(Object*, std::ptrdiff_t) = nullptr; ///< returns a borrowed reference
    int (*contains)(Object*, Object*) = nullptr;
    std::ptrdiff_t (*size)(Object*) = nullptr;
    int (*compare)(Object*, Object*,
                   int) = nullptr; ///< compares by Py_EQ or another operator: 1, 0, or -1 with an exception
    double (*double_of)(Object*) = nullptr;
    Object* (*int_of)(Object*) = nullptr;
    Object* (*int_of_number)(long long) = nullptr;
    unsigned long long (*number_of)(Object*) = nullptr; ///< all ones with an exception if the object is not a number
    long long (*long_of)(Object*, int*) = nullptr;
    Object* (*text_of)(const char*, std::ptrdiff_t) = nullptr;
    const char* (*utf8_of)(Object*, std::ptrdiff_t*) = nullptr;
    Object* (*attributes)(Object*, void*) = nullptr;
    Object* (*attribute)(Object*, Object*) = nullptr;
    /// Returns the place where an object keeps the dictionary of its attributes; null if it has no such place. The
    /// function belongs to no stable ABI, so the pointer is null if this Python does not have it.
    Object** (*attributes_place)(Object*) = nullptr;
    Object* (*call)(Object*, ...) = nullptr; ///< the arguments end with a null pointer
    Object* (*call_alone)(Object*) = nullptr;
    Object* (*call_with)(Object*, Object*, Object*) = nullptr; ///< takes a tuple, and a dict or a null pointer
    void* (*type_slot)(Object*, int) = nullptr;
    void (*clear_error)() = nullptr;
    int (*is_error)(Object*) = nullptr; ///< whether the exception that is set is of this class
    void (*take_error)(Object**, Object**, Object**) = nullptr;
    void (*set_error)(Object*, Object*, Object*) = nullptr; ///< takes over the references
    void (*set_error_text)(Object*, const char*) = nullptr;
    Object* (*no_memory)() = nullptr;
    void (*retain)(Object*) = nullptr;
    void (*release)(Object*) = nullptr;
    void* (*leave_lock)() = nullptr;
    void (*enter_lock)(void*) = nullptr;
    Object* (*new_callable)(void*, Object*,
                            Object*) = nullptr; ///< takes a PyMethodDef, an object, and another object that it keeps
    Object* (*new_capsule)(void*, const char*, void (*)(Object*)) = nullptr;
    void* (*in_capsule)(Object*, const char*) = nullptr;
    Object* yes = nullptr;
    Object *bool_type = nullptr, *str_type = nullptr, *dict_type = nullptr;
    Object *list_type = nullptr, *tuple_type = nullptr;
    Object **exception = nullptr, **type_error = nullptr; ///< classes

    /// Returns the object's class (Py_TYPE), borrowed. Extension modules of the stable ABI have this access compiled
    /// in.
    [[nodiscard]] static Object* kind_of(Object* object) noexcept { return static_cast<Object**>(object)[1]; }

    /// Returns the dictionary of the object's attributes, borrowed; null if it has no attributes of its own.
    [[nodiscard]] Object* attributes_of(Object* object) const noexcept
    {
        Object* const found = attributes(object, nullptr);
        if (found == nullptr)
            clear_error();
        else
            release(found);
        return found;
    }

    /// Takes an object that Python returned. Throws Raised if it is null.
    [[nodiscard]] static Ref checked(Object* owned);
    /// Takes a status that Python returned. Throws Raised if it is less than 0.
    static void checked(int status)
    {
        if (status < 0) throw PythonError{};
    }
};

/// Owns a reference to an object.
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
    /// Returns another reference to the same object.
    [[nodiscard]] Ref again() const
    {
        Api::of_process()->retain(m_object);
        return Ref(m_object);
    }
    /// Gives the reference to the caller.
    [[nodiscard]] Object* leave() noexcept { return std::exchange(m_object, nullptr); }

private:
    Object* m_object = nullptr;
};

inline Ref Api::checked(Object* owned)
{
    if (owned == nullptr) throw PythonError{};
    return Ref(owned);
}

} // namespace warmgraph::python
