//gosec:disable G103 G115 G404 -- the kernel takes addresses, the numbers are small, random orders, not secrets
package link

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"bakeoff.invalid/OWNER/bakeoff/xk6-loadgen/internal/linux"
)

const (
	batch = 64 // how many packets to read before writing, and to write before reading
	// Under load, after so many wake-ups that follow soon on each other, packets gather for a moment: it halves the link's CPU time.
	wakeupsUnderLoad      = 8
	soon                  = int64(time.Millisecond)
	longestGathering      = int64(200 * time.Microsecond)
	gatheringPerRoundTrip = 500 // gatheringPerRoundTrip keeps the gathering small beside the delay.
)

var epoch = time.Now()

// now is the pumps' clock: monotonic nanoseconds since the process started.
func now() int64 { return int64(time.Since(epoch)) }

// pump carries the packets of one direction, on a thread of its own. Times are nanoseconds of the pumps' clock.
type pump struct {
	from, to           int
	delay, gathering   int64 // delay and gathering in nanoseconds; nanosecondsPerByte and limit are 0 without one
	nanosecondsPerByte float64
	loss               *loss // nil without
	limit              int64
	// The pump holds the mutex except while it waits, or while another thread wants it.
	mutex       sync.Mutex
	wanted      atomic.Int32
	counters    *counters
	queue       *queue
	lastMoved   int64 // when a packet was read or written last
	transmitted int64 // when the link is free for the next packet, if bytes/s are limited
	since       int64 // the earliest time at which an unread packet can have come
	lastWakeup  int64 // lastWakeup and wakeups tell load from rest
	wakeups     int
	scratch     [mtu]byte // scratch takes packets that are dropped.
	// schedstat is the kernel's file of how long the thread has waited for a core: stalled, so far.
	thread    int
	schedstat int
	stalled   int64
}

// newPump makes a pump from one device to another. It gathers packets for a small part of the round trip at most.
func newPump(from, to int, d Direction, roundTrip time.Duration, random *rand.Rand) (*pump, error) {
	q, err := newQueue()
	if err != nil {
		return nil, fmt.Errorf("no memory for packets: %w", err)
	}
	p := &pump{
		from: from, to: to, delay: int64(milliseconds(d.DelayMs)), gathering: min(int64(roundTrip)/gatheringPerRoundTrip, longestGathering),
		loss: newLoss(d, random), limit: d.QueuePackets, counters: newCounters(), queue: q, since: now(),
	}
	if d.BytesPerSecond > 0 {
		p.nanosecondsPerByte = 1e9 / d.BytesPerSecond
	}
	return p, nil
}

// loss is Gilbert's model (Capacity of a burst-noise channel, 1960): all packets are lost in the bad state, none in the good one.
type loss struct {
	random        *rand.Rand
	toBad, toGood float64 // the chances that the next packet finds the other state
	bad           bool
}

// newLoss chooses the model's chances by the share of lost packets and the mean length of a burst. nil loses nothing.
func newLoss(d Direction, random *rand.Rand) *loss {
	if d.LossShare == 0 {
		return nil
	}
	l := loss{random: random, toBad: d.LossShare, toGood: 1 - d.LossShare}
	if d.LossBurstPackets > 0 {
		l.toGood = 1 / d.LossBurstPackets
		l.toBad = l.toGood * d.LossShare / (1 - d.LossShare)
	}
	return &l
}

// takes draws the state for the next packet, and tells whether it is lost.
func (l *loss) takes() bool {
	if l == nil {
		return false
	}
	if l.bad {
		l.bad = l.random.Float64() >= l.toGood
	} else {
		l.bad = l.random.Float64() < l.toBad
	}
	return l.bad
}

