// A new folder for each test. It is removed at the end of the test.
#pragma once

#include <filesystem>
#include <string>

#include <stdlib.h>

#include "matchers.hpp"

namespace warmgraph::test {

class TempDir {
public:
    explicit TempDir(const std::filesystem::path& where = std::filesystem::temp_directory_path())
    {
        std::string pattern = (where / "warmgraph-test-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed for " + pattern);
        m_path = pattern;
    }
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;
    ~TempDir()
    {
        std::error_code ignored;
        std::filesystem::remove_all(m_path, ignored);
    }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return m_path; }

private:
    std::filesystem::path m_path;
};

} // namespace warmgraph::test
