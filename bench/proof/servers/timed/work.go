package main

import (
	"syscall"
	"time"
	"unsafe"
)

// work uses CPU time. Times are nanoseconds.
type work struct {
	before  int64
	slowFor int64
	after   int64
	backlog int64
	fork    int64
	// owed is work after answers that is still to be done.
	owed int64
	// account is what the process should have used by now.
	account int64

	children children
}

// begin leaves the time until the first request out of the account.
func (w *work) begin() { w.account = processCPU() }

// spend adds to the account, and returns when so much has been used. What was used otherwise since the last call is a part of it.
func (w *work) spend(ns int64) {
	if ns == 0 {
		return
	}
	w.account += ns
	for processCPU() < w.account {
	}
}

// request does the work before an answer. @param age of the server since its first request
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

// workOff does a piece of the work that is owed.
func (w *work) workOff() {
	if w.owed > 0 {
		w.owed -= w.after
		w.spend(w.after)
	}
}

// children are the processes that answer, each for one request.
type children struct {
	running int
	ended   int64
	// spun is what the ended ones were told to spin in all.
	spun int64
	// used is the CPU time of the ended ones.
	used int64
	spin int64
}

// forkFor has a child answer on the connection, after CPU time. What a fork costs both processes is part of the CPU time.
func (w *work) forkFor(fd int) {
	c := &w.children
	c.spin = w.fork
	if c.ended > 0 {
		used := processCPU() - w.account + c.used
		overhead := (used - c.spun) / c.ended
		// What is missing so far is made up for by the next ones, not by one of them.
		missing := (w.fork*c.ended - used) / 16
		c.spin = max(0, w.fork-overhead+missing)
	}
	// clone is fork, with which some architectures do without.
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return
	}
	if pid == 0 {
		childAnswers(fd, c.spin)
	}
	c.running++
}

// childAnswers runs in a child, which has this thread alone: no allocation, and nothing of Go's scheduler, which a function that
// may grow its stack enters if another thread asked for it just before the fork.
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

// reap ends the children that have answered.
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

// reapSoon returns nanoseconds until children should be reaped; -1: there are none.
func (w *work) reapSoon() int64 {
	if w.children.running == 0 {
		return -1
	}
	return int64(time.Millisecond)
}

// processCPU returns the CPU time of the process, in a child that of the child.
//
//go:nosplit
func processCPU() int64 {
	const clockProcessCPU = 2
	var spec syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockProcessCPU, uintptr(unsafe.Pointer(&spec)), 0)
	return spec.Nano()
}
