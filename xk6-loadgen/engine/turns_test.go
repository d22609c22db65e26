package engine

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

// serverVariable makes a process of this test's binary a server, see TestAsServer.
const serverVariable = "ENGINE_TEST_SERVER"

// TestAsServer is no test but the server of separate processes: it says its address, and answers until its input ends.
func TestAsServer(t *testing.T) {
	if os.Getenv(serverVariable) == "" {
		t.Skip("runs in a process of its own")
	}
	answer := always(ok)
	switch os.Getenv(serverVariable) {
	case worksAfterwards:
		answer = worksAfter(answer, 20*ms)
	case worksLongAfterwards:
		answer = worksAfter(answer, 300*ms)
	case worksAlways:
		go func() {
			for {
				runtime.Gosched()
			}
		}()
	case holdsMemory:
		answer = holding(answer)
	case closesIdle:
		answer = closingIdle(answer)
	}
	s := serve(t, answer)
	if os.Getenv(serverVariable) == closesIdle {
		s.url = strings.Replace(s.url, "http:", "https:", 1)
	}
	fmt.Println("serving " + s.url)
	bufio.NewReader(os.Stdin).ReadByte()
}

const (
	holdsMemory = "holds"
	memoryHeld  = 10 << 20
)

func holding(answer handler) handler {
	return func(s *testServer, c net.Conn) {
		held, err := syscall.Mmap(-1, 0, memoryHeld, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			panic(err)
		}
		for i := range held {
			held[i] = 1
		}
		defer syscall.Munmap(held)
		answer(s, c)
	}
}

const closesIdle = "closes"

func closingIdle(answer handler) handler {
	config := serverTLS(rsaKey)
	config.SessionTicketsDisabled = true
	return func(s *testServer, c net.Conn) {
		over := tls.Server(c, config)
		if over.Handshake() == nil {
			answer(s, &idling{over, 40 * ms})
		}
	}
}

type idling struct {
	net.Conn
	most time.Duration
}

func (i *idling) Read(p []byte) (int, error) {
	i.Conn.SetReadDeadline(time.Now().Add(i.most))
	return i.Conn.Read(p)
}

// worksAfterwards and worksLongAfterwards are servers that use up CPU time for each connection's bytes after its answer, 20 and 300 ms
// behind at most. worksAlways is one that does so without a load.
const worksAfterwards, worksLongAfterwards, worksAlways = "afterwards", "long afterwards", "always"

func worksAfter(answer handler, mostLeft time.Duration) handler {
	const work = 200 * time.Microsecond
	todo := make(chan bool, mostLeft/work)
	go func() {
		for range todo {
			for until := linux.ProcessCPU() + int64(work); linux.ProcessCPU() < until; {
			}
		}
	}()
	return func(s *testServer, c net.Conn) { answer(s, &noting{c, todo}) }
}

type noting struct {
	net.Conn
	todo chan bool
}

func (n *noting) Write(p []byte) (int, error) {
	written, err := n.Conn.Write(p)
	select {
	case n.todo <- true:
	default:
	}
	return written, err
}

func serverProcess(t *testing.T) (url string, group int) { return serverProcessThat(t, "1") }

func serverProcessThat(t *testing.T, kind string) (url string, group int) {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^TestAsServer$")
	command.Env = append(os.Environ(), serverVariable+"="+kind)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := command.StdinPipe()
	must(t, err)
	stdout, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() {
		stdin.Close()
		syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		command.Wait()
	})
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if address, found := strings.CutPrefix(lines.Text(), "serving "); found {
			return address, command.Process.Pid
		}
	}
	t.Fatal("the server said no address")
	return "", 0
}

func processSides(t *testing.T, kind string, change func(*Side)) (sides []Side) {
	for _, kind := range []string{kind, "1"} {
		url, group := serverProcessThat(t, kind)
		side := Side{Options: options(url), CPUOf: []int{group}}
		change(&side)
		sides = append(sides, side)
	}
	return sides
}

func sidesOf(change func(*Side), urls ...string) (sides []Side) {
	for _, url := range urls {
		side := Side{Options: options(url)}
		change(&side)
		sides = append(sides, side)
	}
	return sides
}

func alternate(t *testing.T, slice time.Duration, sides ...Side) []outcome {
	t.Helper()
	outcomes := make([]outcome, len(sides))
	for i := range sides {
		out := &outcomes[i]
		sides[i].OnSecond = func(s Second) {
			out.sum.add(&s.Counts)
			out.seconds = append(out.seconds, s)
		}
	}
	results, err := Alternate(context.Background(), sides, Turns{Slice: slice, Seed: 1})
	must(t, err)
	for i, result := range results {
		outcomes[i].Result = result
		outcomes[i].check(t, context.Background(), sides[i].Options)
	}
	return outcomes
}

