// A fixture with a cache folder and entries in it. It runs the command on the folder, in a clean environment.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect_error.hpp"
#include "temp_dir.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::test {

struct CommandResult {
    int status = -1; ///< the exit status, or 1000 + the signal if the command crashed
    std::string out, error;
    [[nodiscard]] nlohmann::json json() const { return nlohmann::json::parse(out); }
};

class CommandTest : public ::testing::Test {
protected:
    const cachefmt::FunctionKey k_decode{"tiny-llama_static_clgraphcache_0123456789ab", "world1global_rank0", "decode"};

    /// Runs the command. `arguments` are words for the shell. Unless they name another cache folder, it is the test's
    /// folder.
    CommandResult run(const std::string& arguments, const std::map<std::string, std::string>& environment = {},
                      const std::string& output = "out.txt") const
    {
        const int status =
            std::system((line_of(arguments, environment) + " >" + output + " 2>error.txt </dev/null").c_str());
        return {status_of(status), text_of(m_dir.path() / "out.txt"), text_of(m_dir.path() / "error.txt")};
    }

    /// Runs the command in the same way, and expects this exit status.
    CommandResult run(int status, const std::string& arguments,
                      const std::map<std::string, std::string>& environment = {}) const
    {
        CommandResult result = run(arguments, environment);
        EXPECT_EQ(result.status, status) << arguments << ": " << result.out << result.error;
        return result;
    }

    /// Runs the command in the same way. Its standard input is a pipe with the output of the shell command `writer`.
    CommandResult run_behind(const std::string& writer, const std::string& arguments,
                             const std::map<std::string, std::string>& environment = {}) const
    {
        const std::string line = "cd '" + m_dir.path().string() + "' && " + writer + " | (" +
                                 line_of(arguments, environment) + " >out.txt 2>error.txt)";
        const int status = std::system(line.c_str());
        return {status_of(status), text_of(m_dir.path() / "out.txt"), text_of(m_dir.path() / "error.txt")};
    }

    /// Runs the command on a terminal in which `answer` is typed. `out` has all text of the terminal.
    CommandResult run_on_terminal(const std::string& arguments, const std::string& answer,
                                  const std::map<std::string, std::string>& environment = {{"TERM", "xterm"}}) const
    {
        const std::string line = line_of(arguments, environment);
        int terminal = -1;
        const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
        if (child < 0) throw std::runtime_error("forkpty failed");
        if (child == 0) {
            ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
            ::_exit(127);
        }
        CommandResult result;
        if (::write(terminal, answer.data(), answer.size()) < 0) result.error = "the answer was not typed";
        std::array<char, 4096> shown{};
        // read() fails when the last process on the terminal has closed the terminal.
        for (ssize_t count = 0; (count = ::read(terminal, shown.data(), shown.size())) > 0;)
            result.out.append(shown.data(), static_cast<std::size_t>(count));
        int status = 0;
        ::waitpid(child, &status, 0);
        ::close(terminal);
        result.status = status_of(status);
        return result;
    }

    [[nodiscard]] std::filesystem::path cache() const { return m_dir.path() / "cache"; }
    [[nodiscard]] std::filesystem::path dir() const { return m_dir.path(); }

    std::unique_ptr<store::LocalStore> open_store() const { return take(store::LocalStore::open(cache())); }

    static cachefmt::Guards sample_guards()
    {
        using cachefmt::Role;
        return {.facts = {{"config.dtype", "f32", Role::must_match},
                          {"env.WG_TEST", "4", Role::must_match},
                          {"host.name", "here", Role::advisory}},
                .tensors = {{"token", DType::i32, {1}, {1}, "opencl:0", 256, 0}},
                .values = {{"layers", DType::i64, 2}}};
    }

    /// The guards of a recording that was made when this fact of the environment had that value.
    static cachefmt::Guards guards_of_machine(const std::string& fact, const std::string& value)
    {
        auto guards = sample_guards();
        guards.facts.push_back({fact, value, cachefmt::Role::must_match});
        std::ranges::sort(guards.facts, {}, &cachefmt::Fact::name);
        return guards;
    }

