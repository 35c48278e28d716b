#include "warmgraph/base/log.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string_view>
#include <utility>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "warmgraph/base/printable.hpp"

namespace warmgraph {
namespace {

/// Formats "%*": the level of warnings and errors; nothing for lower levels, so that their lines stay plain.
class SeverityFlag final : public spdlog::custom_flag_formatter {
public:
    void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override
    {
        const std::string_view text = message.level >= spdlog::level::err    ? "error: "
                                      : message.level == spdlog::level::warn ? "warning: "
                                                                             : "";
        out.append(text.data(), text.data() + text.size());
    }
    std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<SeverityFlag>(); }
};

/// Formats "%v": the message with untrusted text made safe for a terminal.
class SafeText final : public spdlog::custom_flag_formatter {
public:
    void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override
    {
        const std::string text = printable_lines({message.payload.data(), message.payload.size()});
        out.append(text.data(), text.data() + text.size());
    }
    std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<SafeText>(); }
};

std::optional<spdlog::level::level_enum> parse_level(std::string_view text)
{
    constexpr std::pair<std::string_view, spdlog::level::level_enum> k_levels[] = {
        {"trace", spdlog::level::trace}, {"debug", spdlog::level::debug}, {"info", spdlog::level::info},
        {"warn", spdlog::level::warn},   {"error", spdlog::level::err},   {"off", spdlog::level::off},
    };
    for (const auto& [name, level] : k_levels) {
        if (name == text) return level;
    }
    return std::nullopt;
}

/// Writes to the receiver if one is set, else to standard error.
class RoutingSink final : public spdlog::sinks::sink {
public:
    static RoutingSink& instance()
    {
        static RoutingSink& sink = *new RoutingSink; // never destroyed: destructors of other static objects may log
        return sink;
    }

    bool route_to(LogReceiver receiver)
    {
        if (s_is_receiving) return false;
        const std::unique_lock lock(m_mutex);
        m_receiver = std::move(receiver);
        return true;
    }

    void log(const spdlog::details::log_msg& message) override
    {
        if (s_is_receiving) return;
        const std::shared_lock lock(m_mutex);
        if (!m_receiver) return m_standard_error.log(message);
        struct ReceiveScope {
            ReceiveScope() { s_is_receiving = true; }
            ~ReceiveScope() { s_is_receiving = false; }
        } const receiving;
        m_receiver(message.level, {message.payload.data(), message.payload.size()});
    }
    void flush() override { m_standard_error.flush(); }
    void set_pattern(const std::string& pattern) override { m_standard_error.set_pattern(pattern); }
    void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override
    {
        m_standard_error.set_formatter(std::move(formatter));
    }

private:
    spdlog::sinks::stderr_sink_mt m_standard_error;
    std::shared_mutex m_mutex; ///< shared while a line is written
    LogReceiver m_receiver;
    static thread_local bool s_is_receiving;
};

thread_local bool RoutingSink::s_is_receiving = false;

std::atomic<spdlog::level::level_enum> g_unlimited = spdlog::level::warn; ///< the level without limit_log()

std::optional<spdlog::level::level_enum> level_of_environment()
{
    const char* text = std::getenv("WARMGRAPH_LOG");
    return text != nullptr ? parse_level(text) : std::nullopt;
}

spdlog::logger* make_logger()
{
    // The logger is not in spdlog's registry: an application's own spdlog::shutdown() must not remove it.
    auto* logger =
        new spdlog::logger("warmgraph", std::shared_ptr<RoutingSink>(&RoutingSink::instance(),
                                                                     [](RoutingSink*) { /* never destroyed */ }));
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<SeverityFlag>('*').add_flag<SafeText>('v').set_pattern("warmgraph: %*%v");
    logger->set_formatter(std::move(formatter));
    const auto level = level_of_environment();
    logger->set_level(level.value_or(spdlog::level::warn));
    logger->flush_on(spdlog::level::trace);
    const char* text = std::getenv("WARMGRAPH_LOG");
    if (text != nullptr && *text != '\0' && !level)
        logger->warn("WARMGRAPH_LOG is '{}', expected trace, debug, info, warn, error or off: using warn", text);
    return logger;
}

} // namespace

spdlog::logger& log() noexcept
{
    // Never destroyed, so that destructors of other static objects may still log.
    static spdlog::logger* const k_logger = make_logger();
    return *k_logger;
}

bool set_log_receiver(LogReceiver receiver)
{
    const auto level = receiver ? spdlog::level::info : spdlog::level::warn;
    if (!RoutingSink::instance().route_to(std::move(receiver))) return false;
    g_unlimited = level_of_environment().value_or(level);
    log().set_level(g_unlimited);
    return true;
}

void limit_log(spdlog::level::level_enum least) { log().set_level(std::max(g_unlimited.load(), least)); }

} // namespace warmgraph
