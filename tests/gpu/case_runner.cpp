#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>

#include "cache_options.hpp"
#include "case.hpp"

namespace warmgraph::test {

namespace {

std::string& the_prepared_folder()
{
    static std::string folder;
    return folder;
}

/// Values of a type. They are small enough that products do not overflow, and the same in every process.
std::vector<std::byte> contents(const Memory& memory, std::uint32_t seed)
{
    std::mt19937 random{seed};
    std::uniform_real_distribution<float> real{-1.0F, 1.0F};
    std::vector<std::byte> bytes(static_cast<std::size_t>(memory.count) * size_of(memory.dtype));
    for (std::size_t i = 0; i < static_cast<std::size_t>(memory.count); ++i) {
        const float value = real(random);
        std::byte* const to = bytes.data() + i * size_of(memory.dtype);
        if (memory.dtype == f32) {
            std::memcpy(to, &value, sizeof value);
        } else if (memory.dtype == bf16) {
            std::uint32_t bits = 0;
            std::memcpy(&bits, &value, sizeof bits);
            const auto high = static_cast<std::uint16_t>(bits >> 16);
            std::memcpy(to, &high, sizeof high);
        } else {
            const auto number = static_cast<std::int32_t>(value * 1000.0F);
            std::memcpy(to, &number, std::min<std::size_t>(sizeof number, size_of(memory.dtype)));
        }
    }
    return bytes;
}

class Process {
public:
    Process(Case work, Mode mode, const std::string& folder) : m_case(std::move(work)), m_mode(mode), m_folder(folder)
    {
    }

