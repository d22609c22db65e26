package linux

import (
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// OnOwnThread runs f on a thread that ends with it, so that f may change the thread.
func OnOwnThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if syscall.Gettid() == syscall.Getpid() {
			// The main thread cannot end, and its namespaces are the process's. While this goroutine keeps it, f gets another.
			OnOwnThread(f)
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
	<-done
}

// Cores are those that the calling thread may run on, by their numbers; nil where the kernel does not say.
func Cores() []int { return CoresOf(0) }

// CoresOf are those that a process's first thread may run on.
func CoresOf(pid int) (allowed []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(pid, &set) != nil {
		return nil
	}
	for core, left := 0, set.Count(); left > 0; core++ {
		if set.IsSet(core) {
			allowed = append(allowed, core)
			left--
		}
	}
	return allowed
}

// UseCores has the calling thread run on these cores only; none: where it may already.
func UseCores(cores []int) error {
	if len(cores) == 0 {
		return nil
	}
	set := unix.NewCPUSet(slices.Max(cores) + 1)
	for _, core := range cores {
		set.Set(core)
	}
	return unix.SchedSetaffinityDynamic(0, set)
}

// SetBatchPolicy makes the calling thread SCHED_BATCH, which needs no privilege: waking up, it does not interrupt what runs on its core.
// A server that shares the core is then not interrupted at each response, which saves a third of a request's CPU.
func SetBatchPolicy() {
	const schedBatch = 3
	priority := struct{ value int32 }{0}
	// Without it all is as exact, but uses more CPU.
	syscall.RawSyscall(syscall.SYS_SCHED_SETSCHEDULER, 0, schedBatch, uintptr(unsafe.Pointer(&priority)))
}
