// Package linux is what the engine and the delay link ask of the kernel:
//
//   - descriptors_linux.go: sockets and epoll.
//   - processes_linux.go: threads, cores, scheduling and clocks.
//   - tree_linux.go, group_linux.go: the CPU time of a server's processes.
//
// Calls on hot paths are raw: the Go scheduler does not see them, whose bookkeeping costs 2 to 7 % of a core. Only those that wait can block.
// A thread that blocks keeps its processor, so callers raise GOMAXPROCS to leave some to other goroutines. For garbage collection the runtime
// interrupts a waiting thread by a signal.
//
//gosec:disable G103 G115 -- the kernel takes addresses, the numbers are small
package linux

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	EpollError = syscall.EPOLLERR | syscall.EPOLLHUP
	EpollEdge  = 1 << 31 // syscall.EPOLLET is a negative constant, which does not fit EpollEvent.Events
)

// transfer makes a call, and repeats it after signals, by which the runtime preempts.
func transfer(call uintptr, fd int, memory unsafe.Pointer, size, more int) (int, syscall.Errno) {
	for {
		if n, _, errno := syscall.RawSyscall6(call, uintptr(fd), uintptr(memory), uintptr(size), uintptr(more), 0, 0); errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

// Socket makes a TCP socket that does not block and that no child process inherits.
func Socket(family int) (int, syscall.Errno) {
	fd, _, errno := syscall.RawSyscall(unix.SYS_SOCKET, uintptr(family), syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	return int(fd), errno
}

// Bind leaves the port to Connect, which may share it with connections to other addresses.
func Bind(fd int, address unsafe.Pointer, size uintptr) syscall.Errno {
	unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1) //nolint:errcheck // fewer ports without
	_, _, errno := syscall.RawSyscall(unix.SYS_BIND, uintptr(fd), uintptr(address), size)
	return errno
}

// Connect begins to connect. EINPROGRESS is no failure: the socket takes bytes once it is connected.
func Connect(fd int, address unsafe.Pointer, size uintptr) syscall.Errno {
	_, errno := transfer(unix.SYS_CONNECT, fd, address, int(size), 0)
	return errno
}

func Close(fd int) { syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

// Recv reads from a socket, for 130 ns less than Read does.
func Recv(fd int, p []byte) (int, syscall.Errno) {
	return transfer(unix.SYS_RECVFROM, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p), 0)
}

// Stamped reads from sockets that keep when the kernel received their packets, see StampReceived. One thread at a time may use it.
type Stamped struct {
	header  unix.Msghdr
	vector  unix.Iovec
	control [8]uint64 // room for one message, aligned as the kernel writes it
}

// StampReceived has the kernel note when it receives a socket's packets (SO_TIMESTAMPNS, socket(7)), or ends that. As long as any socket asks
// for it, the kernel reads the clock for each packet of the machine. Where it refuses, reads have no time.
func StampReceived(fd int, on bool) {
	value := 0
	if on {
		value = 1
	}
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, value) //nolint:errcheck // see above
}

// Recv reads as the function Recv does. at is when the kernel received the last of these bytes, in nanoseconds since 1970; 0: not known.
func (s *Stamped) Recv(fd int, p []byte) (n int, at int64, errno syscall.Errno) {
	s.vector.Base, s.vector.Len = unsafe.SliceData(p), uint64(len(p))
	s.header.Iov, s.header.Iovlen = &s.vector, 1
	s.header.Control, s.header.Controllen = (*byte)(unsafe.Pointer(&s.control)), uint64(unsafe.Sizeof(s.control))
	n, errno = transfer(unix.SYS_RECVMSG, fd, unsafe.Pointer(&s.header), 0, 0)
	message := (*unix.Cmsghdr)(unsafe.Pointer(&s.control))
	if errno != 0 || s.header.Controllen < uint64(unix.CmsgLen(int(unsafe.Sizeof(unix.Timespec{})))) ||
		message.Level != unix.SOL_SOCKET || message.Type != unix.SCM_TIMESTAMPNS {
		return n, 0, errno
	}
	time := (*unix.Timespec)(unsafe.Add(unsafe.Pointer(message), unix.CmsgLen(0)))
	return n, time.Nano(), 0
}

// Discard takes up to n bytes off a TCP socket as Recv does, without copying them (MSG_TRUNC, tcp(7)).
func Discard(fd, n int) (int, syscall.Errno) {
	return transfer(unix.SYS_RECVFROM, fd, nil, n, syscall.MSG_TRUNC)
}

// Send writes once. MSG_NOSIGNAL: a closed peer is an error here, never a SIGPIPE.
func Send(fd int, p []byte) (int, syscall.Errno) {
	return transfer(unix.SYS_SENDTO, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p), syscall.MSG_NOSIGNAL)
}

