#include "library_case.hpp"

#include <dlfcn.h>

namespace warmgraph::test::libraries {

Library::Library(std::initializer_list<const char*> names)
{
    // Tries the loader's folders, and then CUDA's default folder, as the backend does for NVRTC.
    for (const char* folder : {"", "/usr/local/cuda/lib64/"})
        for (const char* name : names) {
            if (m_handle == nullptr) m_handle = ::dlopen((std::string{folder} + name).c_str(), RTLD_NOW | RTLD_GLOBAL);
            if (m_handle != nullptr && m_name.empty()) m_name = name;
        }
    if (m_handle == nullptr)
        throw Lacking(std::string{*names.begin()} + " is neither found by the loader (LD_LIBRARY_PATH) nor in " +
                      "/usr/local/cuda/lib64");
}

void* Library::find_address(const char* name) const
{
    void* const found = ::dlsym(m_handle, name);
    if (found == nullptr) throw Lacking(m_name + " has no " + name);
    return found;
}

} // namespace warmgraph::test::libraries
