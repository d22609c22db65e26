//gosec:disable G104 -- an error changes nothing there
package engine

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

// poller tells a loop what has happened on its connections: epoll if the loop has a thread of its own, the inbox if it is a goroutine.
type poller interface {
	open() error
	close()
	poll(events []syscall.EpollEvent) int // poll returns what has happened. It does not wait.
	// wait waits for at most this long, where epoll_wait's milliseconds would be too late.
	wait(events []syscall.EpollEvent, nanoseconds int64) int
	// waitYielding waits in a way that the Go scheduler sees, so that other goroutines get the processor meanwhile.
	waitYielding(events []syscall.EpollEvent, nanoseconds int64) int
	wake()                      // wake ends the wait, from any goroutine.
	pause(length time.Duration) // pause sleeps.
}

// epoll is the poller of a loop on a thread of its own.
type epoll struct {
	fd, wakeFD int  // wakeFD is an eventfd in the epoll; -1: the loop is never woken
	isWoken    bool // wake is called.
	yields     bool // Goroutines of QUIC work for the loop, so that each wait yields.
}

func (e *epoll) open() (err error) {
	if e.fd, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil || !e.isWoken {
		return err
	}
	if e.wakeFD, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err == nil {
		// Edge-triggered: each write is an event, so that it need not be read.
		linux.EpollCtl(e.fd, syscall.EPOLL_CTL_ADD, e.wakeFD, &syscall.EpollEvent{Events: syscall.EPOLLIN | linux.EpollEdge, Fd: noSlot})
	}
	return err
}

func (e *epoll) close() {
	linux.Close(e.fd)
	linux.Close(e.wakeFD)
}

func (e *epoll) poll(events []syscall.EpollEvent) int { return linux.EpollWait(e.fd, events, 0) }

// wait blocks the thread, unless goroutines work for the loop.
func (e *epoll) wait(events []syscall.EpollEvent, nanoseconds int64) int {
	if e.yields {
		return e.waitYielding(events, nanoseconds)
	}
	return linux.EpollWaitExact(e.fd, events, nanoseconds)
}

func (e *epoll) waitYielding(events []syscall.EpollEvent, nanoseconds int64) int {
	return linux.EpollWaitYielding(e.fd, events, nanoseconds)
}

func (e *epoll) wake() { linux.Write(e.wakeFD, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

func (*epoll) pause(length time.Duration) { linux.Sleep(int64(length)) }
