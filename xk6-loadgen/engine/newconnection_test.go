package engine

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// connectionsTo are the connections that this process has open to a port, as a client, by its own ports. The client's side is asked: a
// connection that it closes is closed at once there, but the end may reach the server later than the begin of the next.
func connectionsTo(port int) map[int]bool {
	open := map[int]bool{}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		peer, err := unix.Getpeername(fd)
		if to, isIP := peer.(*unix.SockaddrInet4); err != nil || !isIP || to.Port != port {
			continue
		}
		if local, err := unix.Getsockname(fd); err == nil {
			if from, isIP := local.(*unix.SockaddrInet4); isIP {
				open[from.Port] = true
			}
		}
	}
	return open
}

func TestConnectionsNeverExceedTheAskedNumber(t *testing.T) {
	t.Parallel()
	const connections = 12
	for _, keepAlive := range []bool{true, false} {
		for _, threads := range []int{1, 3} {
			t.Run(fmt.Sprintf("keepAlive %t, %d threads", keepAlive, threads), func(t *testing.T) {
				var number, most atomic.Int64
				s := serve(t, func(s *testServer, c net.Conn) {
					// What is open at two looks was open in between, all of it at once.
					port := c.LocalAddr().(*net.TCPAddr).Port
					first, second := connectionsTo(port), connectionsTo(port)
					maps.DeleteFunc(second, func(from int, _ bool) bool { return !first[from] })
					open := int64(len(second))
					for {
						before := most.Load()
						if open <= before || most.CompareAndSwap(before, open) {
							break
						}
					}
					r := bufio.NewReader(c)
					for s.readRequest(r) {
						switch number.Add(1) % 8 {
						case 0: // Reset.
							c.(*net.TCPConn).SetLinger(0)
							return
						case 1: // Short.
							io.WriteString(c, ok[:20])
							return
						case 2: // Timed out: until the client has gone.
							io.Copy(io.Discard, c)
							return
						case 3: // Slow.
							time.Sleep(3 * time.Millisecond)
							io.WriteString(c, ok)
						case 4: // Closed by the server, as it says.
							io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
							return
						default:
							io.WriteString(c, ok)
						}
					}
				})
				o := options(s.url)
				o.Connections, o.Threads, o.KeepAlive, o.Requests, o.Timeout = connections, threads, keepAlive, 2400, 20*time.Millisecond
				r := load(t, o)
				// It sees the full number only when another one comes at that moment.
				if got := most.Load(); got > connections || got < connections/2 {
					t.Errorf("up to %d connections were open at once, asked for were %d", got, connections)
				}
				if r.Causes[CauseReset] == 0 || r.Causes[CauseShort] == 0 || r.Causes[CauseTimedOut] == 0 || r.Responses[0] == 0 {
					t.Error(r)
				}
			})
		}
	}
}

func TestConnectionsThatTakeTheirTime(t *testing.T) {
	t.Parallel()
	// A queue that is full leaves SYNs without an answer: they are sent again after a second, and more of them are late in a
	// row than are tried at once.
	listener := fullListener(t)
	var answered atomic.Int64
	answer := func(c net.Conn) {
		defer c.Close()
		s := &testServer{}
		if s.readRequest(bufio.NewReader(c)) {
			answered.Add(1)
			io.WriteString(c, ok)
		}
	}
	go func() {
		waitFor(t, func() bool { return onTheirWay(t, listener.Addr()) > 2*lateInARow })
		raw, err := listener.(*net.TCPListener).SyscallConn()
		if err != nil {
			t.Error(err)
			return
		}
		raw.Control(func(fd uintptr) { unix.Listen(int(fd), 1000) })
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go answer(c)
		}
	}()
	o := options("http://" + listener.Addr().String() + "/")
	o.Connections, o.Requests, o.KeepAlive, o.Protocol = 60, 200, false, HTTP10
	r := load(t, o)
	if r.Responses[0] != 200 || answered.Load() != 200 {
		t.Error(r)
	}
	if r.ConnectMs.Max < 900 {
		t.Error(r)
	}
}

// onTheirWay is the number of connections to the address whose SYN has not been answered.
func onTheirWay(t *testing.T, to net.Addr) int {
	table, err := os.ReadFile("/proc/thread-self/net/tcp")
	if err != nil {
		t.Error(err)
	}
	const synSent = "02"
	at := to.(*net.TCPAddr)
	return strings.Count(string(table), fmt.Sprintf(" 0100007F:%04X %s ", at.Port, synSent))
}

func TestPausesBetweenConnects(t *testing.T) {
	const ms = int64(time.Millisecond)
	for failures, want := range map[int]int64{1: 0, 2: 10 * ms, 3: 20 * ms, 7: 320 * ms, 8: 500 * ms, 1_000_000: 500 * ms} {
		if got := (&conn{failures: failures}).retryAt(); got != want {
			t.Errorf("%d failures: %d ns, want %d", failures, got, want)
		}
	}
	for name, test := range map[string]struct {
		took     int64
		failures int
		want     int64 // 0: none
	}{
		"the first":                {0, 1, 0},
		"the second, at once":      {0, 2, 10 * ms},
		"the second, after 4 ms":   {4 * ms, 2, 6 * ms},
		"the second, after a time": {10 * ms, 2, 0},
		"the tenth, after 30 s":    {30_000 * ms, 10, 0},
	} {
		l := &loop{plan: &plan{}, starts: starts{ring: newConnRing(1)}, backoffs: backoffs{next: never}, clock: 100_000 * ms}
		l.window.phase = measuring
		c := &conn{loop: l, openedAt: l.clock - test.took, failures: test.failures}
		c.reconnect()
		if backingOff := test.want > 0; c.backingOff != backingOff || c.queued == backingOff || backingOff && l.backoffs.slots[0].retryAt() != l.clock+test.want {
			t.Errorf("%s: backingOff %t, queued %t, %v", name, c.backingOff, c.queued, l.backoffs.slots)
		}
		for range 2 {
			l.clock += 5 * ms
			l.backoffs.end(l.clock, l.starts.push)
			if over := test.want <= l.clock-100_000*ms; c.backingOff == over || c.queued != over || (l.backoffs.next == never) != over {
				t.Errorf("%s: %d ns later: backingOff %t, queued %t", name, l.clock-100_000*ms, c.backingOff, c.queued)
			}
		}
	}
}