// neverTogether are two servers of which one gets no request while the other one has some. The first one on each connection takes this long.
func neverTogether(t *testing.T, first time.Duration) (urls []string) {
	var underWay [2]atomic.Int64
	for i := range underWay {
		mine, theirs := &underWay[i], &underWay[1-i]
		urls = append(urls, serve(t, func(s *testServer, c net.Conn) {
			wait := first
			for r := bufio.NewReader(c); s.readRequest(r); wait = 0 {
				mine.Add(1)
				if n := theirs.Load(); n > 0 {
					t.Errorf("a request came while %d of the other side were under way", n)
				}
				time.Sleep(wait)
				mine.Add(-1)
				c.Write([]byte(ok))
			}
		}).url)
	}
	return urls
}

func TestSidesAreLoadedOneAtATime(t *testing.T) {
	t.Parallel()
	for _, keepAlive := range []bool{true, false} {
		sides := sidesOf(func(side *Side) {
			side.KeepAlive, side.Duration, side.Warmup = keepAlive, 200*ms, 20*ms
		}, neverTogether(t, 0)...)
		r := alternate(t, 5*ms, sides...)
		for i := range r {
			if r[i].Responses[0] == 0 || r[i].ErrorTotal() > 0 || r[i].Seconds < 0.15 || r[i].InFlight > 4 {
				t.Errorf("side %d: %s", i, r[i])
			}
		}
		// However late a busy machine makes the end of a turn: no time is that of both, and neither is over before the other begins.
		begins, ends := []time.Time{r[0].Window.StartedAt, r[1].Window.StartedAt}, []time.Time{r[0].Window.EndedAt, r[1].Window.EndedAt}
		first, last := slices.MinFunc(begins, time.Time.Compare), slices.MaxFunc(ends, time.Time.Compare)
		if all, sum := last.Sub(first).Seconds(), r[0].Seconds+r[1].Seconds; all < sum-1e-6 {
			t.Errorf("%g s under load within %g s", sum, all)
		}
		if !slices.MaxFunc(begins, time.Time.Compare).Before(slices.MinFunc(ends, time.Time.Compare)) {
			t.Errorf("one side after the other: from %v to %v", begins, ends)
		}
	}
}

func TestACountsFirstTurnAwaitsWhatItBegan(t *testing.T) {
	t.Parallel()
	// As long as the handshakes of all connections keep a server at work.
	sides := sidesOf(func(side *Side) { side.Requests = 100 }, neverTogether(t, 1300*ms)...)
	alternate(t, 2*ms, sides...)
}

func TestAServerThatDiesInItsTurnFailsItsSideOnly(t *testing.T) {
	t.Parallel()
	urlA, a := serverProcess(t)
	var killed atomic.Bool
	answer := always(ok)
	b := serve(t, func(s *testServer, c net.Conn) {
		if killed.CompareAndSwap(false, true) {
			syscall.Kill(-a, syscall.SIGKILL)
		}
		answer(s, c)
	})
	sides := sidesOf(func(side *Side) { side.Duration = 300 * ms }, urlA, b.url)
	sides[0].CPUOf = []int{a}
	r := alternate(t, 10*ms, sides...)
	if r[0].ErrorTotal() == 0 || r[1].ErrorTotal() > 0 || r[1].Responses[0] == 0 {
		t.Error(r[0], r[1])
	}
}

// A count after a warm-up is the hardest: the threads open the window together, whosever turn it was before.
func TestEverySessionTakesTurns(t *testing.T) {
	onSome(t, func(t *testing.T, x transport) {
		const requests = 600
		var servers []*peerServer
		var sides []Side
		for range 3 {
			s := x.serve(t, fine)
			o := x.options(s.url)
			o.Requests, o.Threads, o.Warmup = requests, 2, 20*ms
			servers, sides = append(servers, s), append(sides, Side{Options: o})
		}
		for i, r := range alternate(t, 2*ms, sides...) {
			if seen := servers[i].requests.Load(); r.Responses[0] != requests || seen != requests+r.WarmupRequests || r.InFlight != 0 {
				t.Error(i, seen, r)
			}
		}
	})
}

func TestTurnsThatCannotBe(t *testing.T) {
	s := serve(t, always(ok))
	side := Side{Options: options(s.url)}
	side.Requests = 1
	wrong := side
	wrong.Streams = 7
	for want, c := range map[string]struct {
		slice time.Duration
		sides []Side
	}{
		"sides: give the options of one load or more":        {10 * ms, nil},
		"slice: must be 1ms to 10s, got 1µs":                 {time.Microsecond, []Side{side}},
		"sides[1].streams: HTTP/1 has one request at a time": {10 * ms, []Side{side, wrong}},
	} {
		if _, err := Alternate(context.Background(), c.sides, Turns{Slice: c.slice}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func sumOf(histogram []Bar) (count int64) {
	for _, bar := range histogram {
		count += bar.Count
	}
	return count
}
