package linux

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SetTimerSlack lets the calling thread's waits end on time: by default the kernel may add 50 µs.
func SetTimerSlack() {
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) //nolint:errcheck // without it what is timed happens a little later, which figures show
}

// Sleep sleeps for some nanoseconds. It is raw: for so short a time the scheduler need not know.
func Sleep(nanoseconds int64) {
	time := syscall.NsecToTimespec(nanoseconds)
	syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&time)), 0, 0)
}

// Monotonic is CLOCK_MONOTONIC, in nanoseconds: the clock that other processes on this machine can compare with.
func Monotonic() int64 { return clock(unix.CLOCK_MONOTONIC) }

// ProcessCPU is the CPU time that the whole process has used, in nanoseconds.
func ProcessCPU() int64 { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// ThreadCPU is the CPU time that a thread of this process has used, in nanoseconds.
func ThreadCPU(thread int) int64 {
	// As pthread_getcpuclockid does it: the complement of the thread, that it is one alone (4), and which clock (2).
	return clock(int32(^thread<<3 | 4 | 2))
}

func clock(id int32) int64 {
	var time unix.Timespec
	if unix.ClockGettime(id, &time) != nil {
		return 0
	}
	return time.Nano()
}

// SetShortSlice asks for turns of 100 µs on a core, the shortest that Linux gives (6.12 or later): a thread that sleeps often gets its
// core back sooner.
func SetShortSlice() {
	const slice = uint64(100 * time.Microsecond)
	attributes, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return
	}
	attributes.Runtime = slice
	unix.SchedSetAttr(0, attributes, 0) //nolint:errcheck // without it all is right, only later
}
