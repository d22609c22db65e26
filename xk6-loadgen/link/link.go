// Package link is a network of two sides with a delay between them: two network namespaces, a TUN device in each, and a
// process that carries the packets from one to the other, later. The namespaces have no name, so the kernel frees all of it
// when the process ends, however it ends.
//
// Flow: serve reads an order, namespace and settings make the sides, a pump per direction reads, classifies, queues and
// writes packets, counters and kernel are what a report is made from.
package link

import (
	"fmt"
	"time"

	"bakeoff.invalid/xk6-loadgen/internal/linux"
)

const (
	// quietMargin is added to the time there and back, for whoever has to answer: TCP may hold an acknowledgement back for 40 ms.
	quietMargin = 50 * time.Millisecond
	// longestQuest for quiet.
	longestQuest = 10 * time.Second
	// lookAgainAfter is how long to wait before looking again whether packets are on their way.
	lookAgainAfter = 5 * time.Millisecond
)

// Link is a link that runs. It runs as long as the process: nothing but its end frees what it holds.
type Link struct {
	// Failed gets why the link does not carry packets any more.
	Failed <-chan error

	client, server     *namespace
	toServer, toClient *pump
	roundTrip          time.Duration
	// Of the last report, or the start.
	clientCounts, serverCounts kernelCounts
	cpu                        cpuTimes
}

// cpuTimes are nanoseconds that the whole process and the thread of the packets to the server have used.
type cpuTimes struct{ process, toServer int64 }

func (c cpuTimes) since(before cpuTimes) ByDirection {
	toServer := c.toServer - before.toServer
	return ByDirection{ToServer: float64(toServer) / 1e9, ToClient: float64(max(0, c.process-before.process-toServer)) / 1e9}
}

// milliseconds as a duration.
func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// Start makes the link. Its errors say what the system refuses, and what would help.
func Start(order Order) (*Link, Ready, error) {
	l := &Link{roundTrip: milliseconds(order.ToServer.DelayMs) + milliseconds(order.ToClient.DelayMs)}
	var ready Ready
	outcomes := map[Side][]SettingOutcome{}
	for side, n := range map[Side]**namespace{Client: &l.client, Server: &l.server} {
		var settings []SettingOrder
		for _, s := range order.Settings {
			if s.Side == side {
				settings = append(settings, s)
			}
		}
		var err error
		if *n, outcomes[side], err = newNamespace(side, settings); err != nil {
			return nil, ready, err
		}
		nameGlobals(outcomes[side])
	}
	ready = Ready{Client: l.client.ready(), Server: l.server.ready(), Settings: []SettingOutcome{}}
	for _, s := range order.Settings {
		ready.Settings = append(ready.Settings, outcomes[s.Side][0])
		outcomes[s.Side] = outcomes[s.Side][1:]
	}
	var err error
	if l.toServer, err = newPump(l.client.tun, l.server.tun, order.ToServer, l.roundTrip); err != nil {
		return nil, ready, err
	}
	if l.toClient, err = newPump(l.server.tun, l.client.tun, order.ToClient, l.roundTrip); err != nil {
		return nil, ready, err
	}
	var cpus CPUs
	if order.CPUs != nil {
		cpus = *order.CPUs
	}
	failed := make(chan error, 2)
	l.Failed = failed
	start := func(p *pump, cpus []int, side Side) error {
		started := make(chan error)
		go func() { failed <- fmt.Errorf("the %s's device cannot be read: %w", side, p.run(cpus, started)) }()
		return <-started
	}
	if err = start(l.toServer, cpus.ToServer, Client); err == nil {
		err = start(l.toClient, cpus.ToClient, Server)
	}
	ready.ToServerThread = l.toServer.thread
	l.cpu = l.cpuTimes()
	return l, ready, err
}

func (l *Link) cpuTimes() cpuTimes { return cpuTimes{linux.ProcessCPU(), l.toServer.cpuTime()} }

// Report waits until the link is quiet, as LinkReport says, and returns what happened since the last one. The time in which
// nothing comes is counted from when the last packet left: who got it may take that long to answer.
func (l *Link) Report() (Report, error) {
	r := Report{Quiet: l.awaitQuiet()}
	var refusedThere, refusedBack int64
	r.ToServer, refusedThere = l.toServer.take()
	r.ToClient, refusedBack = l.toClient.take()
	client, server, err := l.kernelCounts()
	if err != nil {
		return r, err
	}
	onClient, onServer := client.since(l.clientCounts), server.since(l.serverCounts)
	l.clientCounts, l.serverCounts = client, server
	r.Retransmits = Sides{Client: onClient.retransmits, Server: onServer.retransmits}
	r.ListenOverflows = onServer.listenOverflows
	r.DeviceDrops = onClient.deviceDrops + onServer.deviceDrops + refusedThere + refusedBack
	cpu := l.cpuTimes()
	r.LinkCPUSeconds = cpu.since(l.cpu)
	l.cpu = cpu
	return r, nil
}

// Counts returns what has happened since the last report, now, while packets are on their way. mark: lateness, in this and in the
// next report, begins anew after it.
func (l *Link) Counts(mark bool) (Counts, error) {
	client, server, err := l.kernelCounts()
	onServer := server.since(l.serverCounts)
	return Counts{
		AtMs:     float64(linux.Monotonic()) / 1e6,
		ToServer: l.toServer.counts(mark), ToClient: l.toClient.counts(mark),
		Retransmits:     Sides{Client: client.since(l.clientCounts).retransmits, Server: onServer.retransmits},
		ListenOverflows: onServer.listenOverflows,
		LinkCPUSeconds:  l.cpuTimes().since(l.cpu),
	}, err
}

func (l *Link) kernelCounts() (client, server kernelCounts, err error) {
	if client, err = l.client.kernel.read(); err == nil {
		server, err = l.server.kernel.read()
	}
	return client, server, err
}

func (l *Link) awaitQuiet() bool {
	need := l.roundTrip + quietMargin
	for deadline := time.Now().Add(longestQuest); ; {
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
