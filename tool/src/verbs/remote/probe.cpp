// `warmgraph doctor --remote`: tries each call of a remote's store, and says what it lacks.
#include <algorithm>
#include <span>

#include <sys/random.h>

#include "commands.hpp"
#include "verbs/doctor_report.hpp"
#include "verbs/remote/transfers.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/base/process.hpp"
#include "warmgraph/remote/backends.hpp"

namespace warmgraph::tool {

namespace {

/// One call, or one thing that the remote needs.
struct Check {
    std::string name;
    Result<void> done{};
    double ms = 0;
    std::string cure{};
    bool is_needed = false; ///< without it the remote cannot be used
};

struct ProbedRemote {
    std::string label;
    std::vector<Check> checks{};
    [[nodiscard]] bool is_usable() const
    {
        return std::ranges::none_of(checks, [](const Check& one) { return one.is_needed && !one.done; });
    }
};

/// Tries the calls in order. The object that it puts has a random name, and is removed at the end.
class Probe {
public:
    Probe(const Context& context, const remote::Settings& settings) : m_clock(context.clock), m_settings(settings)
    {
        m_bytes.resize(512);
        static_cast<void>(::getrandom(m_bytes.data(), 256, 0)); // the name need only be new
        m_name = store::ImageName{sha256(m_bytes)};
    }

    ProbedRemote run(const cachefmt::Trust& trust)
    {
        check_keys(trust);
        auto backend = remote::backend_of(m_settings);
        if (!backend) {
            add({"reach", std::unexpected(backend.error()), 0, cure_of(backend.error()), true});
            return std::move(m_result);
        }
        m_tier = backend->get();
        if (!try_call("reach", true, [&] { return missing(); })) return std::move(m_result);
        try_call("second request", false, [&] { return missing(); });
        try_call(
            "list", false, [&]() -> Result<void> { return void_of(m_tier->list(k_empty_scope)); },
            "`warmgraph pull` and look-ups by function find nothing in this store");
        try_call("clock", false, [&] { return right_time(); });
        if (m_settings.read_only)
            try_call("read", true, [&] { return missing(whole()); });
        else
            try_writing();
        return std::move(m_result);
    }

private:
    void add(Check check) { m_result.checks.push_back(std::move(check)); }

    template <class T>
    static Result<void> void_of(const Result<T>& result)
    {
        if (!result) return std::unexpected(result.error());
        return {};
    }

    template <class Call>
    bool try_call(const char* name, bool is_needed, Call call, const char* cure = nullptr)
    {
        const auto begin = m_clock.steady();
        Check check{.name = name, .done = call(), .is_needed = is_needed};
        check.ms = std::chrono::duration<double, std::milli>(m_clock.steady() - begin).count();
        const bool is_done = check.done.has_value();
        if (!is_done)
            check.cure = cure != nullptr && check.done.error().code == ErrorCode::unsupported
                             ? cure
                             : cure_of(check.done.error());
        add(std::move(check));
        return is_done;
    }

    void try_writing()
    {
        if (!try_call("write", true, [&] { return m_tier->put(m_name, m_bytes, store::PutMode::replace); })) return;
        try_call("read", true, [&] { return expect(whole(), m_bytes); });
        constexpr std::uint64_t k_at = 100, k_part = 32;
        try_call(
            "range", false,
            [&] {
                return expect({.bytes = k_part, .whole = false, .offset = k_at},
                              std::span(m_bytes).subspan(k_at, k_part));
            },
            "it is used without ranges: a header costs the whole entry; use a server that answers range requests");
        try_call(
            "create only", false, [&] { return create_only(); },
            "nothing to do: an image that is there already is sent again, which is the same one");
        try_call(
            "remove", false,
            [&]() -> Result<void> {
                if (auto done = m_tier->remove(m_name); !done) return done;
                return missing();
            },
            "set `ttl` in the URL, or let the server remove old objects");
    }

    /// S3 refuses requests whose time is more than 15 minutes off, and ages are compared between machines.
    Result<void> right_time()
    {
        constexpr std::chrono::seconds k_most{60};
        const auto ahead = remote::clock_ahead(m_settings);
        if (!ahead) return std::unexpected(ahead.error());
        if (!*ahead || std::chrono::abs(**ahead) <= k_most)
            return {}; // a folder has this machine's clock, or tells none
        return fail(ErrorCode::stale, "its clock is {} s {} this machine's, expected at most {} s",
                    std::chrono::abs(**ahead).count(), **ahead > k_most ? "ahead of" : "behind", k_most.count());
    }

    Result<void> create_only()
    {
        Bytes others = m_bytes;
        std::ranges::reverse(others);
        if (auto done = m_tier->put(m_name, others, store::PutMode::create_only); !done) return done;
        auto stays = expect(whole(), m_bytes);
        if (!stays && stays.error().code == ErrorCode::corrupt)
            return fail(ErrorCode::unsupported, "the store replaces an object that is only to be made");
        return stays;
    }

    [[nodiscard]] static store::ReadLimit whole() { return {.bytes = 4096}; }

    /// The object must not be there.
    Result<void> missing(store::ReadLimit extent = {.bytes = 0, .whole = false})
    {
        const auto found = m_tier->get(m_name, extent);
        if (!found) return std::unexpected(found.error());
        if (*found)
            return fail(ErrorCode::corrupt,
                        "the store has an object that nobody put there, or still has one that was removed");
        return {};
    }

    Result<void> expect(store::ReadLimit extent, std::span<const std::byte> bytes)
    {
        const auto found = m_tier->get(m_name, extent);
        if (!found) return std::unexpected(found.error());
        if (!*found) return fail(ErrorCode::not_found, "the object that was put is not there");
        if (!(*found)->bytes) return std::unexpected((*found)->bytes.error());
        if (!std::ranges::equal(*(*found)->bytes, bytes))
            return fail(ErrorCode::corrupt, "the store gives other bytes than were put");
        return {};
    }

