#include "child.hpp"

#include <fstream>
#include <iterator>
#include <map>

#include <nlohmann/json.hpp>

#include "native.hpp"
#include "numbers.hpp"

namespace warmgraph::test::libraries {

namespace {

using Bytes = std::vector<std::byte>;

constexpr int k_calls = 3;              // how many calls follow the first call
constexpr int k_other_tries = 2;        // how many more first calls are tried, if the library's preparations spoil one
constexpr std::uint32_t k_stale = 1000; // seed for the contents of outputs before a call; each call gets another seed

bool is_result(const Region& region) { return region.kind == Kind::output || region.kind == Kind::state; }

/// A case with its memory, run in one mode.
class Process {
public:
    Process(const Cases::Entry& entry, Mode mode, const std::filesystem::path& folder, Finding& finding)
        : m_name(entry.name), m_case(entry.make(m_device)), m_mode(mode), m_folder(folder), m_finding(finding)
    {
        m_finding.is_counting = m_case.is_counting;
    }
    void run()
    {
        allocate();
        run_mode();
    }

private:
    /// The replaying process allocates in another order, and further memory in between, so that all addresses differ.
    void allocate()
    {
        const bool is_replay = m_mode == Mode::replay;
        if (is_replay)
            for (const std::uint64_t bytes : {1'000ULL, 70'000ULL, 3'000'000ULL, 40'000'000ULL})
                m_junk.push_back(m_device.allocate(bytes));
        const std::size_t count = m_case.regions.size();
        for (std::size_t i = 0; i < count; ++i) {
            const Region& region = m_case.regions[is_replay ? count - 1 - i : i];
            const auto bytes = static_cast<std::uint64_t>(region.count) * size_of(region.dtype);
            m_buffers.emplace(region.name, m_device.allocate(bytes));
            if (is_replay) m_junk.push_back(m_device.allocate(777));
        }
    }
    void run_mode()
    {
        if (m_mode == Mode::record) m_device.prepare_recording(); // must come before the library loads its code
        if (m_mode != Mode::replay && m_case.set_up) m_case.set_up();
        // The set-up work of the library does not belong to a call.
        if (m_mode != Mode::replay) {
            const Native& native = Native::instance();
            native.check(native.driver().cuCtxSynchronize(), "cuCtxSynchronize");
        }
        Cache cache{options()};
        Function function = cache.wrap(m_name, m_device, spec(), m_case.work);
        if (m_mode == Mode::native)
            run_native(function);
        else
            run_compared(function);
    }

    [[nodiscard]] CacheOptions options() const
    {
        CacheOptions result;
        result.model = "libraries";
        result.cache_dir = (m_folder / "cache").string();
        result.world_size = 1;
        result.global_rank = 0;
        result.policy = m_mode == Mode::native   ? Policy::off
                        : m_mode == Mode::record ? Policy::read_write
                                                 : Policy::require_hit;
        return result;
    }
    [[nodiscard]] Spec spec() const
    {
        Spec result;
        result.version = "1"; // with this version no build id is needed; each run has a new folder
        result.code = m_case.code;
        result.no_addresses = m_case.no_addresses;
        result.undeclared = m_case.undeclared;
        for (const Region& region : m_case.regions) {
            const Buffer& memory = m_buffers.at(region.name);
            switch (region.kind) {
            case Kind::input: result.inputs.push_back(input(region.name, region.dtype, {region.count})); break;
            case Kind::output: result.outputs.push_back(output(region.name, region.dtype, {region.count})); break;
            case Kind::state: result.states.push_back(state(region.name, memory, region.dtype)); break;
            case Kind::weights: result.states.push_back(weights(region.name, memory, region.dtype)); break;
            }
        }
        return result;
    }

    void put_contents()
    {
        const AddressOf address_of = [this](std::string_view name) {
            return m_buffers.at(std::string{name}).memory().address.flat();
        };
        std::uint32_t seed = 1;
        for (const Region& region : m_case.regions) {
            const auto own = seed++;
            const bool is_output = region.kind == Kind::output;
            Bytes bytes = region.contents ? region.contents(address_of)
                                          : random_contents(region, is_output ? own + k_stale * m_turn : own);
            if (bytes.size() != m_buffers.at(region.name).size())
                throw std::logic_error(region.name + ": its contents have another size");
            m_buffers.at(region.name).upload(bytes);
            m_before[region.name] = std::move(bytes);
        }
        ++m_turn;
    }
    /// Makes one call on fresh contents. When it returns, the results are in the buffers.
    Outcome call(Function& function)
    {
        put_contents();
        std::vector<Arg> args;
        for (const Region& region : m_case.regions)
            if (region.kind == Kind::input || region.kind == Kind::output)
                args.emplace_back(region.name, m_buffers.at(region.name));
        const Outcome outcome = function.call(args);
        m_device.synchronize();
        m_finding.calls.emplace_back(warmgraph::to_string(outcome));
        return outcome;
    }