// run carries packets until its device ends, and returns the error. started gets the error if its thread may not run on the cores.
func (p *pump) run(cpus []int, started chan<- error) error {
	runtime.LockOSThread()
	if err := linux.UseCores(cpus); err != nil {
		started <- fmt.Errorf("no thread can run on the cores %v: %w", cpus, err)
		return err
	}
	linux.SetTimerSlack()
	linux.SetShortSlice()
	p.thread, p.schedstat = syscall.Gettid(), -1
	if fd, err := syscall.Open("/proc/thread-self/schedstat", syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err == nil {
		p.schedstat = fd
		defer linux.Close(fd)
	}
	p.stalled, _ = p.stallTime()
	started <- nil
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for {
		more := p.writeDue()
		moreToRead, err := p.read()
		if err != nil {
			return err
		}
		if !more && !moreToRead {
			p.wait()
		} else if p.wanted.Load() > 0 {
			p.mutex.Unlock()
			p.mutex.Lock()
		}
	}
}

// writeDue writes packets that are due. more tells that a batch was full, so others may be due.
func (p *pump) writeDue() (more bool) {
	for range batch {
		e, packet := p.queue.head()
		if e == nil {
			return false
		}
		t := now()
		if e.due > t {
			return false
		}
		p.lastMoved = t
		p.deliver(packet, t-e.due+e.waited)
		p.queue.pop()
	}
	return true
}

// read reads a batch of packets, which are lost, dropped, delivered or queued. more tells that others may wait.
func (p *pump) read() (more bool, err error) {
	t := now()
	for range batch {
		buffer, room := p.queue.room(), true
		if buffer == nil || p.limit > 0 && p.queue.waiting >= p.limit {
			buffer, room = p.scratch[:], false
		}
		n, errno := linux.Read(p.from, buffer)
		if errno == syscall.EAGAIN {
			p.since = t // It was empty after t
			return false, nil
		}
		if errno != 0 {
			return false, errno
		}
		if n == 0 {
			return false, io.EOF
		}
		t = now()
		p.lastMoved = t
		p.counters.came(buffer[:n])
		switch waited := t - p.since; {
		case p.loss.takes():
			p.counters.Lost++
		case !room:
			p.counters.Dropped++
		case p.delay == 0 && p.nanosecondsPerByte == 0:
			p.deliver(buffer[:n], waited)
		default:
			p.queue.push(p.sent(t, n)+p.delay, waited, n)
		}
	}
	return true, nil
}

// sent is when a packet's last byte is sent: after all bytes before it, if bytes/s are limited.
func (p *pump) sent(t int64, size int) int64 {
	if p.nanosecondsPerByte == 0 {
		return t
	}
	p.transmitted = max(p.transmitted, t) + int64(float64(size)*p.nanosecondsPerByte)
	return p.transmitted
}

// deliver writes a packet to the receiver's device. late is the time that it came too late, at most.
func (p *pump) deliver(packet []byte, late int64) {
	p.counters.left(late)
	switch linux.Write(p.to, packet) {
	case 0:
	case syscall.EAGAIN, syscall.ENOBUFS, syscall.EBADFD:
		p.counters.refused++ // The device counts other errors
	}
}

// wait sleeps until a packet comes in or is due, without the mutex. Under load it sleeps a little longer: packets that gather cost less.
func (p *pump) wait() {
	timeout := int64(-1)
	if e, _ := p.queue.head(); e != nil {
		timeout = max(0, e.due-now())
	}
	p.mutex.Unlock()
	defer p.mutex.Lock()
	readable := linux.AwaitReadable(p.from, timeout)
	t := now()
	if !readable {
		p.since = t
		return
	}
	// The packet came when the thread could run again; if that is not known, perhaps as soon as the device was seen empty.
	if stalled, known := p.stallTime(); known {
		p.since = max(p.since, t-(stalled-p.stalled))
		p.stalled = stalled
	}
	if p.wakeups++; t-p.lastWakeup >= soon {
		p.wakeups = 0
	}
	p.lastWakeup = t
	if p.wakeups >= wakeupsUnderLoad && p.gathering > 0 {
		linux.Sleep(p.gathering)
	}
}

// stallTime is how long the thread has waited for a core so far. known is false if the kernel does not count that.
func (p *pump) stallTime() (nanoseconds int64, known bool) {
	var text [64]byte
	n, _ := syscall.Pread(p.schedstat, text[:], 0)
	return linux.RunDelay(text[:max(0, n)])
}

// lock is for other threads than the pump's, which under load never waits.
func (p *pump) lock() {
	p.wanted.Add(1)
	p.mutex.Lock()
	p.wanted.Add(-1)
}

// state tells whether packets are under way, and when one moved last.
func (p *pump) state() (busy bool, lastMoved int64) {
	unread := linux.AwaitReadable(p.from, 0) // Unread packets first: once read they are queued, or set lastMoved
	p.lock()
	defer p.mutex.Unlock()
	return unread || p.queue.waiting > 0, p.lastMoved
}

// take returns the counts since the last take, and begins new ones.
func (p *pump) take() (Traffic, int64) {
	fresh := newCounters()
	p.lock()
	taken := p.counters
	p.counters = fresh
	p.mutex.Unlock()
	return taken.traffic(), taken.refused
}

// counts returns the counts since the last take. With mark, lateness begins anew.
func (p *pump) counts(mark bool) Traffic {
	p.lock()
	defer p.mutex.Unlock()
	t := p.counters.traffic()
	if mark {
		p.counters.lateness.Reset()
		p.counters.latest = 0
	}
	return t
}

const (
	mtu        = 1500 // no packet is longer, since none is offloaded
	chunkBytes = 64 << 10
	queueBytes = 128 << 20 // The kernel gives the memory of a direction as it is used
	chunks     = queueBytes / chunkBytes
)

// entry stands before each packet in the queue's memory.
type entry struct {
	due, waited int64 // due, on the pumps' clock, is when the packet has to leave; waited is the longest time before it was read
	size        int64
}

const entryBytes = int(unsafe.Sizeof(entry{}))

// queue is a FIFO of packets in chunks of memory. The chunk that became empty last is filled next, to stay in the processor's caches.
type queue struct {
	memory         []byte
	next, end      [chunks]int32 // next is the chunk that was filled after a chunk, end the end of its packets.
	used           [chunks]int32 // a stack of empty chunks; chunks from fresh on were never used
	usedNow, fresh int32
	first, last    int32
	readAt, write  int32
	waiting        int64
}

// newQueue reserves addresses for queueBytes. Memory follows as packets fill it.
func newQueue() (*queue, error) {
	memory, err := syscall.Mmap(-1, 0, queueBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	return &queue{memory: memory, fresh: 1}, nil
}

// room is the place for the next packet, whose length push then sets; nil when the memory is full.
func (q *queue) room() []byte {
	if int(q.write)+entryBytes+mtu > chunkBytes {
		var chunk int32
		switch {
		case q.usedNow > 0:
			q.usedNow--
			chunk = q.used[q.usedNow]
		case q.fresh < chunks:
			chunk = q.fresh
			q.fresh++
		default:
			return nil
		}
		q.end[q.last], q.next[q.last] = q.write, chunk
		q.last, q.write = chunk, 0
	}
	at := int(q.last)*chunkBytes + int(q.write) + entryBytes
	return q.memory[at : at+mtu : at+mtu]
}

func (q *queue) push(due, waited int64, size int) {
	*q.entryAt(q.last, q.write) = entry{due: due, waited: waited, size: int64(size)}
	q.write += footprint(size)
	q.waiting++
}

// head is the oldest packet, valid until pop; nil if there is none.
func (q *queue) head() (*entry, []byte) {
	if q.waiting == 0 {
		return nil, nil
	}
	e := q.entryAt(q.first, q.readAt)
	at := int(q.first)*chunkBytes + int(q.readAt) + entryBytes
	return e, q.memory[at : at+int(e.size)]
}

// pop removes the oldest packet, and frees chunks that it leaves empty.
func (q *queue) pop() {
	q.readAt += footprint(int(q.entryAt(q.first, q.readAt).size))
	q.waiting--
	for q.first != q.last && q.readAt == q.end[q.first] {
		q.used[q.usedNow] = q.first
		q.usedNow++
		q.first, q.readAt = q.next[q.first], 0
	}
	if q.waiting == 0 {
		q.readAt, q.write = 0, 0
	}
}

func (q *queue) entryAt(chunk, offset int32) *entry {
	return (*entry)(unsafe.Pointer(&q.memory[int(chunk)*chunkBytes+int(offset)]))
}

// footprint is the room of a packet with its entry, a multiple of 8 so that entries are aligned.
func footprint(size int) int32 { return int32((entryBytes + size + 7) &^ 7) }
