package link

import (
	"io"
	"testing"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

func TestReportWaitsForQuiet(t *testing.T) {
	t.Parallel()
	p := startLink(t, Order{ToServer: Direction{DelayMs: 400}}, nil)
	client, server := p.sockets()
	sendNumbered(t, client, addressOf(server), 5, 50)
	if r := p.quiet(); r.ToServer.Delivered != 5 {
		t.Errorf("%+v", r)
	}

	go func() {
		datagram := make([]byte, mtu)
		for range 5 {
			server.ReadFromUDP(datagram)
		}
		if _, from, err := server.ReadFromUDP(datagram); err == nil {
			time.Sleep(150 * time.Millisecond)
			server.WriteToUDP(datagram[:50], from)
		}
	}()
	sendNumbered(t, client, addressOf(server), 1, 50)
	if r := p.quiet(); r.ToServer.Delivered != 1 || r.ToClient.Delivered != 1 {
		t.Errorf("%+v", r)
	}

	sendNumbered(t, client, addressOf(server), 1, 50)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				client.WriteToUDP([]byte("more"), addressOf(server))
			}
		}
	}()
	begin := time.Now()
	r := p.report()
	if r.Quiet || r.ToServer.Packets == 0 || time.Since(begin) < longestQuietWait {
		t.Errorf("after %s: %+v", time.Since(begin), r)
	}
	close(stop)
	<-ended
	if later := p.report(); !later.Quiet || later.ToServer.Delivered-later.ToServer.Packets != r.ToServer.Packets-r.ToServer.Delivered {
		t.Errorf("%+v, then %+v", r.ToServer, later.ToServer)
	}
}

func TestEndWithinAReport(t *testing.T) {
	const delay = 3 * time.Second
	p := startLink(t, Order{ToServer: Direction{DelayMs: float64(delay.Milliseconds())}}, nil)
	client, server := p.sockets()
	begin := time.Now()
	sendNumbered(t, client, addressOf(server), 1, 50)
	io.WriteString(p.in, "report\ncounts\nreport\n")
	p.in.Close()
	answers, err := io.ReadAll(p.answers)
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	// A report takes longer than the packet that is on its way.
	if took := time.Since(begin); len(answers) > 0 || err != nil || took >= delay {
		t.Errorf("after %s it ended with %q (%v)", took, answers, err)
	}
}

// Counts are those of now, and stay in the next report; a mark parts lateness alone.
func TestCounts(t *testing.T) {
	t.Parallel()
	p := startLink(t, Order{ToServer: Direction{DelayMs: 700, QueuePackets: 4}}, nil)
	client, server := p.sockets()
	begin, beginMs := time.Now(), float64(linux.Monotonic())/1e6
	sendNumbered(t, client, addressOf(server), 10, 72)
	var c Counts
	for c.ToServer.Packets < 10 && time.Since(begin) < 10*time.Second {
		p.ask("counts", &c)
	}
	if took := time.Since(begin); took > 600*time.Millisecond {
		t.Skipf("SKIPPED: it took %s to send and count: they may have arrived by now", took)
	}
	want := Traffic{Packets: 10, Kinds: KindCounts{Other: 10}, Bytes: 1000, Dropped: 6}
	if c.ToServer != want || c.ToClient != (Traffic{}) || c.AtMs < beginMs || c.AtMs > float64(linux.Monotonic())/1e6 || c.LinkCPUSeconds.ToServer <= 0 || c.LinkCPUSeconds.ToClient <= 0 {
		t.Errorf("%+v", c)
	}
	for c.ToServer.Delivered < 4 && time.Since(begin) < 10*time.Second {
		p.ask("counts", &c)
	}
	var marked, later Counts
	p.ask("mark", &marked)
	p.ask("counts", &later)
	want.Delivered = 4
	if r := p.quiet(); marked.ToServer.LatenessMs.Max <= 0 || marked.ToServer != c.ToServer || later.ToServer != want || r.ToServer != want {
		t.Errorf("%+v, marked as %+v, then %+v; at rest %+v", c.ToServer, marked.ToServer, later.ToServer, r.ToServer)
	}
	if p.ask("counts", &c); c.ToServer != (Traffic{}) {
		t.Errorf("after a report: %+v", c)
	}
}
