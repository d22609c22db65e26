package engine

import (
	"bufio"
	"math"
	"net"
	"testing"
	"time"
)

// The second one is long: a generator that sleeps through it reads both parts at once.
const headersAfter, bodyAfter = 30 * time.Millisecond, 300 * time.Millisecond

// inParts takes a while before a response's headers, and before its body.
func inParts(t *testing.T, protocol Protocol) string {
	if protocol == HTTP11 {
		return serve(t, func(s *testServer, c net.Conn) {
			for r := bufio.NewReader(c); s.readRequest(r); {
				time.Sleep(headersAfter) // what is measured
				c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"))
				time.Sleep(bodyAfter)
				c.Write([]byte("hi"))
			}
		}).url
	}
	if protocol == H3 {
		return serveH3(t, nil, func(r *h3PeerStream) {
			time.Sleep(headersAfter)
			r.sendHeaders(":status", "200")
			time.Sleep(bodyAfter)
			r.sendBody("hi")
			r.Close()
		}).url
	}
	return serveH2(t, answering(func(p *h2peer, r *h2stream) {
		time.Sleep(headersAfter)
		p.headers(r, false, ":status", "200")
		p.flush()
		time.Sleep(bodyAfter)
		p.data(r, "hi", true)
	})).url
}

func countOf(d LatencyDistribution) (count int64) {
	for _, bar := range d.Histogram {
		count += bar.Count
	}
	return count
}

func TestALatencyIsWaitingAndReceiving(t *testing.T) {
	for _, protocol := range []Protocol{HTTP11, H2C, H3} {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			o := options(inParts(t, protocol))
			o.Protocol, o.Requests, o.Parts = protocol, 5, true
			o.TLS.InsecureSkipVerify = true
			first, both := headersAfter.Seconds()*1000, (headersAfter+bodyAfter).Seconds()*1000
			for _, s := range load(t, o).seconds {
				if s.WaitingMs.Min < first || s.ReceivingMs.Min <= 0 || s.LatencyMs.Min < both || countOf(s.WaitingMs) != 5 || countOf(s.ReceivingMs) != 5 {
					t.Errorf("waiting %+v, receiving %+v", s.WaitingMs, s.ReceivingMs)
				}
				if sum := s.WaitingMs.Mean + s.ReceivingMs.Mean; math.Abs(sum-s.LatencyMs.Mean) > 1e-6 {
					t.Errorf("waiting and receiving %f ms, latency %f ms", sum, s.LatencyMs.Mean)
				}
			}
		})
	}
}

func TestAResponseInOneReadIsReceivedAtOnce(t *testing.T) {
	t.Parallel()
	o := options(serve(t, always(ok)).url)
	o.Requests, o.Parts = 1000, true
	for _, s := range load(t, o).seconds {
		if s.ReceivingMs.Max != 0 || countOf(s.ReceivingMs) != 1000 || s.WaitingMs.P99 != s.LatencyMs.P99 || s.WaitingMs.Mean != s.LatencyMs.Mean {
			t.Errorf("waiting %+v, receiving %+v, latency %+v", s.WaitingMs.Distribution, s.ReceivingMs.Distribution, s.LatencyMs.Distribution)
		}
	}
	o.Parts = false
	for _, s := range load(t, o).seconds {
		if countOf(s.WaitingMs)+countOf(s.ReceivingMs) != 0 {
			t.Error("parts that nobody asked for")
		}
	}
}

func TestPartsOfManyResponsesAreThoseOfSome(t *testing.T) {
	p := newParts(&plan{Options: Options{Parts: true}})
	const responses = 200_000
	for i := range int64(responses) {
		p.record(0, 1000*(1+i%50), 100_000)
	}
	waiting, receiving := p.distributions()
	within := func(what string, got, want, share float64) {
		if math.Abs(got/want-1) > share {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	within("the number of values", float64(countOf(waiting)), responses, 0.03)
	within("waiting in the mean", waiting.Mean, 0.0255, 0.03)
	within("receiving in the mean", receiving.Mean, 0.0745, 0.02)
	within("half of all waits", waiting.P50, 0.0255, 0.06)
	if countOf(receiving) != countOf(waiting) || waiting.Min != 0.001 || waiting.Max != 0.05 {
		t.Errorf("waiting %+v, receiving %+v", waiting.Distribution, receiving.Distribution)
	}
}
