package engine

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// tried runs a load again while something is wrong with it: a busy machine has others wait as long, but not each time.
func tried(t *testing.T, once func() (problem string)) {
	t.Helper()
	problem := ""
	for range 15 {
		if problem = once(); problem == "" {
			return
		}
	}
	t.Error(problem)
}

func TestARequestThatIsNeverAnsweredIsHung(t *testing.T) {
	t.Parallel()
	for _, threads := range []int{1, 2} {
		tried(t, func() string {
			o := options(serve(t, firstStalls()).url)
			o.Connections, o.Threads, o.Duration = 10, threads, time.Minute
			// However it ends.
			ctx, cancel := context.WithTimeout(context.Background(), 1300*ms)
			defer cancel()
			stopped := loadWithin(t, ctx, o)
			o.URL, o.Duration = serve(t, firstStalls()).url, 1300*ms
			for _, r := range []outcome{stopped, load(t, o)} {
				if r.Hung != 1 || r.InFlight < 1 || r.InFlight > 10 || r.ErrorTotal() != 0 || r.SuccessRatio() != float64(r.Responses[0])/float64(r.Requests+1) {
					return fmt.Sprintf("%d threads, success ratio %f: %s", threads, r.SuccessRatio(), r)
				}
			}
			return ""
		})
	}
}

func TestNothingIsHungInLessThanASecond(t *testing.T) {
	t.Parallel()
	o := options(serve(t, firstStalls()).url)
	o.Connections, o.Duration = 10, 600*ms
	if r := load(t, o); r.Hung != 0 || r.InFlight == 0 {
		t.Error(r)
	}
}

func TestASlowServerHasNoHungRequests(t *testing.T) {
	t.Parallel()
	onSome(t, func(t *testing.T, x transport) {
		s := x.serve(t, func(asked) answer {
			time.Sleep(1500 * ms) // what is measured
			return answer{status: 200, body: "hello"}
		})
		x.streams = 1
		o := x.options(s.url)
		o.Duration = 2800 * ms
		if r := load(t, o); r.Hung != 0 || r.InFlight != 4 || r.Responses[0] != 4 {
			t.Error(r)
		}
	})
}

func TestConnectsUnderWayCanHang(t *testing.T) {
	t.Parallel()
	full := fullListener(t)
	for _, protocol := range []Protocol{HTTP11, H2C} {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			o := options("http://" + full.Addr().String() + "/")
			o.Protocol, o.Duration = protocol, 1300*ms
			if r := load(t, o); r.Hung != 4 || r.SuccessRatio() != 0 {
				t.Error(r)
			}
		})
	}
}

func TestTheOpenModelCountsAgeFromTheIntendedStart(t *testing.T) {
	t.Parallel()
	onSome(t, func(t *testing.T, x transport) {
		x.streams = 1
		tried(t, func() string {
			// The second request is due after 100 ms, leaves after 600, and is never answered: by its age alone since it was due it hung.
			var asks atomic.Int64
			s := x.serve(t, func(asked) answer {
				if asks.Add(1) > 1 {
					return answer{ending: stalling}
				}
				time.Sleep(600 * ms)
				return answer{status: 200, body: "hello"}
			})
			o := x.options(s.url)
			o.Connections, o.Rate, o.Duration = 1, 10, 1700*ms
			if r := load(t, o); r.Hung != 1 || r.Responses[0] != 1 || r.InFlight != 1 {
				return fmt.Sprint(r)
			}
			return ""
		})
	})
}

func gated(n int64, closed time.Duration) handler {
	var gate sync.RWMutex
	return func(s *testServer, c net.Conn) {
		for r := bufio.NewReader(c); s.readRequest(r); {
			if s.requests.Load() == n {
				gate.Lock()
				time.Sleep(closed) // the gap to measure
				gate.Unlock()
			}
			gate.RLock()
			_, err := io.WriteString(c, ok)
			gate.RUnlock()
			if err != nil {
				return
			}
		}
	}
}

// wantGap tries a load until its longest gap is as wanted: a busy machine makes gaps of its own, too, and shortens others.
func wantGap(t *testing.T, o func() Options, want func(outcome) bool) {
	t.Helper()
	tried(t, func() string {
		r := load(t, o())
		if r.LongestGapMs > 1e3*r.Seconds {
			t.Errorf("the longest gap of %f ms is %f ms", 1e3*r.Seconds, r.LongestGapMs)
		}
		if want(r) {
			return ""
		}
		return fmt.Sprintf("the longest gap of %f ms with %d responses and %d errors is %f ms", 1e3*r.Seconds, r.ResponseTotal(), r.ErrorTotal(), r.LongestGapMs)
	})
}

func TestTheLongestGap(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		at      int64
		closed  time.Duration
		threads int
	}{
		"one thread":             {50, 300 * ms, 1},
		"two threads":            {50, 300 * ms, 2},
		"before the first":       {1, 300 * ms, 2},
		"until the window's end": {50, time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantGap(t, func() Options {
				o := options(serve(t, gated(test.at, test.closed)).url)
				o.Threads, o.Duration = test.threads, 700*ms
				return o
			}, func(r outcome) bool {
				return r.LongestGapMs >= 297 && (test.closed > time.Second/2 || r.LongestGapMs < 400)
			})
		})
	}
}

func TestWhatIsNoGap(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer func() handler
		change func(*Options)
	}{
		"idle time of the open model": {
			func() handler { return always(ok) }, func(o *Options) { o.Rate, o.Threads = 4, 2 },
		},
		"another thread has responses": {firstStalls, func(o *Options) { o.Threads = 4 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantGap(t, func() Options {
				o := options(serve(t, test.answer()).url)
				o.Duration = 700 * ms
				test.change(&o)
				return o
			}, func(r outcome) bool { return r.ResponseTotal() >= 2 && r.LongestGapMs < 200 })
		})
	}
}

type resumed struct {
	net.Conn
	all io.Reader
}

func (c resumed) Read(b []byte) (int, error) { return c.all.Read(b) }

func TestARequestHasLeftWhenTheSocketHasTakenIt(t *testing.T) {
	t.Parallel()
	const stall = 500 * ms
	// Too long for the header table, and no shorter in Huffman's code: each request has it in full.
	long := strings.Repeat("~", 8000)
	wmem, err := os.ReadFile("/proc/sys/net/ipv4/tcp_wmem")
	must(t, err)
	room, err := strconv.Atoi(strings.Fields(string(wmem))[2])
	must(t, err)
	s := serve(t, func(s *testServer, c net.Conn) {
		c.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // SETTINGS
		first := make([]byte, len(long))
		if _, err := io.ReadFull(c, first); err != nil {
			return
		}
		time.Sleep(stall) // in which the server does not read
		answerFrames(s, resumed{c, io.MultiReader(bytes.NewReader(first), c)})
	})
	o := options(s.url)
	o.Protocol, o.Connections, o.Rate, o.Headers = H2C, 1, 10_000, []Header{{"x", long}}
	// Twice the most that the socket keeps of what is sent; a peer that does not read keeps little.
	o.Streams = 2 * room / len(long)
	o.Requests = int64(o.Streams)
	r := load(t, o)
	wantResponses(t, r, o.Requests)
	last := 1e3 * float64(o.Requests) / o.Rate
	if r.SendDelayMs.Max < float64(stall.Milliseconds())-last {
		t.Errorf("all of %d requests left within %f ms of when they were due, with %d bytes of room in the socket", o.Requests, r.SendDelayMs.Max, room)
	}
}
