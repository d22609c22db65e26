// Package engine is a load generator for web servers. It knows nothing of k6, of scenarios or of bakeoff.
//
// # From a call to its result
//
// Run loads one server, Alternate several in turns. Both do the same:
//
//	Options ──newPlan──► plan ──makeLoops──► loops ──intervals──► collector ──► Second, once a second
//	                     checked, resolved,  one per thread       one per side  Result, at the end
//	                     encoded
//
// The types, from the outside in:
//
//   - plan (options.go) is read-only once it is made. All requests are encoded before the load (requests.go).
//   - run (engine.go) is one side: its plan, its loops, and what these share (shared.go).
//   - loop (loop.go) is an event loop on a thread of its own, with its own epoll, connections and counts. With HTTP/3 and no rate it is a
//     goroutine. It coordinates its parts, which are named below.
//   - poller (poller.go) is what the loop waits with: epoll, or a bell that HTTP/3's goroutines ring.
//   - model (model.go) says what starts a request. Without a rate (the closed model) it is the end of the attempt before it on its
//     connection. At a rate (the open model) a schedule says when the next one is due: evenly or by chance (internal/schedule).
//   - conn (conn.go, transfer.go, tls.go) is a slot for one connection at a time: open, send, receive, close, back off, open again.
//   - session (conn.go) is the protocol on a connection: http1, h2Session or h3Session. It asks model.take for an attempt, and ends each one
//     by exactly one loop.response or loop.failure (attempts.go).
//
// Protocols and times are the work of packages that know nothing of loops: internal/schedule says when requests are due, internal/tlsconn is
// TLS, internal/h1 reads responses of HTTP/1, internal/h2 is the client's side of HTTP/2, internal/h3 that of HTTP/3 with its goroutines over
// QUIC, internal/headers reads header blocks.
//
// Both poller and model are chosen once, when the loop is made, so that no request asks for them. A loop's other parts have one job
// each, and ask only for their own fields:
//
//   - before a request: mixPlace (requests.go) is the place in the order of requests, loopShare the share of a number of them, and starts the
//     slots that start next (attempts.go).
//   - beside it: timeouts and backoffs (timeouts.go) and hope (hopeless.go) find what is too old, waits, or fails for good.
//   - after it: loopCounts and tally (counts.go) are what was counted and recorded, loopGap (gap.go), queueGrowth (queue.go) and samples
//     (counts.go) what changes with time, receipts (readdelay.go) how late responses were read.
//   - around it: loopTurn (loopturns.go), window and reach (window.go) and loopWarmup (warmup.go) are the loop's place in the load.
//
// # Who owns what
//
// A loop owns its slots, sessions, buffers and counts, so a request takes no lock. Under load only this leaves a loop:
//
//   - an interval with the counts of about a second, by the channel shared.intervals. The collector gives it back for reuse.
//   - a draw from the shared quota, in chunks: for a number of requests with a new connection each.
//   - the time of its last response, every 100 µs at most, for the longest gap on all threads (sharedGap).
//   - the time for which it has polled in vain, which is taken off the generator's CPU time (shared.spun).
//
// The fields of turn are written between two turns of the side. A loop's totals are read after its last interval.
//
// # A turn
//
// All times are nanoseconds of the run's clock (shared.now). Of several sides one is under load at a time:
//
//	                began       steadyFrom              sliceEnd         last response
//	                  │              │                      │                  │
//	──── joinTurn ────┼──── ramp ────┼────── window ────────┼───── drain ──────┼─── awaitIdle ───► the next side's turn
//	reopen what the   │ requests     │ requests start,      │ nothing starts,  │ the server ends
//	server closed;    │ start, none  │ and count            │ answers are read │ work of its own
//	wait for loops    │ counts       │                      │                  │
//
// In detail:
//
//   - Each loop has a state for this: turnState (loopturns.go) has its picture, and advanceTurn all its transitions.
//   - The ramp fills the server's queue. Its length comes from the warm-up (pace.go), and may be zero.
//   - Without a rate, a window after a ramp begins and ends with a response (opening, concluding and setEdge).
//   - Answers that come after the drain are read in other sides' turns (awaitTurn).
//   - Time outside of the side's turns does not count: loops move their times by it (loop.shift), and shared.turn.away adds it up.
//   - A load that is alone has one turn, without ramp and end.
//
// # What counts
//
// A Result is about the window: the phase measuring of all loops (window.go), less the time outside of turns. Before it come these phases:
//
//	                                              ┌──► warmedUp ─────────────┐     several sides
//	unbegun ──► [probing or reaching] ──► warming ┼──────────────────────────┼──► measuring
//	   │                                          └──► draining ──► drained ─┤     alone, a number of requests without a rate
//	   └─────────────────────────────────────────────────────────────────────┘     without a warm-up
//
// Only loads without a rate have the phase probing; of several k6 instances only those with several sides. Only kept connections at a rate have the phase reaching. What counts:
//
//   - Events count where loopCounts.current points: to the window, or to `outside` at the edges of turns. What is outside ends up in
//     WarmupRequests.
//   - Latencies belong to the time at which a request started or was due, so that a turn's slowest requests are not cut off.
//   - At a rate, turns come in cycles: an order of all sides, and its mirror. A cycle in which the generator stalled is thrown away, and
//     made again (pace.go).
//
// # The budget of a request
//
// In the steady state over HTTP/1.1 and HTTP/2 a request costs:
//
//   - two system calls, one send and one receive, and its part of one poll per iteration. A response that is shorter than the buffer needs
//     no second receive, since sockets are edge-triggered. Streams of an HTTP/2 connection share these calls.
//   - no allocation and no goroutine. BenchmarkKeepAlive and those beside it show 0 allocs/op.
//   - no copy of a response: it is parsed in the loop's read buffer. The kernel drops long bodies of HTTP/1 without TLS (linux.Discard).
//   - no copy of a request over HTTP/1. HTTP/2 gathers its frames in one buffer. TLS copies once, to encrypt, and decrypts in place.
//
// HTTP/3 is outside of this budget: quic-go allocates, and internal/h3 reads each stream on a goroutine of its own.
package engine
