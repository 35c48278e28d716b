// Each plugin is identified by its own build id, even if two plugins wrap callables of one type and share their
// symbols.
#include <string>

#include <gtest/gtest.h>

#include <dlfcn.h>

namespace warmgraph::test::code_address_test {
namespace {

/// The path of the file whose code contains the address that the plugin's `function` returns.
std::string file_of(const char* plugin, const char* function)
{
    void* const library = ::dlopen(plugin, RTLD_NOW | RTLD_GLOBAL); // this library is never closed
    if (library == nullptr) return ::dlerror();
    void* const symbol = ::dlsym(library, function);
    Dl_info info{};
    if (symbol == nullptr || ::dladdr(reinterpret_cast<const void* (*)()>(symbol)(), &info) == 0) return "unknown";
    return info.dli_fname;
}

TEST(CodeAddress, IsInThePluginThatWraps)
{
    for (const char* function : {"address_of_pointer", "address_of_wrapping"})
        for (const char* plugin : {PLUGIN_A, PLUGIN_B}) EXPECT_EQ(file_of(plugin, function), plugin) << function;
}

} // namespace
} // namespace warmgraph::test::code_address_test