    void check_keys(const cachefmt::Trust& trust)
    {
        const bool has_key = trust.sign_with || !trust.accepted.empty();
        Check check{.name = "signatures", .is_needed = true};
        if (!has_key && !m_settings.allow_unsigned) {
            check.done = fail(ErrorCode::untrusted, "only signed objects are used, and no key is accepted");
            check.cure = "set WARMGRAPH_ACCEPT_KEYS_FILE, or allow-unsigned in the URL (docs/trust.md)";
        }
        add(std::move(check));
    }

    std::string cure_of(const Error& error) const
    {
        switch (error.code) {
        case ErrorCode::permission_denied:
            return "correct user, password or token; a store that is only read has `read-only` in its URL";
        case ErrorCode::no_space: return "make room in the store, or set `ttl` in the URL";
        case ErrorCode::unsupported: return "install the library, or use another kind of remote (docs/install.md)";
        case ErrorCode::stale: return "set both clocks, e.g. by NTP: S3 refuses a difference of 15 minutes";
        case ErrorCode::not_found: return "correct the path in the URL";
        case ErrorCode::corrupt: return "see whether the URL names this kind of store, and a proxy changes answers";
        default: break;
        }
        return "correct host, port and path; see that the server runs; set a longer connect-timeout in the URL";
    }

    static inline const store::Scope k_empty_scope{
        store::ArtifactKind::entries,
        cachefmt::FunctionKey{"doctor_static_none_000000000000", "world1global_rank0", "none"}};

    Clock& m_clock;
    const remote::Settings& m_settings;
    Bytes m_bytes;
    store::Name m_name;
    store::Tier* m_tier = nullptr;
    ProbedRemote m_result{.label = m_settings.label};
};

Json to_json(const ProbedRemote& remote)
{
    Json checks = Json::array();
    for (const Check& one : remote.checks)
        checks.push_back({{"check", one.name},
                          {"works", one.done.has_value()},
                          {"ms", one.ms},
                          {"problem", one.done ? Json() : Json(one.done.error().message)},
                          {"cure", one.cure.empty() ? Json() : Json(one.cure)}});
    return {{"remote", remote.label}, {"usable", remote.is_usable()}, {"checks", checks}};
}

std::string to_text(const Context& context, const ProbedRemote& remote)
{
    using enum Table::Align;
    Table table({{"check"}, {"works"}, {"time", right}}, 2);
    std::string lacks;
    for (const Check& one : remote.checks) {
        table.add({one.name, one.done ? "yes" : "no", one.ms == 0 ? "-" : time_text(one.ms)});
        if (!one.done)
            lacks += fmt::format("  {}: {}\n    {}\n", one.name, printable(one.done.error().message, 1000), one.cure);
    }
    return fmt::format("{}: {}\n{}{}", context.style.paint(Colour::bold, printable(remote.label, 400)),
                       remote.is_usable() ? context.style.paint(Colour::green, "can be used")
                                          : context.style.paint(Colour::red, "cannot be used"),
                       table.text(context.style), lacks);
}

/// The state of a remote that nobody connects to. A folder is not opened, because that makes it.
Result<std::string> state_of(const remote::Settings& settings)
{
    if (settings.scheme == remote::Scheme::file) {
        std::error_code error;
        return std::filesystem::is_directory(settings.path, error) ? "a folder" : "a folder that does not exist yet";
    }
    const auto backend = remote::backend_of(settings);
    if (!backend) return std::unexpected(backend.error());
    return "its library is there";
}

} // namespace

void report_remotes(Report& report)
{
    Json list = Json::array();
    std::vector<std::pair<std::string, std::string>> lines;
    const auto settings = remote::parse_list(environment("WARMGRAPH_REMOTE").value_or(""), environment);
    if (!settings) report.problems.emplace_back(settings.error().message, "correct or unset WARMGRAPH_REMOTE");
    for (const remote::Settings& one : settings ? *settings : std::vector<remote::Settings>{}) {
        const auto state = state_of(one);
        std::string text = state ? *state : "not used: " + state.error().message;
        if (one.read_only) text += ", read-only";
        if (one.allow_unsigned) text += ", unsigned objects are used";
        if (!state)
            report.problems.emplace_back(fmt::format("remote {} is not used: {}", one.label, state.error().message),
                                         "install the library, or name another remote in WARMGRAPH_REMOTE");
        list.push_back({{"remote", one.label},
                        {"read_only", one.read_only},
                        {"allow_unsigned", one.allow_unsigned},
                        {"problem", state ? Json() : Json(state.error().message)}});
        lines.emplace_back(one.label, std::move(text));
    }
    if (!lines.empty()) {
        lines.emplace_back("", "`warmgraph doctor --remote` tries them");
        report.section("remotes") = std::move(lines);
    }
    report.document["remotes"] = std::move(list);
}

Result<int> doctor_of_remotes(const Context& context, const std::vector<std::string>& urls)
{
    const auto remotes = remotes_of(urls);
    if (!remotes) return std::unexpected(remotes.error());
    const auto trust = trust_of({});
    if (!trust) return std::unexpected(trust.error());
    bool is_usable = true;
    Json list = Json::array();
    std::string text;
    for (const remote::Settings& settings : *remotes) {
        const ProbedRemote remote = Probe(context, settings).run(*trust);
        is_usable = is_usable && remote.is_usable();
        list.push_back(to_json(remote));
        text += to_text(context, remote);
    }
    if (context.output == Output::json)
        print(Json{{"remotes", list}});
    else
        print(text);
    return is_usable ? k_ok : k_found_wrong;
}

} // namespace warmgraph::tool
