package main

import (
	"runtime"
	"syscall"
	"time"
)

// job is a thread that uses CPU time whether or not somebody asks.
type job struct {
	// clock is of the thread's CPU time.
	clock int
}

// startJob starts a job that uses so much CPU time in each period, from now on. What it could not do in time it does later.
func startJob(cpu, each time.Duration) *job {
	// Go would let its threads take turns of 10 ms if they had one processor in common: the kernel is to divide it.
	runtime.GOMAXPROCS(2)
	started := make(chan *job)
	go func() {
		runtime.LockOSThread()
		// MAKE_THREAD_CPUCLOCK of linux/posix-timers_types.h: ^tid<<3 | CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED.
		j := &job{clock: ^syscall.Gettid()<<3 | 4 | 2}
		started <- j
		due, next := j.used(), time.Now()
		for {
			for due += int64(cpu); j.used() < due; {
			}
			next = next.Add(each)
			time.Sleep(time.Until(next))
		}
	}()
	return <-started
}

func (j *job) used() int64 { return cpuOf(j.clock) }
