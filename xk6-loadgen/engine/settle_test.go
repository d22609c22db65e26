package engine

import (
	"bufio"
	"context"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// standIn is a process group that is stopped and continued in a server's place.
func standIn(t *testing.T) (group int) {
	t.Helper()
	command := exec.Command("sleep", "600")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	launch(t, command)
	return command.Process.Pid
}

// atARate makes a side of so many requests at a rate, in about 25 turns of settledSlice.
func atARate(o Options, processes ...int) Side {
	o.Requests, o.Rate = settledRequests, 200
	return Side{Options: o, Processes: processes}
}

const settledRequests, settledSlice = 100, 20 * time.Millisecond

// wantOnlyItsOwn checks that the side's figures are those of the requests that were asked for.
func wantOnlyItsOwn(t *testing.T, r outcome, bodyBytes int64) {
	t.Helper()
	if r.Responses[0] != settledRequests || r.ErrorTotal()+r.InFlight+r.Unsent+r.Hung != 0 || r.BodyBytes != settledRequests*bodyBytes {
		t.Errorf("responses %v, errors %v (%s), in flight %d, unsent %d, %d bytes of bodies", r.Responses, r.Errors, r.ErrorExample, r.InFlight, r.Unsent, r.BodyBytes)
	}
	if count := r.LatencyMs.Histogram; sumOf(count) != settledRequests || sumOf(r.SendDelayMs.Histogram) != settledRequests {
		t.Errorf("%d latencies, %d send delays", sumOf(count), sumOf(r.SendDelayMs.Histogram))
	}
}

func sumOf(histogram []Bar) (count int64) {
	for _, bar := range histogram {
		count += bar.Count
	}
	return count
}

func TestTurnsBeginWithRequestsForNobody(t *testing.T) {
	onSome(t, func(t *testing.T, x transport) {
		var servers []*peerServer
		var sides []Side
		for range 2 {
			s := x.serve(t, fine)
			servers, sides = append(servers, s), append(sides, atARate(x.options(s.url), standIn(t)))
		}
		for i, r := range alternate(t, context.Background(), settledSlice, sides...) {
			if seen := servers[i].requests.Load(); r.Settling == 0 || seen < settledRequests+r.Settling {
				t.Errorf("side %d: the server saw %d requests, it says that %d were for nobody", i, seen, r.Settling)
			}
			wantOnlyItsOwn(t, r, r.BodyBytes/max(1, r.Responses[0]))
		}
		for _, s := range servers {
			waitFor(t, func() bool {
				s.testServer.mu.Lock()
				defer s.testServer.mu.Unlock()
				return len(s.open) == 0
			})
		}
	})
}

func TestAServerMayCloseWhatSettlesIt(t *testing.T) {
	last := strings.Replace(ok, "\r\n", "\r\nConnection: close\r\n", 1)
	s := serve(t, func(s *testServer, c net.Conn) {
		for r, left := bufio.NewReader(c), 3; left > 0 && s.readRequest(r); left-- {
			response := ok
			if left == 1 {
				response = last
			}
			io.WriteString(c, response)
		}
	})
	side, other := atARate(options(s.url), standIn(t)), atARate(options(serve(t, always(ok)).url), standIn(t))
	other.Threads = 2
	r := alternate(t, context.Background(), settledSlice, side, other)
	wantOnlyItsOwn(t, r[1], 5)
	if seen := s.requests.Load(); seen <= settledRequests {
		t.Errorf("the server saw %d requests", seen)
	}
	wantOnlyItsOwn(t, r[0], 5)
}

func TestRequestsForNobodyMayStayUnanswered(t *testing.T) {
	var unanswered atomic.Int64
	answer := always(ok)
	s := serve(t, func(s *testServer, c net.Conn) {
		if s.connections.Load() > 4 {
			// The side's own were there first.
			unanswered.Add(1)
			io.Copy(io.Discard, c)
			return
		}
		answer(s, c)
	})
	side, other := atARate(options(s.url), standIn(t)), atARate(options(serve(t, always(ok)).url), standIn(t))
	// In it the side opens all of its connections.
	side.Warmup = time.Millisecond
	r := alternate(t, context.Background(), settledSlice, side, other)
	if unanswered.Load() == 0 || r[0].Settling != 0 {
		t.Errorf("%d connections were not answered, %d responses were for nobody", unanswered.Load(), r[0].Settling)
	}
	wantOnlyItsOwn(t, r[0], 5)
}

func TestABusyServerGetsNoRequestsForNobody(t *testing.T) {
	s := serve(t, forgetsOne())
	side, other := atARate(options(s.url), standIn(t)), atARate(options(serve(t, always(ok)).url), standIn(t))
	side.Requests, side.Duration = 0, 500*time.Millisecond
	r := alternate(t, context.Background(), settledSlice, side, other)
	if r[0].InFlight == 0 || s.connections.Load() > 4 {
		t.Errorf("%d in flight, %d connections", r[0].InFlight, s.connections.Load())
	}
}

func TestASideThatDrainsOrHasNoRateIsNotSettled(t *testing.T) {
	drains, closed, other := serve(t, always(ok)), serve(t, always(ok)), serve(t, always(ok))
	noRate := Side{Options: options(closed.url), Processes: []int{standIn(t)}}
	noRate.Requests = 2000
	alternate(t, context.Background(), settledSlice, atARate(options(drains.url)), noRate, atARate(options(other.url), standIn(t)))
	if drains.requests.Load() != settledRequests || closed.requests.Load() != 2000 || other.requests.Load() <= settledRequests {
		t.Errorf("the servers saw %d, %d and %d requests", drains.requests.Load(), closed.requests.Load(), other.requests.Load())
	}
}
