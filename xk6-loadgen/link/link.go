// Package link is a network of two sides with a delay between them: two network namespaces without a name, a TUN device in each, and a
// process that carries the packets:
//
//	namespace of the client            this process                    namespace of the server
//	198.18.0.1 ── TUN device ──► pump: loss, limits, delay ──► TUN device ── 198.19.0.1
//	198.18.0.1 ── TUN device ◄── pump: loss, limits, delay ◄── TUN device ── 198.19.0.1
//
// Serve reads an order from the runner (messages.go), starts a Link, and reports counts on demand. The namespaces exist as long as the process
// holds them open (namespace.go), so the kernel removes everything when it ends, however it ends.
package link

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

const (
	quietMargin      = 50 * time.Millisecond // added to the round trip: TCP may delay an acknowledgement by 40 ms
	longestQuietWait = 10 * time.Second      // how long to wait until the link is quiet
	lookAgainAfter   = 5 * time.Millisecond  // awaitQuiet checks no more often
)

// Link is a network that carries packets until its process ends.
type Link struct {
	Failed <-chan error // Failed gets the reason when the link stops carrying packets.

	client, server     *namespace
	toServer, toClient *pump
	roundTrip          time.Duration
	reported           reading // the reading at the last report, or at the start
	drops              int64   // drops of both devices by the last report.
}

