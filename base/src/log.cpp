#include "warmgraph/base/log.hpp"

#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace warmgraph {
namespace {

/// "%*": the level where it matters to the reader, so that info lines stay plain.
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

spdlog::logger* make_logger()
{
    // Not in spdlog's registry: an application's own spdlog::shutdown() must not take it away.
    auto* logger = new spdlog::logger("warmgraph", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<SeverityFlag>('*').set_pattern("warmgraph: %*%v");
    logger->set_formatter(std::move(formatter));
    logger->set_level(spdlog::level::warn);
    logger->flush_on(spdlog::level::trace);

    const char* text = std::getenv("WARMGRAPH_LOG");
    if (text == nullptr || *text == '\0') return logger;
    if (const auto level = parse_level(text)) {
        logger->set_level(*level);
    } else {
        logger->warn("WARMGRAPH_LOG is '{}', expected trace, debug, info, warn, error or off: using warn", text);
    }
    return logger;
}

} // namespace

spdlog::logger& log() noexcept
{
    // Never destroyed, so that destructors of other static objects may still log.
    static spdlog::logger* const k_logger = make_logger();
    return *k_logger;
}

} // namespace warmgraph
