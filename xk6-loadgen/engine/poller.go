//gosec:disable G104 -- an error changes nothing there
package engine

import (
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

// poller tells a loop when something has happened on its connections: epoll if the loop has a thread of its own, a bell if it is a goroutine.
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

// bell is the poller of a loop that is a goroutine: each wait yields, and it has nothing to open. The inbox has the events.
type bell struct {
	rung  chan struct{}
	timer *time.Timer // timer ends a wait.
}

func newBell() *bell { return &bell{rung: make(chan struct{}, 1), timer: time.NewTimer(0)} }

func (*bell) open() error { return nil }
func (*bell) close()      {}

func (b *bell) poll(events []syscall.EpollEvent) int { return b.wait(events, 0) }

// wait lets other goroutines that can run go first, so that their events are taken together.
func (b *bell) wait(events []syscall.EpollEvent, nanoseconds int64) int {
	events[0].Fd = noSlot
	if nanoseconds <= 0 {
		select {
		case <-b.rung:
			return 1
		default:
			return 0
		}
	}
	b.timer.Reset(time.Duration(nanoseconds))
	select {
	case <-b.rung:
		b.timer.Stop()
		runtime.Gosched()
		return 1
	case <-b.timer.C:
		return 0
	}
}

func (b *bell) waitYielding(events []syscall.EpollEvent, nanoseconds int64) int {
	return b.wait(events, nanoseconds)
}

// wake is remembered once: a loop that does not wait sees it at its next poll.
func (b *bell) wake() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

func (*bell) pause(length time.Duration) { time.Sleep(length) }
