// A small real program, which wraps a function, calls it twice and checks the results. It runs in 0.02 s, on the fake
// backend. faults_victim FOLDER [run|read_only|refresh|evict|clear|removed] [user id] Its exit status is 0 when both
// results were right, even when the cache failed. It prints the outcomes: "recorded replayed | <why caching is off>".
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <grp.h>
#include <unistd.h>

#include "warmgraph/backends/fake.hpp"
#include "warmgraph/backends/registry.hpp"
#include "warmgraph/warmgraph.hpp"

namespace {

using namespace warmgraph;

constexpr int k_longest_s = 20; ///< seconds; a program that hangs is ended after this time

constexpr const char* k_program = "kernel add_scalar(memory x, value amount, value n)\n"
                                  "kernel copy(memory to, memory from, value n)\n";

CacheOptions options_for(const std::string& folder, const std::string& action)
{
    CacheOptions options;
    options.model = "toy";
    options.cache_dir = folder;
    options.world_size = 1;
    options.global_rank = 0;
    options.policy = action == "refresh"     ? Policy::refresh
                     : action == "read_only" ? Policy::read_only
                                             : Policy::read_write;
    if (action == "evict") options.max_variants = 1;
    return options;
}

/// Calls a function y = x + 2. Each object has its own function name, so that its recording is new.
class Caller {
public:
    Caller(Cache& cache, const Device& device, std::int32_t count)
        : m_device(device),
          m_count(count),
          m_program(device.program("small", k_program)),
          m_x(device.upload<std::int32_t>(std::vector<std::int32_t>(static_cast<std::size_t>(count), 5))),
          m_y(device.upload<std::int32_t>(std::vector<std::int32_t>(static_cast<std::size_t>(count), -1))),
          m_function(wrap(cache))
    {
    }

    Outcome call()
    {
        const Outcome outcome = m_function({{"x", m_x}, {"y", m_y}});
        m_device.synchronize();
        if (m_y.read<std::int32_t>() != std::vector<std::int32_t>(static_cast<std::size_t>(m_count), 7))
            throw std::runtime_error("the result is wrong");
        return outcome;
    }

private:
    Function wrap(Cache& cache)
    {
        Spec spec;
        spec.inputs = {input("x", i32, {m_count})};
        spec.outputs = {output("y", i32, {m_count})};
        spec.code = {m_program};
        return cache.wrap("f", m_device, spec, [this](Recorder& r) {
            const Launch launch{.grid = {1, 1, 1}, .block = {static_cast<std::uint32_t>(m_count), 1, 1}};
            r.stream().launch(m_program, "copy", launch, r["y"], r["x"], m_count);
            r.stream().launch(m_program, "add_scalar", launch, r["y"], std::int32_t{2}, m_count);
        });
    }

    const Device& m_device;
    std::int32_t m_count;
    Program m_program;
    Buffer m_x, m_y;
    Function m_function;
};

const char* word(Outcome outcome)
{
    switch (outcome) {
    case Outcome::replayed: return "replayed";
    case Outcome::recorded: return "recorded";
    default: return "eager";
    }
}

/// Removes the folder as "rm -rf" does. remove_all would stop if the cache's thread removed a file at the same time.
void remove_folder(const std::string& folder)
{
    constexpr int k_tries = 100;
    std::error_code error;
    for (int i = 0; i < k_tries; ++i) {
        std::filesystem::remove_all(folder, error);
        if (!error) return;
    }
    throw std::runtime_error("cannot remove " + folder + ": " + error.message());
}

void run(const std::string& folder, const std::string& action)
{
    backends::register_backend(backends::make_fake_backend());
    const Device device{"fake:0"};
    Cache cache{options_for(folder, action)};
    Caller caller(cache, device, action == "evict" ? 16 : 32);
    const Outcome first = caller.call();
    if (action == "clear") cache.clear();
    if (action == "removed") remove_folder(folder);
    const Outcome second = caller.call();
    std::printf("%s %s | %s\n", word(first), word(second), cache.disabled_reason().c_str());
}

bool become(unsigned user) { return ::setgroups(0, nullptr) == 0 && ::setgid(user) == 0 && ::setuid(user) == 0; }

} // namespace

int main(int argc, char** argv)
try {
    ::alarm(k_longest_s);
    if (argc > 3 && !become(static_cast<unsigned>(std::stoul(argv[3])))) return 4;
    run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "run");
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "victim: %s\n", error.what());
    return 3;
}
