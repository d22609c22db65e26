package engine

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"unsafe"
)

// The system calls of the hot path are raw: the Go scheduler does not see them, which saves it the bookkeeping of a
// call that could block. None of these can: the sockets are non-blocking.

const (
	epollIn    = syscall.EPOLLIN
	epollOut   = syscall.EPOLLOUT
	epollError = syscall.EPOLLERR | syscall.EPOLLHUP
	epollRdHup = syscall.EPOLLRDHUP
	// syscall.EPOLLET is a negative constant, which does not fit EpollEvent.Events.
	epollEdge = 1 << 31
)

// sockaddr is an address in the kernel's form.
type sockaddr struct {
	family int
	raw    [syscall.SizeofSockaddrInet6]byte
	size   uintptr
}

func newSockaddr(at netip.AddrPort) (sockaddr, error) {
	var s sockaddr
	ip := at.Addr()
	if ip.Is4() {
		s.family, s.size = syscall.AF_INET, syscall.SizeofSockaddrInet4
		four := ip.As4()
		copy(s.raw[4:], four[:])
	} else {
		s.family, s.size = syscall.AF_INET6, syscall.SizeofSockaddrInet6
		sixteen := ip.As16()
		copy(s.raw[8:], sixteen[:])
		if zone := ip.Zone(); zone != "" {
			index, err := zoneIndex(zone)
			if err != nil {
				return s, err
			}
			binary.NativeEndian.PutUint32(s.raw[24:], index)
		}
	}
	binary.NativeEndian.PutUint16(s.raw[0:], uint16(s.family))
	binary.BigEndian.PutUint16(s.raw[2:], at.Port())
	return s, nil
}

func zoneIndex(zone string) (uint32, error) {
	if device, err := net.InterfaceByName(zone); err == nil {
		return uint32(device.Index), nil
	}
	n, err := strconv.ParseUint(zone, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("url: no network interface %q", zone)
	}
	return uint32(n), nil
}

func sysSocket(family int) (int, syscall.Errno) {
	fd, _, errno := syscall.RawSyscall(syscall.SYS_SOCKET, uintptr(family), syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	return int(fd), errno
}

func sysConnect(fd int, to *sockaddr) syscall.Errno {
	for {
		_, _, errno := syscall.RawSyscall(syscall.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&to.raw)), to.size)
		if errno != syscall.EINTR {
			return errno
		}
	}
}

func sysClose(fd int) { syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fd), 0, 0) }

// sysRecv reads once; EINTR (the runtime preempts by signal) is tried again.
func sysRecv(fd int, p []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

// sysSend writes once. MSG_NOSIGNAL: a closed peer is an error here, never a SIGPIPE.
func sysSend(fd int, p []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), syscall.MSG_NOSIGNAL, 0, 0)
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

func sysEpollCtl(epfd, op, fd int, event *syscall.EpollEvent) syscall.Errno {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_CTL, uintptr(epfd), uintptr(op), uintptr(fd), uintptr(unsafe.Pointer(event)), 0, 0)
	return errno
}

// sysEpollPoll returns what is ready now, without waiting.
func sysEpollPoll(epfd int, events []syscall.EpollEvent) int {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// sysEpollWait waits, and tells the scheduler so: a raw wait would keep k6's own goroutines from running.
func sysEpollWait(epfd int, events []syscall.EpollEvent, milliseconds int) int {
	n, err := syscall.EpollWait(epfd, events, milliseconds)
	if err != nil {
		return 0
	}
	return n
}

// sysEpollPwait2 is epoll_pwait2, since Linux 5.11; its number is the same on all architectures.
const sysEpollPwait2 = 441

// sysEpollWaitExact waits for at most this many nanoseconds, where epoll_wait has milliseconds.
func sysEpollWaitExact(epfd int, events []syscall.EpollEvent, nanoseconds int64) int {
	timeout := syscall.NsecToTimespec(nanoseconds)
	n, _, errno := syscall.Syscall6(sysEpollPwait2, uintptr(epfd), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)),
		uintptr(unsafe.Pointer(&timeout)), 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// sysRest sleeps for some nanoseconds. It is raw: for so short a time the scheduler need not know.
func sysRest(nanoseconds int64) {
	time := syscall.NsecToTimespec(nanoseconds)
	syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&time)), 0, 0)
}

// hasExactWait tells whether the kernel has epoll_pwait2.
func hasExactWait() bool {
	_, _, errno := syscall.RawSyscall6(sysEpollPwait2, ^uintptr(0), 0, 0, 0, 0, 0)
	return errno != syscall.ENOSYS
}

// setTimerSlack lets the calling thread's waits end on time: by default the kernel may add 50 µs.
func setTimerSlack() {
	const prSetTimerSlack = 29
	// Without it starts are a little later, which the send delay shows.
	syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, 1, 0)
}

// socketError fetches the outcome of a connect that did not finish at once.
func socketError(fd int) syscall.Errno {
	value, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ERROR)
	if err != nil {
		return syscall.EIO
	}
	return syscall.Errno(value)
}

// processCPU is the CPU time that the whole process has used, in nanoseconds.
func processCPU() int64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// setBatchPolicy makes the calling thread SCHED_BATCH, which needs no privilege: when it wakes up it does not push aside
// what runs on its core. A server that shares the core then answers all that is waiting before the generator goes on,
// instead of being interrupted at each response; a third of a request's CPU is saved by that. With a core of its own
// nothing changes.
func setBatchPolicy() {
	const schedBatch = 3
	priority := struct{ value int32 }{0}
	// Without it all is as exact, only dearer.
	syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, 0, schedBatch, uintptr(unsafe.Pointer(&priority)))
}
