// Uses the facade as a service does, with a device. The argument is the cache folder.
#include <cstdio>
#include <exception>
#include <string>

#include <warmgraph/warmgraph.hpp>

namespace wg = warmgraph;

int main(int argc, char** argv)
{
    if (argc != 2) return 2;
    try {
        const wg::Cache cache({.model = "consumer", .cache_dir = argv[1]});
        if (!cache.disabled_reason().empty()) {
            std::printf("caching is off: %s\n", cache.disabled_reason().c_str());
            return 1;
        }
        const std::string i32(wg::to_string(wg::i32));
        std::printf("warmgraph %s in %s, %s\n", std::string(wg::version()).c_str(), cache.directory().c_str(),
                    i32.c_str());
    } catch (const std::exception& error) {
        std::printf("unexpected: %s\n", error.what());
        return 1;
    }
    // The type of the exception must be the same inside and outside of a shared library.
    try {
        const wg::Cache refused({.model = "../elsewhere", .cache_dir = argv[1]});
    } catch (const wg::Exception& error) {
        return error.code() == wg::ErrorCode::invalid_argument ? 0 : 1;
    }
    return 1;
}
