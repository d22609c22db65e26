package engine

import "runtime/debug"

// collectFor lets the heap grow as far as these loads' garbage allows between collections. Each collection reads all that k6 holds, so what it
// costs a request is less the further the heap may grow. It returns a function that undoes this. Where the heap's growth is not the usual one,
// by GOGC in the environment or by another call's load, it stays.
func collectFor(runs []*run) (undo func()) {
	percent := collectSeldom
	for _, r := range runs {
		percent = min(percent, r.plan.gcPercent())
	}
	// Setting it stops all loops for a moment.
	if percent == usualCollection {
		return func() {}
	}
	if was := debug.SetGCPercent(percent); was != usualCollection {
		debug.SetGCPercent(was)
		return func() {}
	}
	return func() { debug.SetGCPercent(usualCollection) }
}

// By how many percent the heap may grow between collections.
const (
	// collectSeldom saves 12 % of a handshake's CPU time and 8 % of an HTTP/3 request's. At 1600 % requests cost as much as at 100 %: all of the
	// memory is new.
	collectSeldom   = 400
	usualCollection = 100
	collectOften    = 25 // 500 connections over QUIC hold 40 MB.
)

// gcPercent is how far the heap may grow during the load. Requests leave garbage only over QUIC, connections only with TLS handshakes.
func (p *plan) gcPercent() int {
	const many = 500 // connections, which hold much memory themselves
	isQUIC := p.Protocol == H3
	switch {
	case isQUIC && p.Connections >= many:
		return collectOften
	case isQUIC, p.tls != nil && !p.KeepAlive && p.Connections < many:
		return collectSeldom
	}
	return usualCollection
}
