// Runs the program victim, with the shim or without it, and checks the folder that it leaves.
#pragma once

#include <cerrno>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim_report.hpp"
#include "store_fixture.hpp"

namespace warmgraph::test {

/// The settings of the shim (see Plan in file_shim.cpp).
struct Interference {
    std::string does = "nothing"; ///< "kill", "fail", "short", or nothing
    std::uint64_t nth = 0;
    std::string counts = "changes"; ///< "all", "changes", "opens" or "writes"
    bool for_ever = false;
    int error = 0;
};

struct ProcessResult {
    int status = 0; ///< the exit status, or 1000 + the number of the signal
    std::string output, errors;

    [[nodiscard]] bool says(std::string_view text) const { return output.contains(text); }
};

class VictimTest : public StoreTest {
protected:
    VictimTest()
    {
        m_root = m_place / "cache";
        fs::create_directory(m_place);
        const fs::path file = m_dir.path() / "report";
        std::ofstream(file) << std::string(sizeof(ShimReport), '\0');
        const int opened = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
        void* const shared = ::mmap(nullptr, sizeof(ShimReport), PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
        ::close(opened);
        if (shared == MAP_FAILED) throw std::runtime_error("mmap failed");
        m_report = static_cast<ShimReport*>(shared);
    }
    ~VictimTest() override { ::munmap(m_report, sizeof(ShimReport)); }

    [[nodiscard]] pid_t start(const std::string& action, const Interference& how = {}, unsigned user = 0)
    {
        m_report->operations = m_report->injected = 0;
        m_report->last[0] = '\0';
        std::vector<std::string> words{FAULTS_VICTIM, m_root.string(), action};
        if (user != 0) words.push_back(std::to_string(user));
        std::vector<std::string> variables{"PATH=/usr/bin:/bin", "HOME=" + m_dir.path().string()};
        if (how.does != "nothing") {
            for (const std::string& variable :
                 {"LD_PRELOAD=" + std::string(FAULTS_SHIM), "SHIM_FOLDER=" + m_place.string(), "SHIM_DOES=" + how.does,
                  "SHIM_COUNTS=" + how.counts, "SHIM_ERRNO=" + std::to_string(how.error),
                  "SHIM_LASTS=" + std::string(how.for_ever ? "for_ever" : "once"),
                  "SHIM_NTH=" + std::to_string(how.nth), "SHIM_REPORT=" + (m_dir.path() / "report").string()})
                variables.push_back(variable);
        }
        posix_spawn_file_actions_t actions;
        ::posix_spawn_file_actions_init(&actions);
        for (const auto& [number, name] : {std::pair{1, "out"}, std::pair{2, "err"}})
            ::posix_spawn_file_actions_addopen(&actions, number, (m_dir.path() / name).c_str(),
                                               O_WRONLY | O_CREAT | O_TRUNC, 0600);
        pid_t child = -1;
        const int failed = ::posix_spawn(&child, FAULTS_VICTIM, &actions, nullptr, pointers_to(words).data(),
                                         pointers_to(variables).data());
        ::posix_spawn_file_actions_destroy(&actions);
        if (failed != 0) throw std::runtime_error("the victim does not start");
        return child;
    }
    [[nodiscard]] ProcessResult wait_for(pid_t child) const
    {
        int status = 0;
        while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
        return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), text_of(m_dir.path() / "out"),
                text_of(m_dir.path() / "err")};
    }
    ProcessResult run(const std::string& action = "run", const Interference& how = {}, unsigned user = 0)
    {
        return wait_for(start(action, how, user));
    }
    /// Removes everything that is where the cache should be.
    void start_anew()
    {
        fs::remove_all(m_place);
        fs::create_directory(m_place);
    }
    void keep_warm()
    {
        ASSERT_EQ(run().status, 0);
        fs::copy(m_place, m_dir.path() / "warm", fs::copy_options::recursive);
    }
    void start_warm()
    {
        fs::remove_all(m_place);
        fs::copy(m_dir.path() / "warm", m_place, fs::copy_options::recursive);
    }
    /// The temporary files of writers. The files of a dead writer stay until the folder is opened the next time.
    [[nodiscard]] std::vector<std::string> temporaries() const
    {
        std::vector<std::string> found;
        for (const auto& item : fs::recursive_directory_iterator(m_place))
            if (item.path().filename().string().starts_with(".tmp-")) found.push_back(item.path().string());
        return found;
    }
    /// Promise P3: even before a repair, no file that has the name of an entry, image or list is incomplete. Files that
    /// a dead writer or loader leaves have other names.
    void expect_nothing_torn()
    {
        const auto store = LocalStore::open(m_root, {.access = store::StoreMode::read_only});
        if (!store) return; // the folder does not exist yet
        const auto damages = take((*store)->check());
        for (const auto& damage : damages) {
            const std::string name = damage.path.filename().string();
            EXPECT_TRUE(name.starts_with(".tmp-") || name.starts_with(".loading-"))
                << damage.path << ": " << damage.error.message;
        }
    }
    /// Promise P4: the next run gives right results, and after it nothing is damaged or left over. The run after that
    /// one replays.
    void expect_usable()
    {
        const ProcessResult next = run();
        EXPECT_EQ(next.status, 0) << next.errors;
        EXPECT_FALSE(next.says("eager")) << next.output << next.errors;
        EXPECT_TRUE(temporaries().empty()) << temporaries().front();
        const auto damages = take(open({.access = store::StoreMode::read_only})->check());
        for (const auto& damage : damages) ADD_FAILURE() << damage.path << ": " << damage.error.message;
        const ProcessResult last = run("read_only");
        EXPECT_TRUE(last.says("replayed replayed")) << last.output << last.errors;
    }
    [[nodiscard]] std::string interfered_with() const
    {
        return fmt::format("operation {}: {}", m_report->operations.load(), m_report->last);
    }

    fs::path m_place = m_dir.path() / "place"; ///< a folder that contains only the cache
    ShimReport* m_report = nullptr;

private:
    static std::vector<char*> pointers_to(std::vector<std::string>& words)
    {
        std::vector<char*> pointers;
        for (std::string& word : words) pointers.push_back(word.data());
        pointers.push_back(nullptr);
        return pointers;
    }
};

} // namespace warmgraph::test