    int run()
    {
        allocate();
        if (m_mode == Mode::record) m_device.prepare_recording();
        if (m_case.own_scalars) m_own_scalars = m_case.own_scalars(m_mode);
        const CacheOptions options =
            cache_options("hard", m_folder + "/cache",
                          m_mode == Mode::native                                          ? Policy::off
                          : m_mode == Mode::record || m_case.expected == Outcome::refused ? Policy::read_write
                                                                                          : Policy::require_hit);
        Cache cache{options};
        Function function = cache.wrap(m_case.name, m_device, spec(), m_case.work);
        const bool refused = m_case.expected == Outcome::refused;
        const Outcome later = m_mode == Mode::native ? Outcome::eager : refused ? Outcome::refused : Outcome::replayed;
        call_all(function, m_mode == Mode::record ? m_case.expected : later, later);
        m_device.synchronize();
        write_results(m_folder + (m_mode == Mode::native   ? "/native.bin"
                                  : m_mode == Mode::record ? "/record.bin"
                                                           : "/replay.bin"));
        if (m_mode == Mode::record && m_case.expected == Outcome::recorded) call_again(function);
        return 0;
    }

private:
    /// The replaying process allocates in another order, and further memory in between, so that all addresses differ.
    void allocate()
    {
        if (m_mode == Mode::replay)
            for (const std::uint64_t bytes : {1'000ULL, 70'000ULL, 3'000'000ULL, 40'000'000ULL})
                m_junk.push_back(m_device.allocate(bytes));
        std::vector<std::size_t> order(m_case.memory.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = m_mode == Mode::replay ? order.size() - 1 - i : i;
        std::map<std::size_t, Buffer> made;
        for (const std::size_t i : order) {
            const auto bytes = contents(m_case.memory[i], static_cast<std::uint32_t>(i + 1));
            Buffer buffer = m_device.allocate(bytes.size());
            buffer.upload(bytes);
            made.emplace(i, std::move(buffer));
            if (m_mode == Mode::replay) m_junk.push_back(m_device.allocate(777));
        }
        for (auto& [index, buffer] : made) m_buffers.push_back(std::move(buffer));
    }
    [[nodiscard]] Spec spec() const
    {
        Spec result;
        for (std::size_t i = 0; i < m_case.memory.size(); ++i) {
            const Memory& memory = m_case.memory[i];
            switch (memory.kind) {
            case Memory::Kind::input: result.inputs.push_back(input(memory.name, memory.dtype, {memory.count})); break;
            case Memory::Kind::output:
                result.outputs.push_back(output(memory.name, memory.dtype, {memory.count}));
                break;
            case Memory::Kind::state: result.states.push_back(state(memory.name, m_buffers[i])); break;
            case Memory::Kind::weights: result.states.push_back(weights(memory.name, m_buffers[i])); break;
            }
        }
        result.scalars = m_case.scalars;
        result.frozen_variables = m_case.frozen_variables;
        return result;
    }
    Outcome call(Function& function)
    {
        std::vector<Arg> args = m_own_scalars;
        for (std::size_t i = 0; i < m_case.memory.size(); ++i)
            if (m_case.memory[i].kind == Memory::Kind::input || m_case.memory[i].kind == Memory::Kind::output)
                args.emplace_back(m_case.memory[i].name, m_buffers[i]);
        for (const auto& [name, value] : m_case.scalar_values) args.emplace_back(name, value);
        return function.call(args);
    }
    void call_all(Function& function, Outcome first, Outcome later)
    {
        for (int i = 0; i < m_case.calls; ++i) {
            Outcome outcome = call(function);
            if (i == 0 && set_up_only(outcome, function)) {
                put_contents();
                outcome = call(function);
            }
            check(outcome, i == 0 ? first : later, function);
        }
    }
    /// Whether the call was not recorded because it prepared something: outside the recorder's stream, the callable
    /// made an object for later calls (a library's handle, a module), or it works together with other code. The next
    /// call is recorded.
    [[nodiscard]] bool set_up_only(Outcome outcome, const Function& function) const
    {
        if (m_mode == Mode::native) return false;
        const std::string reason = function.report().reason;
        const auto says = [&](const char* words) { return reason.find(words) != std::string::npos; };
        return (outcome == Outcome::refused && says("outside the recorder's stream")) ||
               (outcome == Outcome::eager && says("waits for events or semaphores of the caller"));
    }
    void put_contents()
    {
        for (std::size_t i = 0; i < m_case.memory.size(); ++i)
            m_buffers[i].upload(contents(m_case.memory[i], static_cast<std::uint32_t>(i + 1)));
    }
    void check(Outcome outcome, Outcome expected, const Function& function) const
    {
        const std::string reason = function.report().reason;
        if (outcome != expected)
            throw std::runtime_error("outcome " + std::string(to_string(outcome)) + ", expected " +
                                     std::string(to_string(expected)) + ": " + reason);
        if (outcome == Outcome::refused && reason.find(m_case.refusal) == std::string::npos)
            throw std::runtime_error("refused for '" + reason + "', expected '" + m_case.refusal + "'");
    }
    /// The recording process replays, too: calls with the same contents must give the same results.
    void call_again(Function& function)
    {
        const auto first = results();
        put_contents();
        call_all(function, Outcome::replayed, Outcome::replayed);
        m_device.synchronize();
        if (m_case.tolerance == 0 && results() != first)
            throw std::runtime_error("the second call gave another result");
    }
    [[nodiscard]] std::vector<std::byte> results() const
    {
        std::vector<std::byte> all;
        for (std::size_t i = 0; i < m_case.memory.size(); ++i) {
            if (m_case.memory[i].kind == Memory::Kind::input || m_case.memory[i].kind == Memory::Kind::weights)
                continue;
            const auto bytes = m_buffers[i].read<std::byte>();
            all.insert(all.end(), bytes.begin(), bytes.end());
        }
        return all;
    }
    void write_results(const std::string& path) const
    {
        const auto bytes = results();
        std::ofstream{path, std::ios::binary}.write(reinterpret_cast<const char*>(bytes.data()),
                                                    static_cast<std::streamsize>(bytes.size()));
    }

    Case m_case;
    Mode m_mode;
    std::string m_folder;
    Device m_device{"cuda:0"};
    std::vector<Buffer> m_junk, m_buffers;
    std::vector<Arg> m_own_scalars;
};

} // namespace

const std::string& prepared_folder() { return the_prepared_folder(); }

const std::vector<std::pair<std::string, MakeCase>>& cases()
{
    static const auto all = [] {
        std::vector<std::pair<std::string, MakeCase>> list;
        add_kernel_cases(list);
        add_module_cases(list);
        add_shape_cases(list);
        add_memory_cases(list);
        add_triton_cases(list);
#ifdef WARMGRAPH_TEST_LIBRARIES
        add_library_cases(list);
#endif
        return list;
    }();
    return all;
}

int run_child(const std::string& name, const std::string& mode, const std::string& folder)
{
    try {
        const auto found = std::ranges::find(cases(), name, &std::pair<std::string, MakeCase>::first);
        if (found == cases().end()) throw std::runtime_error("no such case");
        the_prepared_folder() = folder + "/prepared";
        if (mode == "prepare") return found->second().prepare();
        return Process{found->second(),
                       mode == "native"   ? Mode::native
                       : mode == "record" ? Mode::record
                                          : Mode::replay,
                       folder}
            .run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s, %s: %s\n", name.c_str(), mode.c_str(), error.what());
        return 1;
    }
}

} // namespace warmgraph::test
