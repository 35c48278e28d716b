// Collects the lines of the log while this object lives.
#pragma once

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <spdlog/sinks/ostream_sink.h>

#include "warmgraph/base/log.hpp"

namespace warmgraph::test {

class LogLines {
public:
    LogLines() : m_sink(std::make_shared<spdlog::sinks::ostream_sink_mt>(m_text))
    {
        m_sink->set_pattern("%v");
        log().sinks().push_back(m_sink);
    }
    LogLines(const LogLines&) = delete;
    LogLines& operator=(const LogLines&) = delete;
    ~LogLines() { std::erase(log().sinks(), m_sink); }

    [[nodiscard]] std::vector<std::string> with(const std::string& part) const
    {
        std::vector<std::string> lines;
        std::istringstream text(m_text.str());
        for (std::string line; std::getline(text, line);)
            if (line.contains(part)) lines.push_back(line);
        return lines;
    }

private:
    std::ostringstream m_text;
    spdlog::sink_ptr m_sink;
};

} // namespace warmgraph::test