    /// An entry with one fill of the region "token".
    static cachefmt::Entry sample_entry(const cachefmt::FunctionKey& key, cachefmt::Guards guards = sample_guards())
    {
        cachefmt::Entry entry;
        entry.header.key = {key, cachefmt::guards_digest(guards)};
        entry.header.guards = std::move(guards);
        entry.header.info = {.created = "2026-11-20T10:11:12Z",
                             .created_by = "warmgraph 0.1.0",
                             .record_ms = 12.5,
                             .answer_ms = 40.5,
                             .verification = "bitwise",
                             .node_count = 1,
                             .image_count = 0,
                             .scalar_proofs = {},
                             .reason = {},
                             .difference = {}};
        entry.graph.regions = {{"token", cachefmt::RegionKind::input, 4, 4, {}}};
        entry.graph.nodes = {cachefmt::FillNode{{}, Bytes(4), 4}};
        return entry;
    }

    static cachefmt::Entry tombstone(const cachefmt::FunctionKey& key, cachefmt::Guards guards = sample_guards())
    {
        cachefmt::Entry entry = sample_entry(key, std::move(guards));
        entry.header.kind = cachefmt::EntryKind::tombstone;
        entry.header.info.reason = "recompiled";
        entry.header.info.difference = {"node 0 (fill): size 4 against 8"};
        entry.header.info.node_count = 0;
        entry.graph = {};
        return entry;
    }

    static void publish(store::LocalStore& store, const cachefmt::Entry& entry) { take(store.publish(entry)); }

    [[nodiscard]] std::filesystem::path path_of(const cachefmt::Entry& entry) const
    {
        const auto& key = entry.header.key;
        return cache() / key.function.model_info / key.function.rank / key.function.function /
               (to_hex(key.guards_digest) + ".wg");
    }

    /// Makes a folder of other programs where the cache should be. It has files that earlier versions of `check
    /// --repair` and `clear` took for their own.
    void plant_foreign_files() const
    {
        const std::string key = k_decode.model_info + "/" + k_decode.rank + "/decode/";
        const std::string digest(64, 'a');
        for (const std::string& path :
             {std::string("a/b/c/usage.json"), std::string("a/b/c/.usage.lock"),
              std::string("a/b/c/.lock-0123456789abcdef"), "a/b/c/" + digest + ".wg", std::string("a/.tmp-1"),
              std::string("quarantine/notes"), std::string("quarantine/notes.reason"), "images/aa/" + digest,
              key + "usage.json", key + ".lock-0123456789abcdef", key + digest + ".wg"}) {
            std::filesystem::create_directories((cache() / path).parent_path());
            std::ofstream(cache() / path) << "of somebody";
            std::filesystem::last_write_time(cache() / path,
                                             std::filesystem::file_time_type::clock::now() - std::chrono::hours(48));
        }
        std::filesystem::create_directories(cache() / "empty" / "folder");
    }

    static void damage(const std::filesystem::path& path)
    {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekg(-1, std::ios::end);
        const char last = static_cast<char>(file.get());
        file.seekp(-1, std::ios::end);
        file.put(static_cast<char>(last ^ 1));
        if (!file) throw std::runtime_error("cannot damage " + path.string());
    }

    /// Every file below a folder, with its content. Anything that is not a file has an empty content.
    static std::map<std::string, std::string> snapshot(const std::filesystem::path& folder)
    {
        std::map<std::string, std::string> files;
        for (const auto& item : std::filesystem::recursive_directory_iterator(folder))
            files[item.path().string()] = item.is_regular_file() ? text_of(item.path()) : "";
        return files;
    }

    static std::string text_of(const std::filesystem::path& path)
    {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }

private:
    static int status_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status); }

    std::string line_of(const std::string& arguments, const std::map<std::string, std::string>& environment) const
    {
        std::string line = "cd '" + m_dir.path().string() + "' && env -i PATH=/usr/bin:/bin POCL_CACHE_DIR='" +
                           m_dir.path().string() + "/pocl' HOME='" + m_dir.path().string() + "' WARMGRAPH_CACHE_DIR='" +
                           cache().string() + "' WARMGRAPH_CUDA_DRIVER=libnone.so"; // hides CUDA on any machine
        for (const char* kept :
             {"OCL_ICD_VENDORS", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"})
            if (const char* value = std::getenv(kept)) line += std::string(" ") + kept + "='" + value + "'";
        for (const auto& [name, value] : environment) line += " " + name + "='" + value + "'";
        return line + " " WARMGRAPH_COMMAND " " + arguments;
    }

    TempDir m_dir;
};

} // namespace warmgraph::test
