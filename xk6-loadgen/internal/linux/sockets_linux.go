// Package linux has the system calls of hot paths, raw: the Go scheduler does not see them, which saves it the bookkeeping
// of a call that could block. None of these can, but for those that wait: sockets and devices are non-blocking. Of those that wait
// the caller sees to it that others have processors left (GOMAXPROCS). Were the scheduler told, its monitor would take the processor
// from each wait, and look for the next one every 20 µs, with 2 to 7 % of a core.
package linux

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What epoll reports, and is asked for.
const (
	EpollIn    = syscall.EPOLLIN
	EpollOut   = syscall.EPOLLOUT
	EpollError = syscall.EPOLLERR | syscall.EPOLLHUP
	EpollRdHup = syscall.EPOLLRDHUP
	// EpollEdge: syscall.EPOLLET is a negative constant, which does not fit EpollEvent.Events.
	EpollEdge = 1 << 31
)

// Socket makes a stream socket of an address family.
func Socket(family int) (int, syscall.Errno) {
	fd, _, errno := syscall.RawSyscall(unix.SYS_SOCKET, uintptr(family), syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	return int(fd), errno
}

// BindWithoutPort has Bind leave the port to Connect, which may take one that another connection has to elsewhere.
func BindWithoutPort(fd int) syscall.Errno {
	on := int32(1)
	_, _, errno := syscall.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, uintptr(unsafe.Pointer(&on)), unsafe.Sizeof(on), 0)
	return errno
}

// Bind gives a socket an address in the kernel's form, of which size bytes count.
func Bind(fd int, address unsafe.Pointer, size uintptr) syscall.Errno {
	_, _, errno := syscall.RawSyscall(unix.SYS_BIND, uintptr(fd), uintptr(address), size)
	return errno
}

// Connect begins to connect to an address in the kernel's form, of which size bytes count.
func Connect(fd int, address unsafe.Pointer, size uintptr) syscall.Errno {
	for {
		_, _, errno := syscall.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(address), size)
		if errno != syscall.EINTR {
			return errno
		}
	}
}

// Close closes a descriptor.
func Close(fd int) { syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

// Recv reads once; EINTR (the runtime preempts by signal) is tried again.
func Recv(fd int, p []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

// Discard takes up to n bytes off a TCP socket as Recv does, without copying them (MSG_TRUNC, tcp(7)).
func Discard(fd, n int) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), 0, uintptr(n), syscall.MSG_TRUNC, 0, 0)
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

// Send writes once. MSG_NOSIGNAL: a closed peer is an error here, never a SIGPIPE.
func Send(fd int, p []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), syscall.MSG_NOSIGNAL, 0, 0)
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

// EpollCtl adds, changes or removes what epoll watches.
func EpollCtl(epfd, op, fd int, event *syscall.EpollEvent) syscall.Errno {
	_, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(epfd), uintptr(op), uintptr(fd), uintptr(unsafe.Pointer(event)), 0, 0)
	return errno
}

// EpollPoll returns what is ready now, without waiting.
func EpollPoll(epfd int, events []syscall.EpollEvent) int { return EpollWait(epfd, events, 0) }

// EpollWait waits, for ever when milliseconds is -1.
func EpollWait(epfd int, events []syscall.EpollEvent, milliseconds int) int {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), uintptr(milliseconds), 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}
