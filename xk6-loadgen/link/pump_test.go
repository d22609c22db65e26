package link

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/racing"
)

type pipe struct {
	*pump
	in, out int
}

func testPipe(t testing.TB, d Direction) *pipe {
	t.Helper()
	var from, to [2]int
	for _, pair := range []*[2]int{&from, &to} {
		var err error
		if *pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
			t.Fatal(err)
		}
		for _, fd := range pair {
			t.Cleanup(func() { unix.Close(fd) })
		}
	}
	p, err := newPump(from[1], to[0], d, milliseconds(d.DelayMs), rand.New(rand.NewPCG(1, 2)))
	must(t, err)
	t.Cleanup(p.queue.free)
	return &pipe{pump: p, in: from[0], out: to[1]}
}

func (p *pipe) send(t testing.TB, number, size int) {
	t.Helper()
	packet := make([]byte, size)
	binary.BigEndian.PutUint32(packet, uint32(number))
	must(t, unix.Send(p.in, packet, 0))
}

func (p *pipe) carry(t testing.TB) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = p.read(); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *pipe) finish() {
	for p.queue.waiting > 0 {
		p.writeDue()
	}
}

func (p *pipe) received(t testing.TB) (numbers []int) {
	t.Helper()
	packet := make([]byte, 2*mtu)
	for {
		n, err := unix.Read(p.out, packet)
		if errors.Is(err, unix.EAGAIN) {
			return numbers
		}
		if err != nil || n < 4 {
			t.Fatalf("%d bytes came out (%v)", n, err)
		}
		numbers = append(numbers, int(binary.BigEndian.Uint32(packet)))
	}
}

func (p *pipe) check(t testing.TB, sent, received int) Traffic {
	t.Helper()
	traffic, refused := p.take()
	if traffic.Packets != int64(sent) || traffic.Packets != traffic.Delivered+traffic.Dropped+traffic.Lost || traffic.Delivered-refused != int64(received) {
		t.Errorf("%d sent, %d received, %d refused: %+v", sent, received, refused, traffic)
	}
	return traffic
}

