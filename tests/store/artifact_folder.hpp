// A cache folder, and the files in one of its sub-folders for artifacts.
#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "expect_error.hpp"
#include "faulty_file_system.hpp"
#include "temp_dir.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::test {

class ArtifactFolder : public testing::Test {
protected:
    explicit ArtifactFolder(std::string folder) : m_folder(std::move(folder)) {}

    [[nodiscard]] std::unique_ptr<store::LocalStore> open(const store::StoreOptions& options = {})
    {
        return take(store::LocalStore::open(m_root, options, m_files));
    }
    [[nodiscard]] std::vector<std::filesystem::path> files() const { return files(m_folder); }
    [[nodiscard]] std::vector<std::filesystem::path> files(const std::string& folder) const
    {
        std::vector<std::filesystem::path> found;
        if (!std::filesystem::exists(m_root / folder)) return found;
        for (const auto& item : std::filesystem::recursive_directory_iterator(m_root / folder))
            if (item.is_regular_file()) found.push_back(item.path());
        return found;
    }
    /// Overwrites the only file in the sub-folder.
    void overwrite(std::string_view contents) const { std::ofstream(files().at(0), std::ios::binary) << contents; }

    TempDir m_dir;
    std::filesystem::path m_root = m_dir.path() / "cache";
    FaultyFileSystem m_files;
    std::unique_ptr<store::LocalStore> m_store = open();

private:
    std::string m_folder;
};

} // namespace warmgraph::test
