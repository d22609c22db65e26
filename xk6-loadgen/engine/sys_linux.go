package engine

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
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

// isLoopback4 tells whether the address is in 127.0.0.0/8.
func (s *sockaddr) isLoopback4() bool { return s.family == syscall.AF_INET && s.raw[4] == 127 }

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

// sysEpollWaitExact waits for at most this many nanoseconds, where epoll_wait has milliseconds, since Linux 5.11; raw, as
// linux.EpollWait.
func sysEpollWaitExact(epfd int, events []syscall.EpollEvent, nanoseconds int64) int {
	// The kernel's own time, which has 64 bits on all architectures.
	timeout := [2]int64{nanoseconds / 1e9, nanoseconds % 1e9}
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(epfd), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)),
		uintptr(unsafe.Pointer(&timeout)), 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// hasExactWait tells whether the kernel has epoll_pwait2.
func hasExactWait() bool {
	_, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT2, ^uintptr(0), 0, 0, 0, 0, 0)
	return errno != syscall.ENOSYS
}

// socketError fetches the outcome of a connect that did not finish at once.
func socketError(fd int) syscall.Errno {
	value, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ERROR)
	if err != nil {
		return syscall.EIO
	}
	return syscall.Errno(value)
}

// firstNice is above all that shares the generator's cores: k6's other threads, the database, the runner. Where the kernel weighs
// sessions against each other it is above those of k6's own session; that one's weight is for who starts k6 to set.
const firstNice = -15

// goFirst lets the calling thread run before others of its core, where the process may do so (root, CAP_SYS_NICE): in the open
// model what is due must not wait for them.
func goFirst() {
	syscall.Setpriority(syscall.PRIO_PROCESS, 0, firstNice) //nolint:errcheck // without the privilege it waits its turn
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

// coresOf are the cores of one of so many loops: each has its own of those that are allowed, so that no two share one while
// another is idle. Where there are as many loops as cores that is one for each; where there are fewer the kernel still chooses,
// since other work may be bound to a core. With too few for that, nil leaves all to the kernel.
//
// They are dealt out in turn: where a core's second hardware thread is numbered half of all higher, as on most machines, a
// loop has both.
func coresOf(allowed []int, loops, number int) []int {
	if loops == 1 || len(allowed) < loops {
		return nil
	}
	var own []int
	for i := number; i < len(allowed); i += loops {
		own = append(own, allowed[i])
	}
	return own
}
