package main

import (
	"syscall"
	"time"
	"unsafe"
)

// work consumes CPU time. Times are in nanoseconds.
type work struct {
	before  int64
	slowFor int64
	after   int64
	backlog int64
	fork    int64
	// owed is pending work after responses.
	owed int64
	// account is the CPU time that the process should have used so far.
	account int64

	job      *job
	children children
}

// begin excludes the time before.
func (w *work) begin() { w.account = w.used() }

// used is the CPU time of the process without its job.
func (w *work) used() int64 {
	if w.job == nil {
		return processCPU()
	}
	return processCPU() - w.job.used()
}

// spend adds to the account and spins until the process has used that much. CPU time used since the last call counts.
func (w *work) spend(ns int64) {
	if ns == 0 {
		return
	}
	w.account += ns
	for w.used() < w.account {
	}
}

// request does the work before a response. @param age of the server since its first request
func (w *work) request(age int64) {
	for w.owed > max(0, w.backlog-w.after) {
		w.workOff()
	}
	w.owed += w.after
	if age < w.slowFor {
		w.spend(w.before)
	}
	w.spend(w.before)
}

// workOff does one piece of the pending work.
func (w *work) workOff() {
	if w.owed > 0 {
		w.owed -= w.after
		w.spend(w.after)
	}
}

// children are the processes that respond, one per request.
type children struct {
	running int
	ended   int64
	// spun is the total spin time assigned to ended children.
	spun int64
	// used is the CPU time of ended children.
	used int64
	spin int64
}

// forkFor starts a child that spins and then responds on the connection. The CPU time includes the cost of the fork in both
// processes.
func (w *work) forkFor(fd int) {
	c := &w.children
	c.spin = w.fork
	if c.ended > 0 {
		used := w.used() - w.account + c.used
		overhead := (used - c.spun) / c.ended
		// The deficit is spread over the next children.
		missing := (w.fork*c.ended - used) / 16
		c.spin = max(0, w.fork-overhead+missing)
	}
	// Some architectures have no fork; clone with these arguments is the same.
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return
	}
	if pid == 0 {
		childAnswers(fd, c.spin)
	}
	c.running++
}

// childAnswers runs in a child, which has only this thread. It must not allocate or enter Go's scheduler. A function that may
// grow its stack would enter the scheduler if another thread requested preemption just before the fork; hence nosplit.
//
//go:nosplit
func childAnswers(fd int, spin int64) {
	for processCPU() < spin {
	}
	syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&answer[0])), uintptr(len(answer)))
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// reap collects the children that have ended.
func (w *work) reap() {
	c := &w.children
	for c.running > 0 {
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, &usage)
		if pid <= 0 || err != nil {
			return
		}
		c.running--
		c.ended++
		c.used += usage.Utime.Nano() + usage.Stime.Nano()
		c.spun += c.spin
	}
}

// reapSoon returns the nanoseconds until the next reap; -1 without children.
func (w *work) reapSoon() int64 {
	if w.children.running == 0 {
		return -1
	}
	return int64(time.Millisecond)
}

// processCPU returns the CPU time of the current process.
//
//go:nosplit
func processCPU() int64 {
	const clockProcessCPU = 2
	return cpuOf(clockProcessCPU)
}

// cpuOf reads a clock of CPU time.
//
//go:nosplit
func cpuOf(clock int) int64 {
	var spec syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&spec)), 0)
	return spec.Nano()
}
