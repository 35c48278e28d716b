// A redis-server of the distribution for tests: a process on a free port of loopback and on a Unix socket. Nothing is
// written to a disk. It ends with this object and, if the test's process dies, with that.
#pragma once

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loopback.hpp"
#include "temp_dir.hpp"
#include "warmgraph/remote/backends.hpp"

namespace warmgraph::test {

/// Runs a program and waits for it; its output is dropped.
inline void run_program(const std::vector<std::string>& words)
{
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int i = 0; i < 3; ++i) ::dup2(nothing, i);
        ::execvp(arguments[0], arguments.data());
        ::_exit(127);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) < 0 || status != 0)
        throw std::runtime_error(words[0] + " failed; ./dev setup installs it");
}

class RedisServer {
public:
    enum class Access { tcp, tls };

    /// `options`: further arguments of redis-server, e.g. {"--maxmemory", "2mb"}.
    explicit RedisServer(std::vector<std::string> options = {}, Access access = Access::tcp)
        : m_options(std::move(options)), m_access(access)
    {
        if (m_access == Access::tls) make_certificates();
        start();
    }
    RedisServer(const RedisServer&) = delete;
    ~RedisServer() { kill(); }

    void kill()
    {
        if (m_pid <= 0) return;
        ::kill(m_pid, SIGKILL);
        while (::waitpid(m_pid, nullptr, 0) < 0 && errno == EINTR) {}
        m_pid = -1;
    }
    /// Begins anew, without data, on the same port.
    void restart()
    {
        kill();
        start();
    }
    void signal(int number) const { ::kill(m_pid, number); }

    [[nodiscard]] remote::Settings settings() const
    {
        using namespace std::chrono_literals;
        remote::Settings settings;
        settings.scheme = m_access == Access::tls ? remote::Scheme::rediss : remote::Scheme::redis;
        settings.host = "127.0.0.1";
        settings.port = m_port;
        settings.label = "redis://127.0.0.1:" + std::to_string(m_port);
        settings.connect_timeout = settings.header_timeout = 10s; // a machine that does other work meanwhile
        return settings;
    }
    [[nodiscard]] remote::Settings socket_settings() const
    {
        remote::Settings settings = this->settings();
        settings.scheme = remote::Scheme::redis_socket;
        settings.path = socket_path();
        settings.label = "unix://" + settings.path;
        return settings;
    }
    /// The certificate that signed the server's; the other one signed nothing.
    [[nodiscard]] std::string trusted() const { return (m_folder.path() / "ca.crt").string(); }
    [[nodiscard]] std::string untrusted() const { return (m_folder.path() / "other.crt").string(); }

private:
    [[nodiscard]] std::string socket_path() const { return (m_folder.path() / "redis.socket").string(); }

    /// Another program may take the port between the choice and the server's start: then the next one is tried.
    void start()
    {
        for (int attempt = 0; attempt < 5; ++attempt) {
            if (m_port == 0) m_port = free_port();
            start_once();
            if (answers()) return;
            kill();
            m_port = 0;
        }
        throw std::runtime_error("redis-server does not start; ./dev setup installs it");
    }

    void start_once()
    {
        const std::string port = std::to_string(m_port), folder = m_folder.path().string();
        std::vector<std::string> words{"redis-server",  "--save",       "",           "--appendonly", "no", "--bind",
                                       "127.0.0.1",     "--dir",        folder,       "--daemonize",  "no", "--logfile",
                                       folder + "/log", "--unixsocket", socket_path()};
        if (m_access == Access::tls)
            for (const std::string& word :
                 {std::string("--port"), std::string("0"), std::string("--tls-port"), port,
                  std::string("--tls-auth-clients"), std::string("no"), std::string("--tls-cert-file"),
                  folder + "/server.crt", std::string("--tls-key-file"), folder + "/server.key",
                  std::string("--tls-ca-cert-file"), folder + "/ca.crt"})
                words.push_back(word);
        else
            words.insert(words.end(), {"--port", port});
        words.insert(words.end(), m_options.begin(), m_options.end());
        std::vector<char*> arguments;
        for (std::string& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        const pid_t parent = ::getpid();
        m_pid = ::fork();
        if (m_pid != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1);
        const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int i = 0; i < 3; ++i) ::dup2(nothing, i);
        ::execvp(arguments[0], arguments.data());
        ::_exit(127);
    }

    /// Waits until the server answers; false: it ended.
    [[nodiscard]] bool answers()
    {
        using namespace std::chrono_literals;
        for (const auto until = std::chrono::steady_clock::now() + 30s; std::chrono::steady_clock::now() < until;
             std::this_thread::sleep_for(5ms)) {
            if (::waitpid(m_pid, nullptr, WNOHANG) == m_pid) {
                m_pid = -1;
                return false;
            }
            if (is_answered()) return true;
        }
        return false;
    }

    /// Asks over the Unix socket, which never has TLS. The answer may be that a password is missing.
    [[nodiscard]] bool is_answered() const
    {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        socket_path().copy(address.sun_path, sizeof address.sun_path - 1);
        const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        char answer = 0;
        const bool is_there = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                              ::send(socket, "PING\r\n", 6, MSG_NOSIGNAL) == 6 && ::recv(socket, &answer, 1, 0) == 1;
        ::close(socket);
        return is_there;
    }

    /// A certificate for 127.0.0.1 alone, so that another name of this host is wrong.
    void make_certificates() const
    {
        const std::string folder = m_folder.path().string() + "/";
        for (const std::string name : {"ca", "other"})
            run_program({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                         "-days", "2", "-subj", "/CN=" + name, "-keyout", folder + name + ".key", "-out",
                         folder + name + ".crt"});
        std::ofstream(folder + "names") << "subjectAltName=IP:127.0.0.1\n";
        run_program({"openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                     "/CN=server", "-keyout", folder + "server.key", "-out", folder + "server.csr"});
        run_program({"openssl", "x509", "-req", "-in", folder + "server.csr", "-CA", folder + "ca.crt", "-CAkey",
                     folder + "ca.key", "-CAcreateserial", "-days", "2", "-extfile", folder + "names", "-out",
                     folder + "server.crt"});
    }

    std::vector<std::string> m_options;
    Access m_access;
    TempDir m_folder;
    std::uint16_t m_port = 0;
    pid_t m_pid = -1;
};

} // namespace warmgraph::test
