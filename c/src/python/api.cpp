#include "api.hpp"

#include <bit>
#include <optional>

#include <dlfcn.h>

namespace warmgraph::python {

namespace {

/// Looks up symbols, and remembers whether all of them were found.
class Symbols {
public:
    template <class T>
    Symbols& into(T& pointer, const char* name)
    {
        pointer = std::bit_cast<T>(::dlsym(RTLD_DEFAULT, name));
        m_all = m_all && pointer != nullptr;
        return *this;
    }
    [[nodiscard]] bool all() const { return m_all; }

private:
    bool m_all = true;
};

std::optional<Api> loaded()
{
    Api api;
    const bool all = Symbols{}
                         .into(api.dict_next, "PyDict_Next")
                         .into(api.dict_size, "PyDict_Size")
                         .into(api.dict_get, "PyDict_GetItemWithError")
                         .into(api.dict_set, "PyDict_SetItem")
                         .into(api.list_size, "PyList_Size")
                         .into(api.list_get, "PyList_GetItem")
                         .into(api.tuple_pack, "PyTuple_Pack")
                         .into(api.tuple_new, "PyTuple_New")
                         .into(api.tuple_set, "PyTuple_SetItem")
                         .into(api.tuple_size, "PyTuple_Size")
                         .into(api.tuple_get, "PyTuple_GetItem")
                         .into(api.contains, "PySequence_Contains")
                         .into(api.size, "PyObject_Size")
                         .into(api.compare, "PyObject_RichCompareBool")
                         .into(api.double_of, "PyFloat_AsDouble")
                         .into(api.int_of, "PyNumber_Long")
                         .into(api.int_of_number, "PyLong_FromLongLong")
                         .into(api.number_of, "PyLong_AsUnsignedLongLong")
                         .into(api.long_of, "PyLong_AsLongLongAndOverflow")
                         .into(api.text_of, "PyUnicode_FromStringAndSize")
                         .into(api.utf8_of, "PyUnicode_AsUTF8AndSize")
                         .into(api.attributes, "PyObject_GenericGetDict")
                         .into(api.attribute, "PyObject_GetAttr")
                         .into(api.call, "PyObject_CallFunctionObjArgs")
                         .into(api.call_alone, "PyObject_CallNoArgs")
                         .into(api.call_with, "PyObject_Call")
                         .into(api.type_slot, "PyType_GetSlot")
                         .into(api.clear_error, "PyErr_Clear")
                         .into(api.is_error, "PyErr_ExceptionMatches")
                         .into(api.take_error, "PyErr_Fetch")
                         .into(api.set_error, "PyErr_Restore")
                         .into(api.set_error_text, "PyErr_SetString")
                         .into(api.no_memory, "PyErr_NoMemory")
                         .into(api.retain, "Py_IncRef")
                         .into(api.release, "Py_DecRef")
                         .into(api.leave_lock, "PyEval_SaveThread")
                         .into(api.enter_lock, "PyEval_RestoreThread")
                         .into(api.new_callable, "PyCFunction_NewEx")
                         .into(api.new_capsule, "PyCapsule_New")
                         .into(api.in_capsule, "PyCapsule_GetPointer")
                         .into(api.yes, "_Py_TrueStruct")
                         .into(api.bool_type, "PyBool_Type")
                         .into(api.str_type, "PyUnicode_Type")
                         .into(api.dict_type, "PyDict_Type")
                         .into(api.list_type, "PyList_Type")
                         .into(api.tuple_type, "PyTuple_Type")
                         .into(api.exception, "PyExc_Exception")
                         .into(api.type_error, "PyExc_TypeError")
                         .all();
    static_cast<void>(Symbols{}.into(api.attributes_place, "_PyObject_GetDictPtr"));
    // In a Python that was built to trace references, the class lies elsewhere in an object, so kind_of() cannot be
    // used.
    return all && Api::kind_of(api.yes) == api.bool_type ? std::optional(api) : std::nullopt;
}

} // namespace

const Api* Api::of_process() noexcept
{
    static const std::optional<Api> found = loaded();
    return found ? &*found : nullptr;
}

} // namespace warmgraph::python