// reading is what both kernels and the process's clocks count, since their start.
type reading struct {
	client, server          kernelCounts
	processCPU, toServerCPU int64
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// Start makes the link. Its errors say what the system refuses, and what helps.
func Start(order Order) (*Link, Ready, error) {
	l := &Link{roundTrip: milliseconds(order.ToServer.DelayMs) + milliseconds(order.ToClient.DelayMs)}
	ready := Ready{Settings: make([]SettingOutcome, len(order.Settings))}
	for i, s := range order.Settings {
		ready.Settings[i].SettingOrder = s
	}
	var err error
	for side, n := range map[Side]**namespace{Client: &l.client, Server: &l.server} {
		if *n, err = newNamespace(side, ready.Settings); err != nil {
			return nil, ready, err
		}
	}
	nameGlobals(ready.Settings)
	ready.Client, ready.Server = l.client.ready(), l.server.ready()
	random := func(direction uint64) *rand.Rand { return rand.New(rand.NewPCG(order.Seed, direction)) }
	if l.toServer, err = newPump(l.client.tun, l.server.tun, order.ToServer, l.roundTrip, random(0)); err == nil {
		l.toClient, err = newPump(l.server.tun, l.client.tun, order.ToClient, l.roundTrip, random(1))
	}
	if err != nil {
		return nil, ready, err
	}
	failed := make(chan error, 2)
	l.Failed = failed
	start := func(p *pump, cpus []int, side Side) error {
		started := make(chan error)
		go func() { failed <- fmt.Errorf("the %s's device cannot be read: %w", side, p.run(cpus, started)) }()
		return <-started
	}
	if err = start(l.toServer, order.CPUs.ToServer, Client); err == nil {
		err = start(l.toClient, order.CPUs.ToClient, Server)
	}
	ready.ToServerThread = l.toServer.thread
	if err == nil {
		l.reported, err = l.read()
	}
	return l, ready, err
}

func (l *Link) read() (r reading, err error) {
	if r.client, err = l.client.kernel.read(); err == nil {
		r.server, err = l.server.kernel.read()
	}
	r.processCPU, r.toServerCPU = linux.ProcessCPU(), linux.ThreadCPU(l.toServer.thread)
	return r, err
}

// useBy is the network's use from the last report to a reading. CPU time of all other threads is booked to the direction to the client.
func (l *Link) useBy(r reading, toServer, toClient Traffic) NetworkUse {
	toServerCPU := r.toServerCPU - l.reported.toServerCPU
	toClientCPU := max(0, r.processCPU-l.reported.processCPU-toServerCPU)
	return NetworkUse{
		ToServer: toServer, ToClient: toClient,
		Retransmits:     Sides{r.client.retransmits - l.reported.client.retransmits, r.server.retransmits - l.reported.server.retransmits},
		ListenOverflows: r.server.listenOverflows - l.reported.server.listenOverflows,
		LinkCPUSeconds:  ByDirection[float64]{ToServer: float64(toServerCPU) / 1e9, ToClient: float64(toClientCPU) / 1e9},
	}
}

// Report waits until the link is quiet, and returns its use since the last report. Quiet is false if packets still passed after
// longestQuietWait.
func (l *Link) Report() (Report, error) {
	quiet := l.awaitQuiet()
	toServer, refusedThere := l.toServer.take()
	toClient, refusedBack := l.toClient.take()
	r, err := l.read()
	atClient, clientErr := l.client.kernel.drops()
	atServer, serverErr := l.server.kernel.drops()
	report := Report{Quiet: quiet, NetworkUse: l.useBy(r, toServer, toClient), DeviceDrops: atClient + atServer - l.drops + refusedThere + refusedBack}
	l.reported, l.drops = r, atClient+atServer
	return report, cmp.Or(err, clientErr, serverErr)
}

// Counts returns the use since the last report, at once. With mark, lateness begins anew.
func (l *Link) Counts(mark bool) (Counts, error) {
	r, err := l.read()
	atMs := float64(linux.Monotonic()) / 1e6
	return Counts{AtMs: atMs, NetworkUse: l.useBy(r, l.toServer.counts(mark), l.toClient.counts(mark))}, err
}

// awaitQuiet waits until no packet has moved for a round trip and quietMargin.
func (l *Link) awaitQuiet() bool {
	need := l.roundTrip + quietMargin
	for deadline := time.Now().Add(longestQuietWait); ; {
		busyThere, lastThere := l.toServer.state()
		busyBack, lastBack := l.toClient.state()
		left := need - time.Duration(now()-max(lastThere, lastBack))
		if !busyThere && !busyBack && left <= 0 {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(min(max(left, lookAgainAfter), time.Until(deadline)+time.Millisecond))
	}
}

const (
	longestLine   = 1 << 20
	commandsAhead = 64 // commandsAhead may be sent before one is answered.
)

// Serve reads an order and then commands, each on a line, and answers each with a line. It returns nil when its input ends.
func Serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestLine)
	if !lines.Scan() {
		return endOf(lines)
	}
	order, err := parseOrder(lines.Bytes())
	if err != nil {
		return err
	}
	link, ready, err := Start(order)
	if err != nil {
		return err
	}
	commands, ended := make(chan string, commandsAhead), make(chan error, 2)
	go func() {
		for lines.Scan() {
			commands <- lines.Text()
		}
		ended <- endOf(lines)
	}()
	go func() { ended <- link.answer(ready, commands, json.NewEncoder(out)) }()
	select {
	case err = <-ended:
	case err = <-link.Failed:
	}
	return err
}

// answer writes the first message, and then one for each line that comes in, until one fails.
func (l *Link) answer(first any, commands <-chan string, answers *json.Encoder) (err error) {
	for answer := first; ; {
		if err = answers.Encode(answer); err != nil {
			return fmt.Errorf("its output cannot be written: %w", err)
		}
		switch command := <-commands; command {
		case "counts", "mark":
			answer, err = l.Counts(command == "mark")
		case "report":
			answer, err = l.Report()
		default:
			err = fmt.Errorf("unknown command %.40q: there are counts, mark and report", command)
		}
		if err != nil {
			return err
		}
	}
}

// endOf is why the input ended; nil if it was closed.
func endOf(lines *bufio.Scanner) error {
	if err := lines.Err(); err != nil {
		return fmt.Errorf("its input cannot be read: %w", err)
	}
	return nil
}
