package linux

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Read reads once from a descriptor that does not block.
func Read(fd int, p []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

// ReadAt reads once from a file of the kernel's, which does not block either.
func ReadAt(fd int, p []byte, offset int64) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), uintptr(offset), 0, 0)
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}

// Write writes once to a descriptor that does not block.
func Write(fd int, p []byte) syscall.Errno {
	for {
		_, _, errno := syscall.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		if errno != syscall.EINTR {
			return errno
		}
	}
}

// AwaitReadable waits until fd can be read, for at most this many nanoseconds, or without end when they are negative; it
// tells whether fd can be. When it cannot be, it was looked at last when the time was up, or a signal came, which ends the wait.
//
// It is raw although it blocks, for threads that do nothing else: a wait of which the scheduler knows has its monitor look
// after it up to 50,000 times a second, a third of the CPU time of 1000 requests/s. Garbage collection is not held up: the
// runtime stops a thread by a signal, again and again until it has stopped. But the thread keeps one of GOMAXPROCS to itself.
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
