package link

import (
	"syscall"
	"unsafe"
)

const (
	// mtu is that of the devices: no packet is longer, since none is offloaded.
	mtu        = 1500
	chunkBytes = 64 << 10
	// queueBytes bounds the memory of one direction. It is taken from the kernel only as far as it is used.
	queueBytes = 128 << 20
	chunks     = queueBytes / chunkBytes
)

// entry stands before each packet in the queue's memory.
type entry struct {
	// due is when the packet has to leave, on the pumps' clock; waited the longest time before it was read. Both in nanoseconds.
	due, waited int64
	size        int64
}

const entryBytes = int(unsafe.Sizeof(entry{}))

// queue is a FIFO of packets in chunks of memory, without allocations. An empty chunk is the next to be filled, so that the memory in use
// stays small, and in the processor's caches.
type queue struct {
	memory []byte
	// next of a chunk is the one that was filled after it, end where its packets end.
	next, end [chunks]int32
	// used is a stack of empty chunks; those from fresh on were never used.
	used           [chunks]int32
	usedNow, fresh int32
	first, last    int32
	readAt, write  int32
	// waiting packets.
	waiting int64
}

func newQueue() (*queue, error) {
	memory, err := syscall.Mmap(-1, 0, queueBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	return &queue{memory: memory, fresh: 1}, nil
}

// room is where the next packet can be written, of which push then says how long it is; nil when all memory is full.
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

// push takes the packet that was written to room.
func (q *queue) push(due, waited int64, size int) {
	*q.entryAt(q.last, q.write) = entry{due: due, waited: waited, size: int64(size)}
	q.write += footprint(size)
	q.waiting++
}

// head is the packet that has waited longest, until pop; nil when none waits.
func (q *queue) head() (*entry, []byte) {
	if q.waiting == 0 {
		return nil, nil
	}
	e := q.entryAt(q.first, q.readAt)
	at := int(q.first)*chunkBytes + int(q.readAt) + entryBytes
	return e, q.memory[at : at+int(e.size)]
}

// pop takes the head off.
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

// footprint is what a packet takes: the next entry stands at a multiple of 8.
func footprint(size int) int32 { return int32((entryBytes + size + 7) &^ 7) }
