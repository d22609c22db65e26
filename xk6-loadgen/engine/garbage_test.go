package engine

import (
	"crypto/tls"
	"runtime/debug"
	"testing"
)

func TestGarbageIsCollectedAsTheLoadLeavesIt(t *testing.T) {
	of := func(protocol Protocol, connections int, keepAlive bool) *run {
		o := Options{Protocol: protocol, Connections: connections, KeepAlive: keepAlive}
		return &run{plan: &plan{Options: o, tls: &tls.Config{}}}
	}
	closing := func(connections int) *run { return of(HTTP11, connections, false) }
	quic := func(connections int) *run { return of(H3, connections, true) }
	kept, plain := of(HTTP11, 20, true), closing(20)
	plain.plan.tls = nil
	for _, c := range []struct {
		what string
		runs []*run
		set  int // GOGC before
		want int
	}{
		{"handshakes", []*run{closing(20)}, 100, 400},
		{"HTTP/3", []*run{quic(10)}, 100, 400},
		{"kept connections", []*run{kept}, 100, 100},
		{"connections without TLS", []*run{plain}, 100, 100},
		{"many connections", []*run{closing(500)}, 100, 100},
		{"many connections of HTTP/3", []*run{quic(500)}, 100, 25},
		{"the side with the most memory", []*run{quic(10), quic(500), kept}, 100, 25},
		{"GOGC of the environment", []*run{quic(10)}, 50, 50},
		{"no collection", []*run{quic(10)}, -1, -1},
		{"a call beside another one's load", []*run{quic(10)}, 400, 400},
	} {
		before := debug.SetGCPercent(c.set)
		undo := collectFor(c.runs)
		got := debug.SetGCPercent(c.want)
		undo()
		after := debug.SetGCPercent(before)
		if got != c.want || after != c.set {
			t.Errorf("%s: the heap may grow by %d %% and afterwards %d %%, want %d %% and %d %%", c.what, got, after, c.want, c.set)
		}
	}
}