    /// Writes the results of the first call. The second call shows whether each call gives the same results.
    void run_native(Function& function)
    {
        m_finding.outcome = warmgraph::to_string(call(function));
        bool is_changed = false;
        for (const Region& region : m_case.regions)
            if (is_result(region)) is_changed = is_changed || result(region) != m_before.at(region.name);
        if (!is_changed) throw std::runtime_error("the native call changed nothing");
        for (const Region& region : m_case.regions) {
            if (!is_result(region)) continue;
            const Bytes bytes = result(region);
            std::ofstream{file_of(region), std::ios::binary}.write(reinterpret_cast<const char*>(bytes.data()),
                                                                   static_cast<std::streamsize>(bytes.size()));
        }
        call(function);
        if (!m_case.is_counting) compare("a second native call");
    }
    void run_compared(Function& function)
    {
        Outcome outcome = call(function);
        compare("call 1");
        for (int i = 0; i < k_other_tries && is_spoilt_by_set_up(outcome, function); ++i) {
            outcome = call(function);
            compare_later();
        }
        m_finding.outcome = warmgraph::to_string(outcome);
        m_finding.reason = function.report().reason;
        for (int i = 0; i < k_calls; ++i) {
            call(function);
            compare_later();
        }
    }
    /// Whether the library's set-up spoilt the call: when a library is first used, it makes streams or loads kernels
    /// outside the recorder's stream. That call is refused, and the next one is recorded.
    [[nodiscard]] bool is_spoilt_by_set_up(Outcome outcome, const Function& function) const
    {
        return m_mode == Mode::record && outcome == Outcome::refused &&
               function.report().reason.find("outside the recorder's stream") != std::string::npos;
    }
    /// If the numbers continue from call to call, only the first call gives the native results.
    void compare_later()
    {
        if (!m_case.is_counting) compare("call " + std::to_string(m_finding.calls.size()));
    }
    void compare(const std::string& call_name)
    {
        for (const Region& region : m_case.regions) {
            if (!is_result(region) || !m_finding.difference.empty()) continue;
            std::ifstream file{file_of(region), std::ios::binary};
            const std::vector<char> chars{std::istreambuf_iterator<char>{file}, {}};
            if (const auto found = difference(region, std::as_bytes(std::span{chars}), result(region)))
                m_finding.difference = call_name + " (" + m_finding.calls.back() + "): " + *found;
        }
    }
    [[nodiscard]] Bytes result(const Region& region) const { return m_buffers.at(region.name).read<std::byte>(); }
    [[nodiscard]] std::filesystem::path file_of(const Region& region) const
    {
        return m_folder / ("native-" + region.name + ".bin");
    }

    Device m_device{"cuda:0"};
    std::string m_name;
    Case m_case;
    Mode m_mode;
    std::filesystem::path m_folder;
    Finding& m_finding; ///< has the findings so far if the run ends early
    std::vector<Buffer> m_junk;
    std::map<std::string, Buffer> m_buffers;
    std::map<std::string, Bytes> m_before;
    std::uint32_t m_turn = 1;
};

std::filesystem::path finding_file(Mode mode, const std::filesystem::path& folder)
{
    return folder / (std::string{to_string(mode)} + ".json");
}

} // namespace

std::string_view to_string(Mode mode) noexcept
{
    switch (mode) {
    case Mode::native: return "native";
    case Mode::record: return "record";
    case Mode::replay: return "replay";
    }
    return "?";
}

std::optional<Mode> parse_mode(std::string_view text) noexcept
{
    for (const Mode mode : {Mode::native, Mode::record, Mode::replay})
        if (to_string(mode) == text) return mode;
    return std::nullopt;
}

Finding run_here(const Cases::Entry& entry, Mode mode, const std::filesystem::path& folder)
{
    Finding finding;
    try {
        Process{entry, mode, folder, finding}.run();
    } catch (const Lacking& lacking) {
        finding.lacking = lacking.what();
    } catch (const std::exception& error) {
        finding.error = error.what();
    }
    return finding;
}

void write_finding(const Finding& finding, Mode mode, const std::filesystem::path& folder)
{
    const nlohmann::json text{
        {"outcome", finding.outcome},        {"reason", finding.reason}, {"calls", finding.calls},
        {"difference", finding.difference},  {"error", finding.error},   {"lacking", finding.lacking},
        {"is_counting", finding.is_counting}};
    // A message of a library may not be UTF-8.
    std::ofstream{finding_file(mode, folder)} << text.dump(1, ' ', false, nlohmann::json::error_handler_t::replace)
                                              << "\n";
}

std::optional<Finding> read_finding(Mode mode, const std::filesystem::path& folder)
{
    std::ifstream file{finding_file(mode, folder)};
    const auto text = nlohmann::json::parse(file, nullptr, false);
    if (!text.is_object()) return std::nullopt;
    Finding finding;
    finding.outcome = text.value("outcome", "");
    finding.reason = text.value("reason", "");
    finding.calls = text.value("calls", std::vector<std::string>{});
    finding.difference = text.value("difference", "");
    finding.error = text.value("error", "");
    finding.lacking = text.value("lacking", "");
    finding.is_counting = text.value("is_counting", false);
    return finding;
}

} // namespace warmgraph::test::libraries
