// Sockets and servers on this machine's loopback address, for tests of remote tiers.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace warmgraph::test {

/// Closes a descriptor.
class Descriptor {
public:
    explicit Descriptor(int number = -1) noexcept : m_number(number) {}
    Descriptor(Descriptor&& other) noexcept : m_number(std::exchange(other.m_number, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept
    {
        std::swap(m_number, other.m_number);
        return *this;
    }
    ~Descriptor()
    {
        if (m_number >= 0) ::close(m_number);
    }
    [[nodiscard]] int get() const noexcept { return m_number; }

private:
    int m_number;
};

inline sockaddr_in loopback(std::uint16_t port)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

inline std::uint16_t bind_to_free_port(int socket)
{
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0)
        throw std::runtime_error("no free port");
    return ntohs(address.sin_port);
}

/// A socket that is bound to a free port.
inline std::pair<Descriptor, std::uint16_t> bound_socket()
{
    Descriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const std::uint16_t port = bind_to_free_port(made.get());
    return {std::move(made), port};
}

/// A port that was free a moment ago. Nothing listens there.
inline std::uint16_t free_port() { return bound_socket().second; }

inline bool answers(std::uint16_t port)
{
    const Descriptor probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(port);
    return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// Sends the text and returns the answer, up to the end of the connection.
inline std::string ask(std::uint16_t port, const std::string& text)
{
    const Descriptor connection(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(port);
    if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::send(connection.get(), text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
        throw std::runtime_error("the server does not answer");
    std::string answer;
    char piece[4096];
    for (ssize_t size = 0; (size = ::recv(connection.get(), piece, sizeof piece, 0)) > 0;)
        answer.append(piece, static_cast<std::size_t>(size));
    return answer;
}

/// A server as a process. It ends with this object, and with this process in any case.
class ServerProcess {
public:
    ServerProcess() = default;
    ServerProcess(const std::vector<std::string>& command, const std::filesystem::path& output)
    {
        std::vector<char*> arguments;
        std::vector<std::string> copies = command;
        for (std::string& argument : copies) arguments.push_back(argument.data());
        arguments.push_back(nullptr);
        const pid_t parent = ::getpid();
        m_process = ::fork();
        if (m_process < 0) throw std::runtime_error("fork failed");
        if (m_process != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int file = ::open(output.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
        if (::getppid() != parent || file < 0) ::_exit(126);
        ::dup2(file, STDOUT_FILENO);
        ::dup2(file, STDERR_FILENO);
        ::execvp(arguments[0], arguments.data());
        ::_exit(127);
    }
    ServerProcess(ServerProcess&& other) noexcept : m_process(std::exchange(other.m_process, -1)) {}
    ServerProcess& operator=(ServerProcess&& other) noexcept
    {
        std::swap(m_process, other.m_process);
        return *this;
    }
    ~ServerProcess() { stop(); }

    /// Ends the server at once.
    void stop()
    {
        if (m_process <= 0) return;
        ::kill(m_process, SIGKILL);
        while (::waitpid(m_process, nullptr, 0) < 0 && errno == EINTR) {}
        m_process = -1;
    }
    /// Waits until the port answers. False: the server has ended, or does not answer within 30 s.
    [[nodiscard]] bool waits_on(std::uint16_t port)
    {
        using namespace std::chrono_literals;
        for (const auto end = std::chrono::steady_clock::now() + 30s; std::chrono::steady_clock::now() < end;) {
            if (answers(port)) return true;
            if (::waitpid(m_process, nullptr, WNOHANG) == m_process) {
                m_process = -1;
                return false;
            }
            std::this_thread::sleep_for(5ms);
        }
        return false;
    }

private:
    pid_t m_process = -1;
};

inline std::string text_of_file(const std::filesystem::path& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace warmgraph::test
