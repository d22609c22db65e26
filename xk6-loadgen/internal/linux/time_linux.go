package linux

import (
	"syscall"
	"unsafe"
)

// SetTimerSlack lets the calling thread's waits end on time: by default the kernel may add 50 µs.
func SetTimerSlack() {
	const prSetTimerSlack = 29
	// Without it what is timed happens a little later, which the figures on lateness show.
	syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, 1, 0)
}

// Rest sleeps for some nanoseconds. It is raw: for so short a time the scheduler need not know.
func Rest(nanoseconds int64) {
	time := syscall.NsecToTimespec(nanoseconds)
	syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&time)), 0, 0)
}

// ProcessCPU is the CPU time that the whole process has used, in nanoseconds.
func ProcessCPU() int64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