func EpollCtl(epfd, op, fd int, event *syscall.EpollEvent) syscall.Errno {
	_, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(epfd), uintptr(op), uintptr(fd), uintptr(unsafe.Pointer(event)), 0, 0)
	return errno
}

// EpollWait waits for ever if milliseconds is -1. A signal ends it without events.
func EpollWait(epfd int, events []syscall.EpollEvent, milliseconds int) int {
	n, _, _ := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)),
		uintptr(milliseconds), 0, 0)
	return max(0, int(n))
}

// EpollWaitExact waits for at most this many nanoseconds (Linux 5.11).
func EpollWaitExact(epfd int, events []syscall.EpollEvent, nanoseconds int64) int {
	// The kernel's own time, which has 64 bits on all architectures.
	timeout := [2]int64{nanoseconds / 1e9, nanoseconds % 1e9}
	n, _, _ := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(epfd), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)),
		uintptr(unsafe.Pointer(&timeout)), 0, 0)
	return max(0, int(n))
}

// EpollWaitYielding is EpollWaitExact by a call that the Go scheduler knows of: other goroutines, and its collections, go on meanwhile.
func EpollWaitYielding(epfd int, events []syscall.EpollEvent, nanoseconds int64) int {
	timeout := [2]int64{nanoseconds / 1e9, nanoseconds % 1e9}
	n, _, _ := syscall.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(epfd), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)),
		uintptr(unsafe.Pointer(&timeout)), 0, 0)
	return max(0, int(n))
}

// HasExactWait tells whether the kernel has epoll_pwait2. The call names no descriptor, so it returns at once.
func HasExactWait() bool {
	_, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT2, ^uintptr(0), 0, 0, 0, 0, 0)
	return errno != syscall.ENOSYS
}

// SocketError returns the error of a connect that did not finish at once.
func SocketError(fd int) syscall.Errno {
	value, _ := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ERROR)
	return syscall.Errno(value)
}

// Read reads from a descriptor that is no socket, such as a TUN device's: a packet at a time.
func Read(fd int, p []byte) (int, syscall.Errno) {
	return transfer(unix.SYS_READ, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p), 0)
}

// Write writes to a descriptor that is no socket, such as a TUN device's or an eventfd.
func Write(fd int, p []byte) syscall.Errno {
	_, errno := transfer(unix.SYS_WRITE, fd, unsafe.Pointer(unsafe.SliceData(p)), len(p), 0)
	return errno
}

// AwaitReadable waits at most this many nanoseconds (negative: without end), or until a signal, and tells whether fd can be read.
func AwaitReadable(fd int, nanoseconds int64) bool {
	poll := unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	var limit *syscall.Timespec
	if nanoseconds >= 0 {
		time := syscall.NsecToTimespec(nanoseconds)
		limit = &time
	}
	n, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&poll)), 1, uintptr(unsafe.Pointer(limit)), 0, 0, 0)
	return errno == 0 && n > 0
}

// TCPInfo reads the kernel's figures of a TCP socket into info. An older kernel leaves the last ones as zero.
func TCPInfo(fd int, info *unix.TCPInfo) {
	*info = unix.TCPInfo{}
	size := uint32(unsafe.Sizeof(*info))
	syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(info)), uintptr(unsafe.Pointer(&size)), 0)
}