func TestQueueLimitDropsWhatExceedsIt(t *testing.T) {
	p := testPipe(t, Direction{DelayMs: 20, QueuePackets: 10})
	for i := range 30 {
		p.send(t, i, 100)
	}
	p.carry(t)
	p.finish()
	for i := range 5 {
		p.send(t, 100+i, 100)
	}
	p.carry(t)
	p.finish()
	got := p.received(t)
	if traffic := p.check(t, 35, 15); traffic.Dropped != 20 || traffic.Bytes != 3500 || traffic.Kinds.Other != 35 {
		t.Errorf("%+v", traffic)
	}
	for i, number := range got {
		if want := i; i < 10 && number != want || i >= 10 && number != 100+i-10 {
			t.Errorf("packet %d came out in place %d", number, i)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	p := testPipe(t, Direction{DelayMs: 60_000})
	p.queue.fresh = chunks
	for i := range 100 {
		p.send(t, i, mtu)
		p.carry(t)
	}
	perChunk := int64(chunkBytes / int(footprint(mtu)))
	traffic, _ := p.take()
	if p.queue.waiting != perChunk || traffic.Dropped != 100-perChunk || traffic.Packets != 100 {
		t.Errorf("%d wait, want %d: %+v", p.queue.waiting, perChunk, traffic)
	}
}

// Each packet is on its way for its bytes' time, one after the other, and the delay comes on top.
func TestRate(t *testing.T) {
	const packets, size, rate = 10, 500, 100_000
	p := testPipe(t, Direction{DelayMs: 10, BytesPerSecond: rate})
	begin := now()
	for i := range packets {
		p.send(t, i, size)
	}
	p.carry(t)
	read := now()
	for i := range int64(packets) {
		e, _ := p.queue.head()
		transmission := (i + 1) * size * 1e9 / rate
		if least, most := begin+transmission+10e6, read+transmission+10e6; e.due < least || e.due > most {
			t.Errorf("packet %d is due %d ns after the first was sent, want %d to %d", i, e.due-begin, least-begin, most-begin)
		}
		p.queue.pop()
	}
	// When it was free for a while the next one does not make up for it.
	p.transmitted = now() - 1e9
	p.send(t, 0, size)
	before := now()
	p.carry(t)
	if e, _ := p.queue.head(); e.due < before+5e6+10e6 {
		t.Errorf("due %d ns after it was read", e.due-before)
	}
}

func TestLossHasItsShareItsBurstsAndItsSeed(t *testing.T) {
	const packets = 500_000
	pattern := func(d Direction, seed uint64) (lost, bursts int, first []int) {
		l, was := newLoss(d, rand.New(rand.NewPCG(seed, 0))), false
		for i := range packets {
			is := l.takes()
			if is {
				lost++
				if len(first) < 100 {
					first = append(first, i)
				}
			}
			if is && !was {
				bursts++
			}
			was = is
		}
		return lost, bursts, first
	}
	for _, c := range []struct{ share, burst, wantBurst float64 }{{0.01, 0, 1 / 0.99}, {0.3, 0, 1 / 0.7}, {0.01, 1, 1}, {0.01, 4, 4}, {0.2, 10, 10}} {
		d := Direction{LossShare: c.share, LossBurstPackets: c.burst}
		lost, bursts, first := pattern(d, 1)
		if share := float64(lost) / packets; math.Abs(share/c.share-1) > 0.05 {
			t.Errorf("%+v: a share of %v", d, share)
		}
		if mean := float64(lost) / float64(bursts); math.Abs(mean/c.wantBurst-1) > 0.05 {
			t.Errorf("%+v: %v in a row", d, mean)
		}
		if _, _, again := pattern(d, 1); !slices.Equal(again, first) {
			t.Errorf("%+v: the same seed loses others", d)
		}
		if _, _, other := pattern(d, 2); slices.Equal(other, first) {
			t.Errorf("%+v: another seed loses the same", d)
		}
	}
}

func TestLoss(t *testing.T) {
	for _, share := range []float64{0, 0.1, 1} {
		p := testPipe(t, Direction{LossShare: share})
		const packets = 20_000
		received := 0
		for i := range packets {
			p.send(t, i, 60)
			p.carry(t)
			received += len(p.received(t))
		}
		traffic := p.check(t, packets, received)
		// Six standard deviations of the binomial distribution.
		if spread := 6 * math.Sqrt(packets*share*(1-share)); math.Abs(float64(traffic.Lost)-packets*share) > spread {
			t.Errorf("%d of %d were lost with a share of %v", traffic.Lost, packets, share)
		}
	}
}

// A packet that the other side does not take is counted, and nothing waits for it.
func TestRefusedPackets(t *testing.T) {
	for name, delay := range map[string]float64{"without delay": 0, "with delay": 1} {
		p := testPipe(t, Direction{DelayMs: delay})
		const packets = 2000
		for i := range packets {
			p.send(t, i, mtu)
			p.carry(t)
		}
		p.finish()
		traffic, refused := p.take()
		received := len(p.received(t))
		if refused == 0 || received == 0 || int64(received)+refused != packets || traffic.Delivered != packets {
			t.Errorf("%s: %d received, %d refused: %+v", name, received, refused, traffic)
		}
	}
}

func TestPumpRunsUntilTheEnd(t *testing.T) {
	p := testPipe(t, Direction{DelayMs: 5})
	ended := make(chan error, 1)
	started := make(chan error)
	go func() { ended <- p.run(nil, started) }()
	must(t, <-started)
	end := func() error {
		unix.Shutdown(p.in, unix.SHUT_WR)
		select {
		case err := <-ended:
			ended <- err
			return err
		case <-time.After(20 * time.Second):
			return errors.New("it does not end")
		}
	}
	// Its memory is not to go while it runs.
	t.Cleanup(func() { end() })
	const packets = 2000
	received := 0
	deadline := time.Now().Add(20 * time.Second)
	for sent := 0; received < packets && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for range 20 {
			// No more than the socket holds while the pump stalls.
			if sent < min(packets, received+100) {
				p.send(t, sent, 100)
				sent++
			}
		}
		for _, number := range p.received(t) {
			if number != received {
				t.Fatalf("packet %d came out in place %d", number, received)
			}
			received++
		}
	}
	// While it waits without end, for packets that do not come.
	runtime.GC()
	if busy, lastMoved := p.state(); busy || lastMoved == 0 {
		t.Errorf("busy: %t, the last one moved at %d", busy, lastMoved)
	}
	p.check(t, packets, received)
	if err := end(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestDeviceThatCannotBeRead(t *testing.T) {
	p := testPipe(t, Direction{})
	p.from = -1
	if _, err := p.read(); !errors.Is(err, syscall.EBADF) {
		t.Error(err)
	}
}

// From the read to the write nothing is allocated, whatever becomes of a packet.
func TestPumpAllocatesNothing(t *testing.T) {
	if racing.IsDetected() {
		t.Skip("under the race detector the buffer of stallTime is on the heap")
	}
	for name, d := range map[string]Direction{
		"without delay": {},
		"with all":      {DelayMs: 0.01, LossShare: 0.5, QueuePackets: 20, BytesPerSecond: 1e9},
	} {
		p := testPipe(t, d)
		packet, back := make([]byte, 100), make([]byte, 2*mtu)
		if n := testing.AllocsPerRun(50, func() {
			for range 100 {
				unix.Write(p.in, packet)
			}
			p.read()
			p.read()
			p.finish()
			for {
				if n, _ := unix.Read(p.out, back); n <= 0 {
					break
				}
			}
			p.stallTime()
		}); n != 0 {
			t.Errorf("%s: %v allocations in 100 packets", name, n)
		}
	}
}
